"""Sessions and pending questions, as their readers need them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.lane import Lane
from keepsaid.domain.session import Quiet, Session
from keepsaid.domain.slot import Slot


class SessionView(Protocol):
    """Reads sessions and slots of lanes."""

    async def sessions(self, lane: Lane, limit: int) -> Sequence[Session]:
        """The newest `limit` sessions of a lane, newest first."""
        ...

    async def slots(self, lane: Lane, limit: int) -> Sequence[Slot]:
        """The newest `limit` questions of a lane, newest first."""
        ...

    async def quiet_since(self) -> Quiet:
        """Since when the longest quiet lanes are."""
        ...
