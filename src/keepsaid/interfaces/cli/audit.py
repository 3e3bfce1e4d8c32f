"""`keepsaid memory audit`: what is wrong with what is remembered, and the command that puts it right."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.domain.ids import show as name
from keepsaid.domain.maintenance import AuditFinding, AuditProblem, Fix
from keepsaid.interfaces.cli.failure import WARNINGS
from keepsaid.interfaces.cli.output import NOTHING, counted, show
from keepsaid.interfaces.cli.session import say, session
from keepsaid.memory.audit import UNUSED_DAYS, AuditReport

if TYPE_CHECKING:
    from keepsaid.app.stores import ReadOnlyStores
    from keepsaid.ports.redactor import Redactor


def audit(
    unused_days: Annotated[
        int, typer.Option(min=1, help="Report what no turn was shown since it was learned, so many days ago.")
    ] = UNUSED_DAYS,
) -> None:
    """Look all that is remembered through, and say of each trouble what puts it right. Nothing is changed.

    Duplicates, contradictions, what is over and still told, what was never recalled, secrets (by id and kind, never
    their text), what leads to nothing, and what the agent learned from its own words.

    The exit code is 0 when all is well, and 5 when there is something to put right.
    """
    from keepsaid.app.redaction import redactor_of  # noqa: PLC0415
    from keepsaid.memory.audit import Audit  # noqa: PLC0415

    redactor = redactor_of(session().config())

    async def looked(stores: ReadOnlyStores) -> AuditReport:
        auditing, trails = stores.memories.auditing, stores.views.trails
        return await Audit(auditing, trails, redactor, stores.clock).report(unused_days)

    report = session().read(looked) or AuditReport()
    checks = [_shape(trouble, report, redactor) for trouble in AuditProblem]
    total = sum(report.counts.values())
    sentence = "All is well." if report.clean else f"{counted(total, 'thing')} to put right."
    show({"sentence": sentence, "checks": checks}, sentence, *(line for check in checks for line in _lines(check)))
    if not session().stored():
        say(NOTHING)
    if not report.clean:
        raise typer.Exit(WARNINGS)


def _shape(trouble: AuditProblem, report: AuditReport, redactor: Redactor) -> dict[str, Any]:
    cases = [
        {"ids": [name("memory", one) for one in case.ids], "what": case.what, "fix": command(case, redactor)}
        for case in report.cases[trouble]
    ]
    return {"trouble": str(trouble), "count": report.counts[trouble], "cases": cases}


def command(case: AuditFinding, redactor: Redactor) -> str:
    """The command line that puts a case right; it repeats no secret."""
    ids = [name("memory", one) for one in case.ids]
    arguments = {
        Fix.MERGE: ids,
        Fix.EDIT: [*ids[:1], *_said(case, redactor)],
        Fix.MAINTAIN: [],
        Fix.ARCHIVE: ids,
        Fix.FORGET: [*ids, "--yes"],
    }[case.fix]
    return shlex.join(["keepsaid", "memory", case.fix, *arguments])


def _said(case: AuditFinding, redactor: Redactor) -> list[str]:
    text, value = redactor.redacted(case.text), redactor.redacted(case.value)
    return [text, *(["--value", value] if value else [])]


def _lines(check: dict[str, Any]) -> list[str]:
    lines = [f"{'warn' if check['count'] else 'ok':5} {check['trouble']}  {check['count']}"]
    for case in check["cases"]:
        what = f"  {case['what']}" if case["what"] else ""
        lines += [f"      {' '.join(case['ids'])}{what}", f"      fix: {case['fix']}"]
    return lines
