"""Events: the lines that commits and memory changes add to the journal, and their delivery to each subscriber."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from keepsaid.domain import commits, compaction, message, route, session, turn
from keepsaid.domain.prompt import Json
from keepsaid.values import frozen

EACH = 1_024
"""How many facts one line holds at most; an event's id is its line's times this, and its place there."""

ENDLESS = "no result: the process ended each time, or held it for too long"
"""Why a delivery is given up whose attempts had no end."""

RECEIVED = "message.received"
_ARRIVAL = '["%d",{"message":%d,"channel":%s,"number":%d}]'
_ANY = "*"


@frozen
class Event:
    """A fact: its topic (`turn.committed`), its payload, what it is about, and when it was published (ms UTC)."""

    id: int
    topic: str
    payload: Mapping[str, Json]
    correlation_id: str
    at: int


class JournalLine(NamedTuple):
    """A line of the journal as it is kept; `payload` is JSON: an object, or a list of [correlation id, object]."""

    number: int
    topic: str
    payload: str
    correlation_id: str
    at: int


def several(facts: Iterable[tuple[str, Mapping[str, Json]]]) -> str:
    """The payload of a line with several facts, each by its correlation id and its own payload."""
    return json.dumps([[key, payload] for key, payload in facts], separators=(",", ":"))


def arrivals(stored: Iterable[commits.Received]) -> str:
    """The same for messages that came in: the id, channel and number in its lane of each.

    It is put together from texts, in half the time of `several`: every message pays for it.
    """
    return f"[{','.join([_ARRIVAL % (one.id, one.id, _quoted(one.lane.channel), one.number) for one in stored])}]"


@lru_cache(maxsize=64)
def _quoted(text: str) -> str:
    return json.dumps(text)


def events_of(line: JournalLine) -> Iterator[Event]:
    """The facts of a line, in order."""
    told = json.loads(line.payload)
    facts = told if isinstance(told, list) else [[line.correlation_id, told]]
    for place, (key, payload) in enumerate(facts):
        yield Event(line.number * EACH + place, line.topic, payload, key, line.at)


def wants(patterns: Iterable[str], topic: str) -> bool:
    """Whether one of the patterns is this topic; `*` matches one segment, as in `memory.*`."""
    segments = topic.split(".")
    split = [pattern.split(".") for pattern in patterns]
    pairs = (zip(pattern, segments, strict=True) for pattern in split if len(pattern) == len(segments))
    return any(all(wanted in (_ANY, segment) for wanted, segment in pair) for pair in pairs)


@frozen
class EventDelivery:
    """One event on its way to one subscriber: which attempt this is, and the fence under which it was taken."""

    id: int
    subscriber: str
    event: Event
    attempt: int
    fence: int


class DeliveryResult(NamedTuple):
    """The outcome of an attempt: done; to be tried again at `again_at` (ms UTC); or given up, with an `error`.

    What was not even `tried` is pending again, and not charged.
    """

    delivery_id: int
    error: str = ""
    again_at: int | None = None
    tried: bool = True


@frozen
class DeliveryLine:
    """A delivery as a list shows it."""

    id: int
    subscriber: str
    event_id: int
    topic: str
    correlation_id: str
    state: str
    attempts: int
    due_at: int
    error: str


@frozen
class SubscriberLine:
    """A subscriber as a list shows it: `behind` lines of the journal are not looked through for it yet."""

    name: str
    topics: tuple[str, ...]
    behind: int
    pending: int
    processing: int
    dead: int


@frozen
class Subscribe(commits.Commit[None]):
    """Subscribe to these topics from now on, or `from_start` to all their events that are kept.

    For one that is known only the topics change. What it was working on is pending again, and what waits for a time is
    due: whoever subscribes is its only process, and who set that time may have had another clock.
    """

    name: str
    topics: tuple[str, ...]
    at: int
    from_start: bool = False


@frozen
class Unsubscribe(commits.Commit[bool]):
    """Remove a subscriber and its pending deliveries. False when it is not known."""

    name: str


@frozen
class Distribute(commits.Commit[int]):
    """Make deliveries of what the next lines tell, for every subscriber; returns how many events that were.

    `events_max` of those who have come equally far; a line is never divided.
    """

    at: int
    events_max: int = 512


@frozen
class TakeDeliveries(commits.Commit[tuple[EventDelivery, ...]]):
    """Take the next events for a subscriber under a fence: in order, and of each correlation id one at a time.

    What is retried is waited for by what is about the same. What was taken and not settled for `lease_ms` by the
    steady clock is taken again; one of `attempts_max` attempts without any end is given up. One that was attempted
    before is taken alone: it may be what ended the process, and nothing else is charged for it.
    """

    subscriber: str
    fence: int
    at: int
    steady: int
    lease_ms: int
    attempts_max: int
    limit: int = 128


@frozen
class SettleDeliveries(commits.Commit[int]):
    """Record the outcomes of deliveries; returns how many of them were still held under the fence."""

    subscriber: str
    fence: int
    settled: tuple[DeliveryResult, ...]
    at: int


@frozen
class DecideDelivery(commits.Commit[bool]):
    """A person's word on a delivery that was given up: try it `again`, or dismiss it. False when it is not dead."""

    delivery_id: int
    at: int
    again: bool


