"""Lanes as people look at them, as commands need them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.lane import Lane
from keepsaid.domain.summary import Summary
from keepsaid.domain.views import LaneLine


class LaneList(Protocol):
    """Lists lanes, and every summary that was made of one."""

    async def lanes(self, limit: int) -> Sequence[LaneLine]:
        """At most `limit` lanes, those first where somebody spoke last."""
        ...

    async def line(self, lane: Lane) -> LaneLine | None:
        """One lane as it is listed; None when nothing was ever said in it."""
        ...

    async def summaries(self, lane: Lane) -> Sequence[Summary]:
        """Every version of a lane's summary, newest first."""
        ...
