"""Lanes and turns, as their readers need them."""

from __future__ import annotations

from typing import Protocol

from keepsaid.domain.lane import Lane
from keepsaid.domain.turn import Claimed, Lease
from keepsaid.domain.views import TurnStory
from keepsaid.ports.contexts import ContextView


class LaneView(ContextView, Protocol):
    """Reads transcripts and turns."""

    async def claimed(self, lease: Lease) -> Claimed | None:
        """What a lease is for: messages, open turn and recorded steps; None when the lease was lost."""
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

    async def next_trial(self) -> int | None:
        """Return the age of the process (ms) at which a trial may begin; None when no batch waits for one."""
        ...