TOLD = "memory.told"
"""The name of the note that stores the last published news."""


class MemoryChange(StrEnum):
    """Kind of change to a memory."""

    SAVED = "saved"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"


class News(NamedTuple):
    """One piece: its number, and which memory; `kind` is its kind, `by` the memory that took its place."""

    n: int
    memory_id: int
    what: MemoryChange
    kind: str
    by: int | None = None

    @property
    def mark(self) -> str:
        """What is remembered of it."""
        return f"{self.n}:{self.memory_id}"


@frozen
class TellNews(commits.Commit[int]):
    """Write news to the journal, in order and each piece once; returns how many were written."""

    news: tuple[News, ...]
    at: int


@frozen
class DropNews(commits.Commit[int]):
    """Remove news up to a number from the memory store, once it is published."""

    until: int


def news_after(news: tuple[News, ...], told: str) -> tuple[News, ...]:
    """Return the news after the last published mark; all of it if that mark is not in it."""
    place = next((n for n, one in enumerate(news, 1) if one.mark == told), 0)
    return news[place:]


ROUTED, STARTED = "batch.routed", "turn.started"
"""Published in one line, because many come with one commit."""


BACKGROUND = "background.answered"
"""The model answered a call of a client about the talk, such as for a title: no turn, and nothing else is stored."""


class Fact(NamedTuple):
    """A topic, what it is about (its correlation id), and the payload."""

    topic: str
    about: str
    payload: Mapping[str, Json]


class AbandonReason(StrEnum):
    """Why a turn was abandoned: its batch was dropped, dead-lettered, parked, interrupted or split."""

    DROPPED = "dropped"
    DEAD = "dead"
    PARKED = "parked"
    INTERRUPTED = "interrupted"
    SPLIT = "split"


OVER: Mapping[str, AbandonReason] = {"dead": AbandonReason.DEAD, "review": AbandonReason.PARKED}
"""Why the turn of a batch is over that is in this state now."""

_REPLIES = {state: f"reply.{state}" for state in ("sent", "unknown", "dead", "not_deliverable")}


def _fact(topic: str, **said: Json) -> Fact:
    """A fact about the first thing that is said; what is None is left out."""
    payload = {name: value for name, value in said.items() if value is not None}
    return Fact(topic, str(next(iter(payload.values()))), payload)


def judged(batch_id: int, messages: int, verdict: route.Verdict, task_id: int | None = None) -> Fact:
    """Messages were put into a batch, or dropped, by a rule."""
    if verdict.action is route.Action.DROP:
        return dropped(batch_id, messages, verdict.rule)
    action, rule = str(verdict.action), verdict.rule
    return _fact(ROUTED, batch=batch_id, messages=messages, action=action, rule=rule, task=task_id)


def dropped(batch_id: int, messages: int, rule: str | None = None) -> Fact:
    """A batch is answered by nobody, by a rule or by somebody's word."""
    return _fact("batch.dropped", batch=batch_id, messages=messages, rule=rule)


