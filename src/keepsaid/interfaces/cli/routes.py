"""`keepsaid inbox routes` and `replay`: what rules would decide about sample or stored messages; nothing is stored."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.domain import batch, ids
from keepsaid.domain.addressing import decide
from keepsaid.domain.message import Inbound, StoredMessage
from keepsaid.domain.route import Action, Routes, payload_fields, unmatched
from keepsaid.errors import ConfigError, KeepsaidError
from keepsaid.interfaces.cli import console
from keepsaid.interfaces.cli.console import Table, one_line, refused, session, show
from keepsaid.text.normal import counted, span_in
from keepsaid.values import frozen

if TYPE_CHECKING:
    from keepsaid.config import Config
    from keepsaid.domain.views import Decided

RulesFile = Annotated[
    Path | None,
    typer.Option("--rules", help="Config file, or one with only `routes`, with the rules to try."),
]


def config_with(rules: Path | None) -> Config:
    """The settings, with `routes` (and `channels`, if it names them) from another file.

    Raises ConfigError naming that file when it cannot be read or a rule in it is wrong.
    """
    if rules is None:
        return session().config()
    from keepsaid.config import load  # noqa: PLC0415 - the tree of settings costs 0.1 s, which `--help` saves
    from keepsaid.config.file import read  # noqa: PLC0415

    if not rules.is_file():
        raise ConfigError(f"there is no file {rules}", hint="keepsaid config path")
    source = read(rules)
    given = {name: section for name, section in source.keys.items() if name in ("routes", "channels")}
    if "routes" not in given:
        raise ConfigError(f"{rules} has no routes", hint="routes: {rules: [{name: ..., match: {...}, action: drop}]}")
    return load(session().home.config_file, given, source)[0]


_PAGE = 64
_EXAMPLES = 3

Decision = tuple[str, str]
"""A verdict and the rule behind it."""


def replay(
    rules: RulesFile = None,
    since: Annotated[str, typer.Option(help="How far back: a number followed by s, m, h, d or w.")] = "7d",
) -> None:
    """Apply other routing rules to stored messages and show what would change. Nothing is changed.

    Without `--rules`, by those of the config: what changed since the messages were decided.
    """
    start = int(time.time() * 1_000) - _span(since)
    table, now = config_with(rules).table(), session().config().table()
    if (found := session().read(lambda stores: _difference(stores, table, now, start))) is None:
        console.say(console.NOTHING)
        found = Difference()
    shape = {"since": ids.when(start), "rules_version": table.version, **found.shape()}
    show(shape, *_show_replay(found, start))


@dataclass(slots=True)
class Difference:
    """How many messages were judged, how many could not be, and what would change: old and new decision."""

    messages: int = 0
    not_judged: int = 0
    changes: dict[tuple[Decision, Decision], list[StoredMessage]] = field(default_factory=dict)
    counts: Counter[tuple[Decision, Decision]] = field(default_factory=Counter)

    def add(self, one: Decided, table: Routes, now: Routes) -> None:
        """Judge a message and count it; what differs keeps a few examples."""
        if one.forgotten or one.message.damaged:
            self.not_judged += 1
            return
        self.messages += 1
        fields = payload_fields(one.message) if table.reads_payload or now.reads_payload else {}
        was, would_be = one.verdict or decide(now, one.message, fields)[0], decide(table, one.message, fields)[0]
        change = (str(was.action), was.rule), (str(would_be.action), would_be.rule)
        if change[0] != change[1]:
            self.counts[change] += 1
            if self.counts[change] <= _EXAMPLES:
                self.changes.setdefault(change, []).append(one.message)

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
                    {"id": ids.show("message", one.id), "conversation": one.lane.conversation, "text": one.text}
                    for one in self.changes[was, would_be]
                ],
            }
            for was, would_be in self.ordered
        ]
        return {"messages": self.messages, "not_judged": self.not_judged, "changes": changes}


async def _difference(stores: console.Stores, table: Routes, now: Routes, start: int) -> Difference:
    found, before = Difference(), ids.MAX_ID
    while page := await stores.views.decided(start, before, _PAGE):
        for one in page:
            found.add(one, table, now)
        before = page[-1].message.id
    return found


def _span(text: str) -> int:
    if (span_ms := span_in(text)) is None:
        raise typer.BadParameter(f"{text!r} is not a span of time; use 90s, 30m, 12h, 2d or 1w", param_hint="--since")
    return span_ms


def _show_replay(found: Difference, start: int) -> Iterator[str | Table]:
    changed = f"{found.counts.total():,} would be decided differently."
    yield f"{counted(found.messages, 'message')} since {ids.when(start)}: {changed}"
    if found.not_judged:
        yield f"{counted(found.not_judged, 'message')} could not be judged: damaged or forgotten"
    if found.counts:
        rows = tuple(_replay_row(found, change) for change in found.ordered)
        yield Table(("COUNT", "WAS", "WOULD BE", "FOR EXAMPLE"), rows)


def _replay_row(found: Difference, change: tuple[Decision, Decision]) -> tuple[str, ...]:
    was, would_be = (f"{verdict} ({rule})" for verdict, rule in change)
    first = found.changes[change][0]
    return f"{found.counts[change]:,}", was, would_be, f"{ids.show('message', first.id)}  {one_line(first.text)}"


app = typer.Typer(help="Try routing rules on samples.", rich_markup_mode=None)
_EXPECTABLE = ("verdict", "rule", "reason", "task")


@app.callback()
def routes() -> None:
    """Routing rules, tried on samples."""


@app.command("test")
def judge_samples(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Sample messages, one JSON object a line; - reads stdin.")
    ],
    rules: RulesFile = None,
    event: Annotated[
        str | None, typer.Option(help="Read each line as a GitHub webhook body of this X-GitHub-Event.")
    ] = None,
) -> None:
    """Apply the routing rules to sample messages and show the decisions. Nothing is stored.

    A line has the fields of `POST /v1/messages`; `expect` beside them names the verdict or the rule it should
    get, or is an object of verdict, rule, reason and task. Exit code 1 when a line gets something else.
    """
    config = config_with(rules)
    table = config.table()
    judged = asyncio.run(_judged(config, table, _samples(file), event))
    wrong = [one for one in judged if not one.is_expected]
    shape = {"rules_version": table.version, "samples": [one.shape(table) for one in judged], "wrong": len(wrong)}
    show(shape, *_render_samples(judged, table))
    if wrong:
        raise typer.Exit(1)


@frozen
class Sample:
    """One line of a file, what it should get, and what it got."""

    line: int
    message: StoredMessage
    routed: batch.Routed
    expect: Any

    @property
    def got(self) -> dict[str, str | None]:
        """What can be expected of it."""
        verdict, task = self.routed.verdict, self.routed.task
        named = {"verdict": str(verdict.action), "rule": verdict.rule, "reason": verdict.reason}
        return {**named, "task": task.description if task else None}

    @property
    def is_expected(self) -> bool:
        """Whether it got what was expected; always, where nothing was."""
        return all(self.got[name] == value for name, value in self.expectation.items())

    @property
    def expectation(self) -> Mapping[str, Any]:
        """The expected fields and their values; empty if the line has no `expect`."""
        if isinstance(self.expect, str):
            return {"verdict" if self.expect in list(Action) else "rule": self.expect}
        return self.expect if isinstance(self.expect, dict) else {}

    def shape(self, table: Routes) -> dict[str, Any]:
        """It as JSON."""
        told = {"line": self.line, **self.got, "priority": self.routed.priority, "expect": self.expect}
        return {**told, "as_expected": self.is_expected, "unmatched": self.unmatched(table)}

    def unmatched(self, table: Routes) -> dict[str, str]:
        """Why rules did not match, by the name of the rule."""
        fields = payload_fields(self.message)
        found = {rule.name: unmatched(rule, self.message, fields) for rule in table.rules}
        return {name: why for name, why in found.items() if why is not None}


async def _judged(
    config: Config, table: Routes, samples: Iterator[tuple[int, dict[str, Any]]], event: str | None
) -> Sequence[Sample]:
    from keepsaid.pipeline.intake import storable  # noqa: PLC0415
    from keepsaid.pipeline.routing import route_group  # noqa: PLC0415 - what a running instance does
    from keepsaid.testing.clock import CountingIds  # noqa: PLC0415 - nothing of it is stored

    numbers, now, judged = CountingIds(), int(time.time() * 1_000), []
    for line, fields in samples:
        expect = fields.pop("expect", None)
        _check(expect, line)
        if (inbound := _inbound(config, fields, event, line)) is None:
            continue
        inbound = storable(inbound)
        message = StoredMessage(numbers.next(), inbound.lane, 1, inbound, now)
        group = batch.WaitingGroup(inbound.lane, 0, (message,))
        dispatch = await route_group(table, group, batch.Window(), numbers, now)
        judged.append(Sample(line, message, dispatch.batches[0], expect))
    if not judged:
        raise refused("there is no sample in it")
    return judged


def _inbound(config: Config, fields: dict[str, Any], event: str | None, line: int) -> Inbound | None:
    from keepsaid.app.channels import github_sample  # noqa: PLC0415
    from keepsaid.interfaces.http.messages import inbound_of  # noqa: PLC0415 - the same checks as over HTTP

    body = json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass")
    try:
        return inbound_of(config, fields, body, None) if event is None else github_sample(config, event, body)
    except KeepsaidError as error:
        raise refused(f"line {line}: {error.what}") from error


def _check(expect: Any, line: int) -> None:
    known = expect is None or isinstance(expect, str) or (isinstance(expect, dict) and set(expect) <= {*_EXPECTABLE})
    if not known:
        what = f"a verdict, the name of a rule, or an object of {', '.join(_EXPECTABLE)}"
        raise refused(f"line {line}: expect must be {what}")


def _samples(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with the numbers of their lines; the whole file may be one object, on many lines."""
    try:
        text = (sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()).decode("utf-8-sig", "replace")
    except OSError as error:
        told = f"{file} cannot be read ({error.strerror})"
        raise refused(told, "keepsaid inbox routes test --help") from error
    try:
        whole = json.loads(text)
    except ValueError:
        whole = None
    if isinstance(whole, dict):
        yield 1, whole
        return
    for line, raw in enumerate(text.splitlines(), 1):
        if raw.strip():
            yield line, _fields(line, raw)


