"""Side work under way, as the context needs it."""

from __future__ import annotations

from typing import Protocol

from keepsaid.domain.lane import Lane


class SideWork(Protocol):
    """What the agent itself has started beside its turns; never what a rule spawned."""

    async def lines(self, lane: Lane) -> tuple[str, ...]:
        """One line for each piece under way in a lane, newest first."""
        ...
