"""Lanes and turns, as their readers need them."""

from __future__ import annotations

from typing import Protocol

from keepsaid.domain.context import LaneTail, Span, Stretch
from keepsaid.domain.lane import Lane
from keepsaid.domain.turn import Claimed, Lease
from keepsaid.domain.views import TurnStory


class LaneView(Protocol):
    """Reads transcripts and turns."""

    async def claimed(self, lease: Lease) -> Claimed | None:
        """What a lease is for: messages, open turn and recorded steps; None when the lease was lost."""
        ...

    async def context(self, lane: Lane, limit: int) -> LaneTail:
        """The summary in force and the last `limit` records after what it covers and what was cut, oldest first.

        Never a tool's result without its call.
        """
        ...

    async def span(self, lane: Lane, after: int, limit: int) -> Span:
        """The first `limit` records of a lane's transcript after a position, as prompts show them, oldest first."""
        ...

    async def past(self, lane: Lane) -> tuple[Stretch, ...]:
        """Every span that left the lane's context, in order; together they reach from the first record to the tail."""
        ...

    async def turn(self, turn_id: int) -> TurnStory | None:
        """One turn with all that is recorded of it."""
        ...

    async def last_turn(self, lane: Lane | None) -> int | None:
        """The newest settled turn of a lane, or of all lanes."""
        ...

    async def next_ready(self) -> int | None:
        """When the next queued batch may be claimed; None when none is queued."""
        ...