def ended(batch_id: int, state: str) -> Fact | None:
    """A batch is given up, or waits for a person; None for other states."""
    topic = {"dead": "batch.dead", "review": "batch.parked"}.get(state)
    return None if topic is None else Fact(topic, str(batch_id), {"batch": batch_id})


def started(turn_id: int, batch_id: int) -> Fact:
    """A turn began."""
    return Fact(STARTED, str(turn_id), {"turn": turn_id, "batch": batch_id})


def abandoned(turn_id: int, batch_id: int, why: AbandonReason) -> Fact:
    """A turn is over, with no answer."""
    return Fact("turn.abandoned", str(turn_id), {"turn": turn_id, "batch": batch_id, "why": str(why)})


def replied(reply_id: int, state: str, made_by: tuple[int | None, int | None], tries: int) -> Fact | None:
    """A reply came to an end, or to a doubt; `made_by` is its turn and batch. None while it is on its way."""
    topic, (turn_id, batch_id) = _REPLIES.get(state), made_by
    return None if topic is None else _fact(topic, reply=reply_id, turn=turn_id, batch=batch_id, tries=tries)


def compacted(lane: message.Lane, how: str, span: tuple[int, int, int, int]) -> Fact:
    """Records left a lane's context: by a summary, because they did not fit, or because it was reset (`how`).

    `span` is the version of its head, the first record that went, the last, and how many messages that were.
    """
    version, first, last, messages = span
    place: dict[str, Json] = {"lane": list(lane), "version": version, "first": first, "last": last}
    if how == compaction.CutReason.RESET:
        return Fact("lane.reset", "", {**place, "messages": messages})
    return Fact("lane.compacted", "", {**place, "messages": messages, "how": how})


def of_session(what: str, session_id: int, **said: Json) -> Fact:
    """What happened to a session: `started`, `woke`, `sleeping`, `rotated` or `ended`."""
    return Fact(f"session.{what}", str(session_id), {"session": session_id, **said})


def session_over(session_id: int, ending: session.SessionEnd, first: int, last: int) -> Fact:
    """A session is over: silence ended it, or the lane goes on with another."""
    what = "ended" if ending is session.SessionEnd.IDLE else "rotated"
    return of_session(what, session_id, reason=str(ending), first=first, last=last)


def answered(commit: commits.TurnCommit) -> Iterator[Fact]:
    """A turn was settled, and commands that it obeyed."""
    has_reply, joined = commit.reply is not None, list[Json](commit.steered)
    yield _fact("turn.committed", turn=commit.turn_id, batch=commit.batch_id, replied=has_reply, steered=joined or None)
    for command in commit.outcome.executed:
        told: dict[str, Json] = {"name": command.name, "outcome": command.outcome, "arguments": command.size}
        yield Fact("command.executed", str(commit.turn_id), told)


def read_to(session_id: int, until: int) -> Fact:
    """All that was marked of a session was read, up to a record."""
    return Fact("memory.session_completed", str(session_id), {"session": session_id, "until": until})


def unreadable(session_id: int, error: str) -> Fact:
    """A session is not read any more."""
    return Fact("memory.session_parked", str(session_id), {"session": session_id, "error": error})


def answered_in_background(key: str, task: str, usage: turn.Usage) -> Fact:
    """A background call of a key was answered."""
    return _fact(BACKGROUND, key=key, task=task, tokens_in=usage.tokens_in, tokens_out=usage.tokens_out)


def forgot(number: int, counts: Mapping[str, int]) -> Fact:
    """A forgetting is done: how many memories and messages went, by name of the count."""
    gone: dict[str, Json] = {name: counts.get(name, 0) for name in ("memories", "messages")}
    return Fact("memory.forgotten", str(number), {"forgetting": number, **gone})


def of_memory(news: News) -> Fact | None:
    """What happened to a memory; None for one that is forgotten since."""
    if not news.kind:
        return None
    by = news.by if news.what is MemoryChange.SUPERSEDED else None
    return _fact(f"memory.{news.what}", memory=news.memory_id, kind=news.kind, by=by)
