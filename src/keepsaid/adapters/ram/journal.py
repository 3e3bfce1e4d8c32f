"""The journal: what happened, and what is on its way to whom."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from keepsaid.adapters.ram.journal_row import DeliveryRow, SubscriptionRow
from keepsaid.adapters.ram.state import State
from keepsaid.domain.commits import Prune
from keepsaid.domain.event import (
    EACH,
    ENDLESS,
    DecideDelivery,
    Delivery,
    DeliveryLine,
    Distribute,
    Event,
    Settled,
    SettleDeliveries,
    Subscribe,
    SubscriberLine,
    TakeDeliveries,
    Unsubscribe,
    events_of,
    wants,
)
from keepsaid.domain.fact import TOLD, Happened, TellNews, of_memory, untold
from keepsaid.domain.process import ENDLESSLY
from keepsaid.domain.retention import Pruned

_OPEN = ("pending", "processing")


def subscribe(state: State, commit: Subscribe) -> None:
    """Know a subscriber, put back what it was working on, and wait for nothing that a former process waited for."""
    known = state.subscriptions.get(commit.name)
    if known is None:
        last = state.journal[-1].number if state.journal and not commit.from_start else 0
        state.subscriptions[commit.name] = SubscriptionRow(commit.topics, last)
    else:
        known.topics = commit.topics
    for row in _of(state, commit.name, "processing"):
        row.go("retry")
        row.fence = 0
    for row in _of(state, commit.name, "pending"):
        row.due_at = min(row.due_at, commit.at)


def unsubscribe(state: State, commit: Unsubscribe) -> bool:
    """Know a subscriber no more."""
    state.deliveries = {n: row for n, row in state.deliveries.items() if row.subscriber != commit.name}
    return state.subscriptions.pop(commit.name, None) is not None


def tell_news(state: State, commit: TellNews) -> int:
    """Write what happened to memories to the journal, and remember the last of it."""
    if not commit.news:
        return 0
    fresh = untold(commit.news, state.notes.get(TOLD, ("", 0))[0])
    facts = [fact for fact in map(of_memory, fresh) if fact is not None]
    for what in Happened:
        state.told_together(commit.at, [one for one in facts if one.topic == f"memory.{what}"])
    state.notes[TOLD] = commit.news[-1].mark, ENDLESSLY
    return len(facts)


def distribute(state: State, commit: Distribute) -> int:
    """Make deliveries of the next lines; those who have come equally far are counted once."""
    read: dict[int, int] = {}
    for name, row in sorted(state.subscriptions.items()):
        reached, events = row.reached, _next(state, row.reached, commit.events_max)
        for event in events:
            if wants(row.topics, event.topic):
                number = max(state.deliveries, default=0) + 1
                state.deliveries[number] = DeliveryRow(number, name, event, commit.at)
        row.reached = events[-1].id // EACH if events else reached
        read[reached] = len(events)
    return sum(read.values())


def _next(state: State, reached: int, events_max: int) -> list[Event]:
    events: list[Event] = []
    for line in state.journal:
        if line.number > reached and len(events) < events_max:
            events += events_of(line)
    return events


def take(state: State, commit: TakeDeliveries) -> tuple[Delivery, ...]:
    """Take what is due and not behind something about the same."""
    for row in _of(state, commit.subscriber, "processing"):
        if row.held_until <= commit.steady:
            row.go("retry")
            row.fence = 0
    mine = sorted(_of(state, commit.subscriber, *_OPEN), key=lambda row: row.event.id)
    first = {row.event.correlation_id: row for row in reversed(mine)}
    ready = [
        row
        for row in mine
        if row.state == "pending"
        and row.due_at <= commit.at
        and (not row.event.correlation_id or first[row.event.correlation_id] is row)
    ][: commit.limit]
    tried = next((n for n, row in enumerate(ready) if row.attempts), len(ready))
    for row in (ready := ready[: max(1, tried)]):
        row.go("take")
        row.fence, row.held_until = commit.fence, commit.steady + commit.lease_ms
        row.attempts += 1
        if row.attempts > commit.attempts_max:
            _end(row, Settled(row.id, ENDLESS), commit.at)
    return tuple(
        Delivery(row.id, row.subscriber, row.event, row.attempts, row.fence)
        for row in ready
        if row.state == "processing"
    )


def settle(state: State, commit: SettleDeliveries) -> int:
    """End attempts that are still held."""
    held = [(state.deliveries.get(one.delivery_id), one) for one in commit.settled]
    mine = [(row, one) for row, one in held if row is not None and _holds(row, commit)]
    for row, one in mine:
        _end(row, one, commit.at)
    return len(mine)


def _holds(row: DeliveryRow, commit: SettleDeliveries) -> bool:
    return (row.subscriber, row.fence, row.state) == (commit.subscriber, commit.fence, "processing")


def _end(row: DeliveryRow, settled: Settled, at: int) -> None:
    if not settled.tried:
        row.go("retry")
        row.fence, row.attempts = 0, row.attempts - 1
        return
    row.error = settled.error
    if not settled.error:
        row.go("finish")
        row.ended_at = at
    elif settled.again_at is None:
        row.go("bury")
        row.ended_at, row.due_at = at, at
    else:
        row.go("retry")
        row.due_at = settled.again_at


def decide(state: State, commit: DecideDelivery) -> bool:
    """Queue a dead delivery again, or dismiss it."""
    row = state.deliveries.get(commit.delivery_id)
    if row is None or row.state != "dead":
        return False
    row.go("requeue" if commit.again else "dismiss")
    row.attempts, row.due_at, row.ended_at = 0, commit.at, None if commit.again else commit.at
    return True


def prune(state: State, commit: Prune) -> Pruned:
    """Remove what everybody has been told of, and what nobody has to be told of; the last line stays."""
    for number, row in list(state.deliveries.items()):
        if row.state in ("done", "dismissed") and (row.ended_at or 0) < commit.before:
            del state.deliveries[number]
    reached = min((row.reached for row in state.subscriptions.values()), default=None)
    needed = {row.event.id // EACH for row in state.deliveries.values()}
    going = {
        line.number
        for line in state.journal[:-1]
        if line.at < commit.before and (reached is None or line.number <= reached) and line.number not in needed
    }
    state.journal = [line for line in state.journal if line.number not in going]
    return Pruned(0, 0, 0, None, len(going))


def _of(state: State, subscriber: str, *states: str) -> list[DeliveryRow]:
    return [row for row in state.deliveries.values() if row.subscriber == subscriber and row.state in states]


class RamJournal:
    """What happened, and what is on its way to whom."""

    def __init__(self, state: State, hint: asyncio.Event) -> None:
        self.hint = hint
        self._state = state

    async def events(self, after: int, limit: int) -> Sequence[Event]:
        """Up to so many lines' events above an id, oldest first."""
        lines = [line for line in self._state.journal if line.number >= after // EACH][: limit + 1]
        return [event for line in lines for event in events_of(line) if event.id > after]

    async def latest(self, limit: int) -> Sequence[Event]:
        """The newest events, oldest first."""
        return list(self._all())[-limit:]

    async def happened(self, topic: str, correlation_id: str, after: int) -> Event | None:
        """The first event of a topic about something."""
        about = (one for one in self._alone() if one.id // EACH > after // EACH and one.topic == topic)
        return next((one for one in about if one.correlation_id == correlation_id), None)

    def _all(self) -> Iterable[Event]:
        return (event for line in self._state.journal for event in events_of(line))

    def _alone(self) -> Iterable[Event]:
        return (next(events_of(line)) for line in self._state.journal if line.correlation_id)

    async def subscribers(self) -> Sequence[SubscriberLine]:
        """Who is told of what."""
        return [self._line(name, row) for name, row in sorted(self._state.subscriptions.items())]

    def _line(self, name: str, row: SubscriptionRow) -> SubscriberLine:
        behind = sum(line.number > row.reached for line in self._state.journal)
        counts = [len(_of(self._state, name, state)) for state in ("pending", "processing", "dead")]
        return SubscriberLine(name, row.topics, behind, *counts)

    async def deliveries(self, states: Sequence[str], subscriber: str, limit: int) -> Sequence[DeliveryLine]:
        """Deliveries in some states."""
        rows = [
            row for row in self._state.deliveries.values() if row.state in states and subscriber in ("", row.subscriber)
        ]
        rows.sort(key=lambda row: (-row.event.id, row.subscriber))
        return [
            DeliveryLine(
                row.id,
                row.subscriber,
                row.event.id,
                row.event.topic,
                row.event.correlation_id,
                row.state,
                row.attempts,
                row.due_at,
                row.error,
            )
            for row in rows[:limit]
        ]

    async def next_delivery(self, subscriber: str, after: int = -1) -> int | None:
        """When the next attempt is due after a time."""
        waiting = _of(self._state, subscriber, "pending")
        return min((row.due_at for row in waiting if row.due_at > after), default=None)
