"""What happened, read only: events, subscribers, and deliveries on their way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.event import DeliveryLine, Event, SubscriberLine


class JournalView(Protocol):
    """Reads the journal; the commits of `domain/event.py` write it, and most others."""

    @property
    def hint(self) -> asyncio.Event:
        """Set after a commit of this process that may have told of something; for one to wait for, and to clear."""
        ...

    async def events(self, after: int, limit: int) -> Sequence[Event]:
        """The events with ids above `after`, oldest first: those of about `limit` lines, each told to its end."""
        ...

    async def latest(self, limit: int) -> Sequence[Event]:
        """The newest events, oldest first."""
        ...

    async def happened(self, topic: str, correlation_id: str, after: int) -> Event | None:
        """The first event of this topic about this, with an id above `after`; None when there is none.

        Only of those that came alone: what is told of several at once, such as messages, is not looked through.
        """
        ...

    async def subscribers(self) -> Sequence[SubscriberLine]:
        """Who is told of what, and how far that is."""
        ...

    async def deliveries(self, states: Sequence[str], subscriber: str, limit: int) -> Sequence[DeliveryLine]:
        """Deliveries in these states, newest event first; of one subscriber, or of all for ""."""
        ...

    async def next_delivery(self, subscriber: str, after: int = -1) -> int | None:
        """When the next attempt for a subscriber is due after a time (ms UTC); None when nothing is."""
        ...
