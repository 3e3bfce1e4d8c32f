"""What readers see of the contexts of lanes."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.adapters.ram import context, reminders, summaries
from keepsaid.adapters.ram.state import State
from keepsaid.domain.context import LaneSummary, LaneTail, Reminders, Span, Stretch
from keepsaid.domain.lane import Lane


class RamContexts:
    """The contexts of lanes, read only."""

    _state: State

    async def context(self, lane: Lane, limit: int) -> LaneTail:
        """The summary in force and the records after it."""
        return context.context(self._state, lane, limit)

    async def reminders(self, lane: Lane, turns: int, blocks: int) -> Reminders:
        """What a lane was reminded of."""
        return reminders.reminders(self._state, lane, turns, blocks)

    async def span(self, lane: Lane, after: int, limit: int) -> Span:
        """The oldest records after a position."""
        return context.span(self._state, lane, after, limit)

    async def past(self, lane: Lane) -> tuple[Stretch, ...]:
        """Every span that left the lane's context."""
        return context.past(self._state, lane)

    async def summaries_due(self, limit: int) -> Sequence[LaneSummary]:
        """Summaries of which memory has no copy yet."""
        return summaries.due(self._state, limit)

    async def summaries_of(self, lane: Lane, keep: int) -> Sequence[LaneSummary]:
        """The summaries a conversation is made of."""
        return summaries.of_conversation(self._state, lane, keep)
