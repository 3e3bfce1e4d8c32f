"""Lanes as they are listed, and every version of their summaries."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.adapters.ram.state import OPEN_BATCHES, LaneRow, State
from keepsaid.domain.lane import Lane
from keepsaid.domain.summary import Summary
from keepsaid.domain.views import LaneLine


class RamLaneList:
    """Lanes and their summaries, read only."""

    _state: State

    async def lanes(self, limit: int) -> Sequence[LaneLine]:
        """Lanes, those first where somebody spoke last."""
        newest_first = sorted(self._state.lanes.values(), key=lambda row: row.last_id, reverse=True)
        return [_line(row) for row in newest_first[:limit]]

    async def line(self, lane: Lane) -> LaneLine | None:
        """One lane as it is listed."""
        row = self._state.lanes.get(lane)
        return None if row is None else _line(row)

    async def summaries(self, lane: Lane) -> Sequence[Summary]:
        """Every version of a lane's summary, newest first."""
        row = self._state.lanes.get(lane)
        return [] if row is None else row.context.summaries[::-1]


def _line(row: LaneRow) -> LaneLine:
    last, context = row.messages[-1], row.context
    waiting = row.head - row.batched + sum(b.last - b.first + 1 for b in row.batches if b.state in OPEN_BATCHES)
    return LaneLine(
        row.lane,
        0 if last is None else last.received_at,
        waiting,
        row.sessions[-1].state if row.sessions else "-",
        0 if context.summary is None else context.summary.version,
        len(row.transcript) - context.covered,
    )
