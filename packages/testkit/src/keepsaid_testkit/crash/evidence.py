"""The evidence: what was written down outside the server, and what its databases hold after it has stopped.

Everything is read by plain SQL and JSON, so that no mistake of the program can hide itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw
import psycopg

from keepsaid.values import frozen
from keepsaid_testkit.crash.evidence_stores import evidence_in

T = TypeVar("T")
HEARER = "ledger"
"""The subscriber who writes down what it hears."""

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"


class LaneRow(NamedTuple):
    """A lane and where its counters stand."""

    id: int
    channel: str
    conversation: str
    key: str
    head: int
    batched: int


class MessageRow(NamedTuple):
    """A stored message."""

    id: int
    lane: int
    number: int
    external_id: str
    event: str
    text: str
    sender: str = ""
    at: int = 0

    @property
    def is_command(self) -> bool:
        """Whether it tells the program something: nothing else in this play begins with a slash."""
        return self.text.startswith("/") and not self.event


class BatchRow(NamedTuple):
    """A batch and its verdict; `task` is None unless it was spawned, `steered` the turn of another that it joined."""

    id: int
    lane: int
    first: int
    last: int
    state: str
    action: str
    reason: str
    task: int | None
    crashes: int
    steered: int | None = None


class TurnRow(NamedTuple):
    """A turn; `seq` is its place among all commits of turns, None when it has none."""

    id: int
    batch: int
    state: str
    seq: int | None
    reason: str = ""


class SaidRow(NamedTuple):
    """What a person said, in a transcript; `ref` names the message."""

    lane: int
    position: int
    turn: int
    ref: str
    text: str


class StepRow(NamedTuple):
    """A call of a tool in a turn."""

    turn: int
    tool: str
    state: str


class Effect(NamedTuple):
    """A mark that a tool left outside."""

    tool: str
    key: str


class ReplyRow(NamedTuple):
    """A reply in the outbox."""

    id: int
    batch: int
    conversation: str
    state: str
    url: str | None
    text: str
    notice: int


class SlotRow(NamedTuple):
    """A question that a turn left open for a person, when it opened and for how long, and its outcome."""

    turn: int
    lane: int
    person: str
    question: str
    state: str
    filled_by: str
    value: str
    opened: int
    expires: int


class CommandRow(NamedTuple):
    """A command that a turn ran."""

    turn: int
    name: str


class EpisodeRow(NamedTuple):
    """A source of an episode: `message` or `reply`, and which."""

    kind: str
    ref: str


class Stretch(NamedTuple):
    """A span that left a lane's context, into a summary or by a cut."""

    lane: int
    version: int
    first: int
    last: int


class EventLine(NamedTuple):
    """A line of the subscriber's ledger: an event, its subject, and when it was received (ms UTC)."""

    event: int
    about: str
    at: int


class DeliveryRow(NamedTuple):
    """An event on its way to the hearer, and when it came to an end (ms UTC)."""

    event: int
    state: str
    ended: int


class Head(NamedTuple):
    """The head of a lane's context: up to which position it is covered, and how many records there should be and are.

    `follows` is the role of the first record that is not covered, `worded` that the summary in force has a text.
    """

    lane: int
    version: int
    covered: int
    told: int
    records: int
    follows: str
    worded: int


@frozen
class AnswerLine:
    """A line of the load's ledger; `told` is all of it, `id` the message it names, 0 when it names none."""

    what: str
    key: str
    id: int
    told: dict[str, Any]


@frozen
class PostLine:
    """A line of the receiver's ledger: one copy of a reply that arrived; `reply` is 0 when no key names one."""

    reply: int
    conversation: str
    text: str
    labelled: bool


