"""`keepsaid inbox replay`: what other rules would have decided about stored messages; nothing is changed."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.domain.ids import MAX_ID
from keepsaid.domain.ids import show as name
from keepsaid.domain.route import judge, payload_fields
from keepsaid.interfaces.cli.output import NOTHING, Table, counted, one_line, show
from keepsaid.interfaces.cli.rules import RulesFile, config_with
from keepsaid.interfaces.cli.session import say, session
from keepsaid.interfaces.shapes import when

if TYPE_CHECKING:
    from keepsaid.app.stores import Reading
    from keepsaid.domain.message import Message
    from keepsaid.domain.route import Routes, Verdict
    from keepsaid.domain.views import Decided

_PAGE = 64
_EXAMPLES = 3
_SPAN = re.compile(r"(\d{1,6}) ?([smhdw])", re.ASCII)
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}

Decision = tuple[str, str]
"""A verdict and the rule behind it."""


def replay(
    rules: RulesFile = None,
    since: Annotated[str, typer.Option(help="How far back: a number and s, m, h, d or w.")] = "7d",
) -> None:
    """Judge stored messages by other rules, and show what would be decided differently. Nothing is changed.

    Without `--rules`, by those of the config: what changed since the messages were decided.
    """
    start = int(time.time() * 1_000) - _span(since)
    table, now = config_with(rules).table(), session().config().table()

    async def judged(stores: Reading) -> Difference:
        return await _difference(stores, table, now, start)

    found = session().read(judged, None)
    if found is None:
        say(NOTHING)
    found = found or Difference()
    show({"since": when(start), "rules_version": table.version, **found.shape()}, *_told(found, start))


@dataclass(slots=True)
class Difference:
    """How many messages were judged, how many could not be, and what would change: old and new decision."""

    messages: int = 0
    not_judged: int = 0
    changes: dict[tuple[Decision, Decision], list[Message]] = field(default_factory=dict)
    counts: dict[tuple[Decision, Decision], int] = field(default_factory=dict)

    def add(self, message: Message, was: Verdict, would_be: Verdict) -> None:
        """Count a message; what differs keeps a few examples."""
        self.messages += 1
        change = (str(was.action), was.rule), (str(would_be.action), would_be.rule)
        if change[0] == change[1]:
            return
        self.counts[change] = self.counts.get(change, 0) + 1
        examples = self.changes.setdefault(change, [])
        if len(examples) < _EXAMPLES:
            examples.append(message)

    @property
    def ordered(self) -> list[tuple[Decision, Decision]]:
        """Other verdicts before other rules, then the most frequent first."""
        return sorted(self.counts, key=lambda change: (change[0][0] == change[1][0], -self.counts[change], change))

    def shape(self) -> Mapping[str, Any]:
        """It as JSON."""
        changes = [
            {
                "was": {"verdict": was[0], "rule": was[1]},
                "would_be": {"verdict": would_be[0], "rule": would_be[1]},
                "count": self.counts[was, would_be],
                "examples": [
                    {"id": name("message", one.id), "conversation": one.lane.conversation, "text": one.text}
                    for one in self.changes[was, would_be]
                ],
            }
            for was, would_be in self.ordered
        ]
        return {"messages": self.messages, "not_judged": self.not_judged, "changes": changes}


async def _difference(stores: Reading, table: Routes, now: Routes, start: int) -> Difference:
    found, before = Difference(), MAX_ID
    while page := await stores.views.decided(start, before, _PAGE):
        for one in page:
            _compare(found, one, table, now)
        before = page[-1].message.id
    return found


def _compare(found: Difference, one: Decided, table: Routes, now: Routes) -> None:
    if one.forgotten or one.message.damaged:
        found.not_judged += 1
        return
    fields = payload_fields(one.message) if table.reads_payload or now.reads_payload else {}
    was = one.verdict or judge(now, one.message, fields)[0]
    found.add(one.message, was, judge(table, one.message, fields)[0])


def _span(text: str) -> int:
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is no span of time: write 90s, 30m, 12h, 2d or 1w", param_hint="--since")
    return int(found[1]) * _UNIT_MS[found[2]]


def _told(found: Difference, start: int) -> list[str | Table]:
    changed = sum(found.counts.values())
    sentence = f"{counted(found.messages, 'message')} since {when(start)}: {changed:,} would be decided differently."
    left = (
        f"{counted(found.not_judged, 'message')} could not be judged: damaged or forgotten" if found.not_judged else ""
    )
    rows = tuple(_row(found, change) for change in found.ordered)
    told: list[str | Table] = [sentence, *([left] if left else [])]
    return [*told, Table(("COUNT", "WAS", "WOULD BE", "FOR EXAMPLE"), rows)] if rows else told


def _row(found: Difference, change: tuple[Decision, Decision]) -> tuple[str, ...]:
    was, would_be = (f"{verdict} ({rule})" for verdict, rule in change)
    first = found.changes[change][0]
    return f"{found.counts[change]:,}", was, would_be, f"{name('message', first.id)}  {one_line(first.text)}"
