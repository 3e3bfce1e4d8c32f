"""Events: facts that happened, and what becomes of telling each subscriber of them (seed 002, the bus and its journal).

A line of the journal tells of one fact, or of several of one topic that came with one commit. Payloads hold ids and
numbers, never what somebody said: so there is nothing in the journal to forget.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from keepsaid.domain.commits import Commit, Received
from keepsaid.domain.prompt import Json

EACH = 1_024
"""How many facts one line tells of at most; an event's id is its line's times this, and its place there."""

ENDLESS = "no result: the process ended each time, or held it for too long"
"""Why a delivery is given up whose attempts had no end."""

RECEIVED = "message.received"
_ARRIVAL = '["%d",{"message":%d,"channel":%s,"number":%d}]'
_ANY = "*"


@dataclass(frozen=True, slots=True)
class Event:
    """A fact: its topic (`turn.committed`), its payload, what it is about, and when it was told (ms UTC)."""

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
    """The payload of a line that tells of several facts, each by its correlation id and its own payload."""
    return json.dumps([[key, payload] for key, payload in facts], separators=(",", ":"))


def arrivals(stored: Iterable[Received]) -> str:
    """The same for messages that came in: the id, channel and number in its lane of each.

    It is put together from texts, in half the time of `several`: every message pays for it.
    """
    return f"[{','.join([_ARRIVAL % (one.id, one.id, _quoted(one.lane.channel), one.number) for one in stored])}]"


@lru_cache(maxsize=64)
def _quoted(text: str) -> str:
    return json.dumps(text)


def events_of(line: JournalLine) -> Iterator[Event]:
    """What a line tells of, in order."""
    told = json.loads(line.payload)
    facts = told if isinstance(told, list) else [[line.correlation_id, told]]
    for place, (key, payload) in enumerate(facts):
        yield Event(line.number * EACH + place, line.topic, payload, key, line.at)


def wants(patterns: Iterable[str], topic: str) -> bool:
    """Whether one of the patterns is this topic; `*` stands for one segment, as in `memory.*`."""
    segments = topic.split(".")
    return any(_is(pattern.split("."), segments) for pattern in patterns)


def _is(pattern: list[str], segments: list[str]) -> bool:
    return len(pattern) == len(segments) and all(
        wanted in (_ANY, segment) for wanted, segment in zip(pattern, segments, strict=True)
    )


@dataclass(frozen=True, slots=True)
class EventDelivery:
    """One event on its way to one subscriber: which attempt this is, and the fence under which it was taken."""

    id: int
    subscriber: str
    event: Event
    attempt: int
    fence: int


class DeliveryResult(NamedTuple):
    """What became of an attempt: done; to be tried again at `again_at` (ms UTC); or given up, with an `error`.

    What was not even `tried` is pending again, and not charged.
    """

    delivery_id: int
    error: str = ""
    again_at: int | None = None
    tried: bool = True


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class SubscriberLine:
    """A subscriber as a list shows it: `behind` lines of the journal are not looked through for it yet."""

    name: str
    topics: tuple[str, ...]
    behind: int
    pending: int
    processing: int
    dead: int


@dataclass(frozen=True, slots=True)
class Subscribe(Commit[None]):
    """Tell a subscriber of these topics from now on, or `from_start` of what is kept of them.

    For one that is known only the topics change. What it was working on is pending again, and what waits for a time is
    due: whoever subscribes is its only process, and who set that time may have had another clock.
    """

    name: str
    topics: tuple[str, ...]
    at: int
    from_start: bool = False


@dataclass(frozen=True, slots=True)
class Unsubscribe(Commit[bool]):
    """Tell a subscriber of nothing any more; what was on its way to it goes too. False when it is not known."""

    name: str


@dataclass(frozen=True, slots=True)
class Distribute(Commit[int]):
    """Make deliveries of what the next lines tell, for every subscriber; returns how many events that were.

    `events_max` of those who have come equally far; a line is never divided.
    """

    at: int
    events_max: int = 512


@dataclass(frozen=True, slots=True)
class TakeDeliveries(Commit[tuple[EventDelivery, ...]]):
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


@dataclass(frozen=True, slots=True)
class SettleDeliveries(Commit[int]):
    """Write down what became of deliveries; returns how many of them were still held under the fence."""

    subscriber: str
    fence: int
    settled: tuple[DeliveryResult, ...]
    at: int


@dataclass(frozen=True, slots=True)
class DecideDelivery(Commit[bool]):
    """A person's word on a delivery that was given up: try it `again`, or dismiss it. False when it is not dead."""

    delivery_id: int
    at: int
    again: bool
