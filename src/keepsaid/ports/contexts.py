"""The contexts of lanes, as turns, compaction and memory need them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.context import LaneSummary, LaneTail, Reminders, Span, Stretch
from keepsaid.domain.lane import Lane


class ContextView(Protocol):
    """Reads what a lane shows, what left it, and its summaries."""

    async def context(self, lane: Lane, limit: int) -> LaneTail:
        """The summary in force and the last `limit` records after what it covers and what was cut, oldest first.

        Never a tool's result without its call.
        """
        ...

    async def reminders(self, lane: Lane, turns: int, blocks: int) -> Reminders:
        """What a lane was reminded of: in its last `turns` turns, and the last `blocks` blocks that are in force.

        A block whose turn was summarised or cut is not.
        """
        ...

    async def span(self, lane: Lane, after: int, limit: int) -> Span:
        """The first `limit` records of a lane's transcript after a position, as prompts show them, oldest first."""
        ...

    async def past(self, lane: Lane) -> tuple[Stretch, ...]:
        """Every span that left the lane's context, in order; together they reach from the first record to the tail."""
        ...

    async def summaries_due(self, limit: int) -> Sequence[LaneSummary]:
        """The newest summaries of lanes of which memory has no copy yet."""
        ...

    async def summaries_of(self, lane: Lane, keep: int) -> Sequence[LaneSummary]:
        """Of each lane of a lane's conversation the newest summary that leaves its newest `keep` records out."""
        ...
