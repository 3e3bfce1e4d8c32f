"""Lanes as they are listed, and every version of their summaries."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from keepsaid.adapters.sqlite.context import summary_of
from keepsaid.adapters.sqlite.query import Row, every, one
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.adapters.sqlite.routing import lane_id_of
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.lane import Lane
from keepsaid.domain.summary import Summary
from keepsaid.domain.views import LaneLine

SQL = load("lane_list")


class SqliteLaneList:
    """Lanes and their summaries, read only."""

    _readers: Readers

    async def lanes(self, limit: int) -> Sequence[LaneLine]:
        """Lanes, those first where somebody spoke last."""
        return await self._readers.run(_lanes, limit)

    async def line(self, lane: Lane) -> LaneLine | None:
        """One lane as it is listed."""
        return await self._readers.run(_line, lane)

    async def summaries(self, lane: Lane) -> Sequence[Summary]:
        """Every version of a lane's summary, newest first."""
        return await self._readers.run(_summaries, lane)


def _lanes(db: apsw.Connection, limit: int) -> Sequence[LaneLine]:
    return [_read(row) for row in every(db, SQL["lanes"], (limit,))]


def _line(db: apsw.Connection, lane: Lane) -> LaneLine | None:
    row = one(db, SQL["line"], lane)
    return None if row is None else _read(row)


def _read(row: Row) -> LaneLine:
    return LaneLine(Lane(*row[:4]), *row[4:])


def _summaries(db: apsw.Connection, lane: Lane) -> Sequence[Summary]:
    lane_id = lane_id_of(db, lane)
    return [] if lane_id is None else [summary_of(row) for row in every(db, SQL["versions"], (lane_id,))]
