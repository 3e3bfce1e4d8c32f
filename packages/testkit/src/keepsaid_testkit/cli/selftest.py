"""`keepsaid selftest`: kills, mixed faults and power cuts on this disk, and a judge that reads the evidence."""

from __future__ import annotations

import asyncio
import inspect
import json
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.errors import HomeError, KeepsaidError
from keepsaid.interfaces.cli.console import Table, say, session, show
from keepsaid.interfaces.cli.program import ERRORS, Misused
from keepsaid.interfaces.cli.progress_bar import progress
from keepsaid.text.normal import counted, duration
from keepsaid.values import frozen

if TYPE_CHECKING:
    from keepsaid_testkit.crash.play import Plan
    from keepsaid_testkit.crash.report import Report
    from keepsaid_testkit.crash.stage import Scenario
    from keepsaid_testkit.power.cuts import CutReport


_CUT_HEADINGS = ("COMMITS", "CUTS", "ACKNOWLEDGED", "LOST", "HALF THERE", "WHAT IT IS")
_MEANING = {
    "full": "a sync for each, as keepsaid runs: nothing may be lost",
    "normal": "no sync for each: some must be lost, or this proof is blind",
    "lying": "the disk reports a sync and does nothing: some must be lost",
}


def cut(folder: Path, count: int, seed: int) -> CutReport:
    """Cut the power of a store in a folder of its own a number of times, and of the controls that must lose."""
    from keepsaid_testkit.power.cuts import CONTROLS, cuts  # noqa: PLC0415

    folder.mkdir()
    with progress(count + 2 * CONTROLS, "power cuts") as tell:
        return asyncio.run(cuts(folder, count, seed, lambda done, of: tell(done, of, "the power goes")))


def render_cuts(report: CutReport) -> tuple[Table, str]:
    """Render the report of power cuts: a table with a row for each mode, and a summary line."""
    from keepsaid_testkit.power.strike import Mode  # noqa: PLC0415

    rows = [
        (mode, str(tally.cuts), f"{tally.acknowledged:,}", f"{tally.lost:,}", str(tally.corrupt), _MEANING[mode])
        for mode, tally in report.modes.items()
    ]
    broken = report.violations
    said = counted(len(broken), "violation") if broken else "nothing acknowledged was lost"
    return Table(_CUT_HEADINGS, tuple(rows)), f"{counted(report.modes[Mode.FULL].cuts, 'power cut')}: {said}"


PROGRAM = "keepsaid.interfaces.cli.program:run"
"""What is killed: the program itself."""

PRELOAD = (
    "keepsaid.interfaces.cli.serve",
    "keepsaid.interfaces.cli.data",
    "keepsaid.interfaces.cli.logs",
    "keepsaid.interfaces.http.server",
)
"""What it imports when it serves or backs up."""

_HEADINGS = ("KIND", "KILLED AT", "KILLS", "AT WORK AGAIN", "WHAT IS CUT")
_MIXED = ("FAULT", "TIMES", "WHAT HAPPENS")
_COUNTED = {
    "acknowledged": "acknowledged",
    "turns": "turns",
    "replies_arrived": "replies arrived",
    "replies_arrived_again": "again, marked",
    "effects": "tools used",
}
_SHOWN_MAX = 20
_REPORT = Annotated[Path | None, typer.Option(help="Write the whole report to this file, as JSON.")]


@frozen
class Proof:
    """What was found: of kills and mixed faults, of power cuts, or of both."""

    seed: int
    played: Report | None
    cuts: CutReport | None

    @property
    def violations(self) -> list[str]:
        """Everything that is wrong."""
        of_play = [] if self.played is None else self.played.violations
        return of_play if self.cuts is None else [*of_play, *(f"power: {one}" for one in self.cuts.violations)]

    def as_json(self) -> dict[str, Any]:
        """All of it, for a file: the report of the play, and under `power` that of the cuts."""
        told = {"seed": self.seed, "kills": 0} if self.played is None else self.played.as_json()
        cuts = None if self.cuts is None else self.cuts.as_json()
        return {**told, "violations": self.violations, "power": cuts}


class Unfinished(KeepsaidError):
    """A proof stopped half way: a process ended by itself, or something took too long."""

    code = "KS-PROVE"
    safe = "The play has a home of its own; yours was not touched."
    hint = "keepsaid selftest"


def _reported(command: Callable[..., Proof]) -> Callable[..., None]:
    """The command with an option --report, which shows what it found and ends with the exit code of that."""

    @wraps(command)
    def run(report: Path | None = None, **options: Any) -> None:
        if report is not None and not report.absolute().parent.is_dir():
            raise Misused(f"there is no directory {report.absolute().parent}")
        proof = command(**options)
        if report is not None:
            report.write_text(json.dumps(proof.as_json(), indent=2) + "\n", "utf-8")
        _show(proof)
        if proof.violations:
            raise typer.Exit(ERRORS)

    given = inspect.signature(command, eval_str=True)
    option = inspect.Parameter("report", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_REPORT)
    shown = given.replace(parameters=[*given.parameters.values(), option], return_annotation=None)
    vars(run).update(__signature__=shown)
    run.__annotations__ = {name: one.annotation for name, one in shown.parameters.items()}
    return run