def _fields(line: int, raw: str) -> dict[str, Any]:
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise refused(f"line {line} is not JSON") from error
    if not isinstance(fields, dict):
        raise refused(f"line {line} is not a JSON object")
    return fields


def _render_samples(judged: Sequence[Sample], table: Routes) -> Iterator[str | Table]:
    wrong = [one for one in judged if not one.is_expected]
    verdict = f"{len(wrong):,} not as expected" if wrong else "all as expected"
    checked = any(one.expect is not None for one in judged)
    yield f"{counted(len(judged), 'sample')} by rules of version {table.version}" + (f": {verdict}" if checked else "")
    yield Table(("LINE", "", "VERDICT", "RULE", "REASON"), tuple(map(_row, judged)))
    for one in judged:
        if one.got["task"] is not None:
            yield f"line {one.line} task: {one.got['task']}"
    for one in wrong:
        yield f"line {one.line} expected {', '.join(f'{name} {value!r}' for name, value in one.expectation.items())}"
        yield from (f"  {name}: {one_line(why)}" for name, why in one.unmatched(table).items())


def _row(one: Sample) -> tuple[str, ...]:
    mark = "-" if one.expect is None else "ok" if one.is_expected else "WRONG"
    return str(one.line), mark, str(one.got["verdict"]), str(one.got["rule"]), str(one.got["reason"])
