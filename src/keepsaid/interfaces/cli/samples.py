"""`keepsaid inbox routes`: what the rules would do with sample messages; nothing is stored."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.domain.batch import Group, Routed, Window
from keepsaid.domain.message import Message
from keepsaid.domain.route import Action, Routes, payload_fields, unmatched
from keepsaid.errors import InputError, KeepsaidError
from keepsaid.interfaces.cli.output import Table, counted, one_line, show
from keepsaid.interfaces.cli.rules import RulesFile, config_with

if TYPE_CHECKING:
    from keepsaid.config import Config
    from keepsaid.domain.message import Inbound

app = typer.Typer(help="Routing rules, tried on samples.", rich_markup_mode=None)
_EXPECTABLE = ("verdict", "rule", "reason", "task")


@app.callback()
def routes() -> None:
    """Routing rules, tried on samples."""


@app.command("test")
def tried(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Sample messages, one JSON object a line; - reads stdin.")
    ],
    rules: RulesFile = None,
    event: Annotated[
        str | None, typer.Option(help="Take each line for a raw GitHub webhook of this X-GitHub-Event.")
    ] = None,
) -> None:
    """Judge sample messages: verdict, rule, reason and the task it would write down. Nothing is stored.

    A line has the fields of `POST /v1/messages`; `expect` beside them names the verdict or the rule it should
    get, or is an object of verdict, rule, reason and task. Exit code 1 when a line gets something else.
    """
    config = config_with(rules)
    table = config.table()
    judged = asyncio.run(_judged(config, table, _samples(file), event))
    wrong = [one for one in judged if not one.is_expected]
    shape = {"rules_version": table.version, "samples": [one.shape(table) for one in judged], "wrong": len(wrong)}
    show(shape, *_told(judged, table))
    if wrong:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of a file, what it should get, and what it got."""

    line: int
    message: Message
    routed: Routed
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
        if self.expect is None:
            return True
        return all(self.got[name] == value for name, value in self.wanted.items())

    @property
    def wanted(self) -> Mapping[str, Any]:
        """What was expected, by name."""
        if isinstance(self.expect, str):
            return {"verdict" if self.expect in list(Action) else "rule": self.expect}
        return self.expect if isinstance(self.expect, dict) else {}

    def shape(self, table: Routes) -> dict[str, Any]:
        """It as JSON."""
        return {
            "line": self.line,
            **self.got,
            "priority": self.routed.priority,
            "expect": self.expect,
            "as_expected": self.is_expected,
            "unmatched": self.unmatched(table),
        }

    def unmatched(self, table: Routes) -> dict[str, str]:
        """Why rules did not match, by the name of the rule."""
        fields = payload_fields(self.message)
        found = {rule.name: unmatched(rule, self.message, fields) for rule in table.rules}
        return {name: why for name, why in found.items() if why is not None}


async def _judged(
    config: Config, table: Routes, samples: Iterator[tuple[int, dict[str, Any]]], event: str | None
) -> Sequence[Sample]:
    from keepsaid.pipeline.intake import storable  # noqa: PLC0415
    from keepsaid.pipeline.routing import route  # noqa: PLC0415 - what a running instance does
    from keepsaid.testing.clock import CountingIds  # noqa: PLC0415 - nothing of it is stored

    ids, now, judged = CountingIds(), int(time.time() * 1_000), []
    for line, fields in samples:
        expect = fields.pop("expect", None)
        _check(expect, line)
        inbound = _inbound(config, fields, event, line)
        if inbound is None:
            continue
        inbound = storable(inbound)
        message = Message(ids.next(), inbound.lane, 1, inbound, now)
        dispatch = await route(table, Group(inbound.lane, 0, (message,)), Window(), ids, now)
        judged.append(Sample(line, message, dispatch.batches[0], expect))
    if not judged:
        raise InputError("there is no sample in it", safe="Nothing was changed.")
    return judged


def _inbound(config: Config, fields: dict[str, Any], event: str | None, line: int) -> Inbound | None:
    from keepsaid.app.channels import github_sample  # noqa: PLC0415
    from keepsaid.interfaces.http.messages import inbound_of  # noqa: PLC0415 - the same checks as over HTTP

    body = json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass")
    try:
        return inbound_of(config, fields, body, None) if event is None else github_sample(config, event, body)
    except KeepsaidError as error:
        raise InputError(f"line {line}: {error.what}", safe="Nothing was changed.") from error


def _check(expect: Any, line: int) -> None:
    known = expect is None or isinstance(expect, str) or (isinstance(expect, dict) and set(expect) <= {*_EXPECTABLE})
    if not known:
        raise InputError(
            f"line {line}: expect must be a verdict, the name of a rule, or an object of {', '.join(_EXPECTABLE)}",
            safe="Nothing was changed.",
        )


def _samples(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with the numbers of their lines; the whole file may be one object, on many lines."""
    text = _text(file)
    try:
        whole = json.loads(text)
    except ValueError:
        whole = None
    if isinstance(whole, dict):
        yield 1, whole
        return
    for line, raw in enumerate(text.splitlines(), 1):
        if not raw.strip():
            continue
        try:
            fields = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise InputError(f"line {line} is no JSON", safe="Nothing was changed.") from error
        if not isinstance(fields, dict):
            raise InputError(f"line {line} is no JSON object", safe="Nothing was changed.")
        yield line, fields


def _text(file: Path) -> str:
    try:
        raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        told = f"{file} cannot be read ({error.strerror})"
        raise InputError(told, safe="Nothing was changed.", hint="keepsaid inbox routes test --help") from error
    return raw.decode("utf-8-sig", "replace")


def _told(judged: Sequence[Sample], table: Routes) -> Iterator[str | Table]:
    wrong = [one for one in judged if not one.is_expected]
    verdict = f"{len(wrong):,} not as expected" if wrong else "all as expected"
    checked = any(one.expect is not None for one in judged)
    yield f"{counted(len(judged), 'sample')} by rules of version {table.version}" + (f": {verdict}" if checked else "")
    yield Table(("LINE", "", "VERDICT", "RULE", "REASON"), tuple(map(_row, judged)))
    for one in judged:
        if one.got["task"] is not None:
            yield f"line {one.line} task: {one.got['task']}"
    for one in wrong:
        yield f"line {one.line} expected {', '.join(f'{name} {value!r}' for name, value in one.wanted.items())}"
        yield from (f"  {name}: {one_line(why)}" for name, why in one.unmatched(table).items())


def _row(one: Sample) -> tuple[str, ...]:
    mark = "-" if one.expect is None else "ok" if one.is_expected else "WRONG"
    return str(one.line), mark, str(one.got["verdict"]), str(one.got["rule"]), str(one.got["reason"])