@_reported
def selftest(
    kills: Annotated[
        str,
        typer.Option(metavar="N[,EACH]", help="How many kills at random moments, and how many at each named point."),
    ] = "30",
    minutes: Annotated[
        float, typer.Option(metavar="M", min=0, help="How long to mix faults of every kind, in minutes.")
    ] = 0.0,
    cuts: Annotated[int, typer.Option(min=0, help="How many simulated power cuts.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed for messages and kill times.")] = 1,
    fault: Annotated[str, typer.Option(help="Inject a known fault, to see that it is caught.")] = "",
) -> Proof:
    """Kill the server under load and check that no promise is broken.

    It is killed again and again, and a judge of its own looks at what is left. All of it happens in a temporary
    directory on the disk of your home, which is not touched. The exit code is 6 when anything acknowledged was lost,
    done twice, out of order or left undone; the directory is then kept.
    With --minutes faults of every kind are mixed: kills, freezes, stops, a full disk, a model and a receiver that go
    away and come back, crowds and backups.
    With --cuts the power of a store is cut too: as it runs, and in two ways that must lose, to show that loss is seen.
    """
    from keepsaid_testkit.crash.faults import FAULTS  # noqa: PLC0415
    from keepsaid_testkit.crash.stage import Scenario  # noqa: PLC0415

    plan = replace(_plan(kills), minutes=minutes)
    is_played = bool(plan.total or fault or not cuts)
    if fault and fault not in FAULTS:
        raise Misused(f"there is no fault {fault!r}; known: {', '.join(FAULTS)}", hint="keepsaid selftest --help")
    place = _place()
    say(f"working in  {place}")
    with _stoppable():
        played = _played(place, Scenario(PROGRAM, PRELOAD, seed, fault=fault), plan) if is_played else None
        proof = Proof(seed, played, cut(place / "power", cuts, seed) if cuts else None)
    if played is not None and played.violations:
        say("the directory is kept: the ledgers of the world outside and the home are in it")
    else:
        shutil.rmtree(place, ignore_errors=True)
    return proof


def _place() -> Path:
    """A new directory on the disk of the home; raises HomeError when none can be made there."""
    home = session().home.data
    standing = next(folder for folder in home.parents if folder.exists())
    try:
        return Path(tempfile.mkdtemp(prefix="keepsaid-selftest-", dir=standing))
    except OSError as error:
        raise HomeError(
            f"{standing} cannot be written ({error.strerror})", hint="keepsaid --home DIR selftest"
        ) from error


@contextmanager
def _stoppable() -> Iterator[None]:
    """On SIGTERM, first end the started processes, as on Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _plan(kills: str) -> Plan:
    """`30` is 30 kills at any moment; `30,3` is 3 at each named point besides."""
    from keepsaid_testkit.crash.play import Plan  # noqa: PLC0415

    numbers = kills.split(",")
    if len(numbers) > 2 or not all(one.isascii() and one.isdigit() for one in numbers):
        raise Misused(f"--kills takes a number, or two as in 30,3; not {kills!r}", hint="keepsaid selftest --help")
    anywhere, each = [*map(int, numbers), 0][:2]
    return Plan(each, anywhere)


def _played(place: Path, cast: Scenario, plan: Plan) -> Report:
    from keepsaid_testkit.crash.fork import StageError  # noqa: PLC0415
    from keepsaid_testkit.crash.play import Play  # noqa: PLC0415

    with progress(plan.total, _unit(plan)) as tell:
        try:
            return Play(place, cast, plan, tell).run()
        except StageError as error:
            raise Unfinished(f"the play in {place} could not go on: {error}") from error


def _unit(plan: Plan) -> str:
    """What its progress is counted in."""
    units = {"kills": plan.total - plan.seconds, "seconds": plan.seconds}
    return " and ".join(unit for unit, count in units.items() if count) or "kills"


def _show(proof: Proof) -> None:
    parts: list[str | Table] = []
    if proof.played is not None:
        parts += _render_report(proof.played)
    if proof.cuts is not None:
        parts += render_cuts(proof.cuts)
    show(proof.as_json(), *parts, *(f"broken  {one}" for one in proof.violations[:_SHOWN_MAX]))


def _render_report(found: Report) -> list[str | Table]:
    """Render the report of kills and mixed faults as tables and lines for the terminal."""
    from keepsaid_testkit.crash.mixed import FAULTS  # noqa: PLC0415

    told, counts, broken = found.as_json(), found.judgement.counts, found.violations
    mixed = [(one.name, str(found.struck[one.name]), one.meaning) for one in FAULTS if one.name in found.struck]
    return [
        Table(_HEADINGS, tuple(found.rows())),
        *([Table(_MIXED, tuple(mixed))] if mixed else []),
        f"{counted(told['kills'], 'kill')} in {duration(1_000 * found.seconds)}, seed {found.seed}: "
        + (f"{counted(len(broken), 'violation')}" if broken else "nothing lost, nothing twice, nothing out of order"),
        "   ".join(f"{said} {counts[name]:,}" for name, said in _COUNTED.items()),
        f"a fresh start, imports and all, was at work after {duration(found.restart_ms)}",
    ]
