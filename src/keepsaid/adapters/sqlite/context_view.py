"""What readers see of the contexts of lanes."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.adapters.sqlite import context, reminders, summaries
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.domain.context import LaneSummary, LaneTail, Reminders, Span, Stretch
from keepsaid.domain.lane import Lane


class SqliteContexts:
    """The contexts of lanes, read only."""

    _readers: Readers

    async def context(self, lane: Lane, limit: int) -> LaneTail:
        """The summary in force and the records after it."""
        return await self._readers.run(context.context, lane, limit)

    async def reminders(self, lane: Lane, turns: int, blocks: int) -> Reminders:
        """What a lane was reminded of."""
        return await self._readers.run(reminders.reminders, lane, turns, blocks)

    async def span(self, lane: Lane, after: int, limit: int) -> Span:
        """The oldest records after a position."""
        return await self._readers.run(context.span, lane, after, limit)

    async def past(self, lane: Lane) -> tuple[Stretch, ...]:
        """Every span that left the lane's context."""
        return await self._readers.run(context.past, lane)

    async def summaries_due(self, limit: int) -> Sequence[LaneSummary]:
        """Summaries of which memory has no copy yet."""
        return await self._readers.run(summaries.due, limit)

    async def summaries_of(self, lane: Lane, keep: int) -> Sequence[LaneSummary]:
        """The summaries a conversation is made of."""
        return await self._readers.run(summaries.of_conversation, lane, keep)