@frozen
class Evidence:
    """All that the judge may know."""

    answers: list[AnswerLine]
    posts: list[PostLine]
    lanes: list[LaneRow]
    messages: list[MessageRow]
    batches: list[BatchRow]
    turns: list[TurnRow]
    said: list[SaidRow]
    replies: list[ReplyRow]
    steps: list[StepRow]
    effects: list[Effect]
    tasks: dict[int, tuple[str, int]]
    episodes: list[EpisodeRow]
    stretches: list[Stretch]
    heads: list[Head]
    slots: list[SlotRow]
    obeyed: list[CommandRow]
    heard: list[EventLine]
    deliveries: list[DeliveryRow]
    broken: list[str]
    """What SQLite's own check says of the files, if it is not "ok"."""

    @property
    def taken(self) -> list[AnswerLine]:
        """What was acknowledged, in order."""
        return [answer for answer in self.answers if answer.what == "taken"]


@frozen
class Ledgers:
    """The files written outside: what the load received, what the receiver took, what marks tools left."""

    load: Path
    replies: Path
    effects: Path


def gather(ledgers: Ledgers, home: Path) -> Evidence:
    """Read the ledgers, and the databases of a home whose server has stopped."""
    with evidence_in(home, "buffer") as buffer, evidence_in(home, "memory") as memory:
        return Evidence(
            answers=_lines(ledgers.load, _answer),
            posts=_lines(ledgers.replies, _post),
            lanes=buffer.all(LaneRow),
            messages=buffer.all(MessageRow),
            batches=buffer.all(BatchRow),
            turns=buffer.all(TurnRow),
            said=buffer.all(SaidRow),
            replies=buffer.all(ReplyRow),
            steps=buffer.all(StepRow),
            effects=_lines(ledgers.effects, lambda line: Effect(line["tool"], line["key"])),
            tasks={row[0]: (row[1], row[2]) for row in buffer.rows("tasks")},
            episodes=memory.all(EpisodeRow),
            stretches=buffer.all(Stretch),
            heads=buffer.all(Head),
            slots=buffer.all(SlotRow),
            obeyed=buffer.all(CommandRow),
            heard=_event_lines(ledgers.effects),
            deliveries=buffer.all(DeliveryRow),
            broken=[*buffer.damage(), *buffer.mistimed(), *memory.damage(), *memory.mistaught()],
        )


def numbers(home: Path, *statements: str) -> list[list[int]] | None:
    """The first columns of some statements on the operational store of a home; None while it cannot be read."""
    try:
        with evidence_in(home, "buffer") as store:
            return [[int(row[0]) for row in store.rows(statement)] for statement in statements]
    except (apsw.Error, psycopg.Error):
        return None


def subscriber_ledger_path(effects: Path) -> Path:
    """The path of the subscriber's ledger, in the folder of the tools' ledger."""
    return effects.with_name(f"{effects.name}.heard")


def _event_lines(effects: Path) -> list[EventLine]:
    ledger = subscriber_ledger_path(effects)
    return _lines(ledger, lambda line: EventLine(line["event"], line["about"], line["at"])) if ledger.exists() else []


def _lines(ledger: Path, read: Callable[[dict[str, Any]], T]) -> list[T]:
    return [read(json.loads(line)) for line in ledger.read_text("utf-8").splitlines()]


def _answer(line: dict[str, Any]) -> AnswerLine:
    return AnswerLine(line["what"], line["key"], number(line.get("id", "")), line)


def _post(line: dict[str, Any]) -> PostLine:
    headers, told = line["headers"], line["json"]
    key = headers.get("idempotency-key", "")
    by_header = headers.get("keepsaid-possible-duplicate") == "true"
    labelled = by_header and told["possible_duplicate"] is True
    reply = int(key.removeprefix("keepsaid-"), 16) if key.startswith("keepsaid-") else 0
    return PostLine(reply, told["conversation"], told["text"], labelled)


def number(shown: str) -> int:
    """The number in an id such as `msg_01k2...`; 0 for an empty one."""
    value = 0
    for letter in shown.partition("_")[2]:
        value = value * 32 + _LETTERS.index(letter)
    return value
