"""The journal, read only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence

import apsw

from keepsaid.adapters.sqlite.query import Row, every, one, only
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.event import EACH, DeliveryLine, Event, Line, SubscriberLine, events_of

SQL = load("journal")


def _events(db: apsw.Connection, after: int, limit: int) -> list[Event]:
    """The line of `after` is read again: it may tell of more."""
    rows = every(db, SQL["lines"], (after // EACH - 1, limit + 1))
    return [event for event in _told(rows) if event.id > after]


def _latest(db: apsw.Connection, limit: int) -> list[Event]:
    return list(_told(reversed(every(db, SQL["newest_lines"], (limit,)))))[-limit:]


def _told(rows: Iterable[Row]) -> Iterable[Event]:
    return (event for row in rows for event in events_of(Line(*row)))


def _happened(db: apsw.Connection, topic: str, correlation_id: str, after: int) -> Event | None:
    row = one(db, SQL["happened"], (correlation_id, topic, after // EACH))
    return None if row is None else next(events_of(Line(*row)))


def _subscribers(db: apsw.Connection) -> list[SubscriberLine]:
    return [
        SubscriberLine(name, tuple(json.loads(topics)), *counts)
        for name, topics, *counts in every(db, SQL["subscribers"])
    ]


def _deliveries(db: apsw.Connection, states: Sequence[str], subscriber: str, limit: int) -> list[DeliveryLine]:
    return [DeliveryLine(*row) for row in every(db, SQL["deliveries"], (json.dumps(list(states)), subscriber, limit))]


def _next(db: apsw.Connection, subscriber: str, after: int) -> int | None:
    due: int | None = only(db, SQL["next_due"], (subscriber, after))[0]
    return due


class SqliteJournal:
    """What happened, and what is on its way to whom."""

    def __init__(self, readers: Readers, hint: asyncio.Event) -> None:
        self.hint = hint
        self._readers = readers

    async def events(self, after: int, limit: int) -> Sequence[Event]:
        """Up to so many lines' events above an id, oldest first."""
        return await self._readers.run(_events, after, limit)

    async def latest(self, limit: int) -> Sequence[Event]:
        """The newest events, oldest first."""
        return await self._readers.run(_latest, limit)

    async def happened(self, topic: str, correlation_id: str, after: int) -> Event | None:
        """The first event of a topic about something."""
        return await self._readers.run(_happened, topic, correlation_id, after)

    async def subscribers(self) -> Sequence[SubscriberLine]:
        """Who is told of what."""
        return await self._readers.run(_subscribers)

    async def deliveries(self, states: Sequence[str], subscriber: str, limit: int) -> Sequence[DeliveryLine]:
        """Deliveries in some states."""
        return await self._readers.run(_deliveries, states, subscriber, limit)

    async def next_delivery(self, subscriber: str, after: int = -1) -> int | None:
        """When the next attempt is due after a time."""
        return await self._readers.run(_next, subscriber, after)
