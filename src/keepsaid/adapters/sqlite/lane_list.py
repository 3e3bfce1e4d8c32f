"""Lanes as they are listed, and every version of their summaries."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from keepsaid.adapters.sqlite.lane_view import lane_id_of
from keepsaid.adapters.sqlite.query import every
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.lane import Lane
from keepsaid.domain.summary import Made, Summary
from keepsaid.domain.views import LaneLine

SQL = load("lane_list")


def lanes(db: apsw.Connection, limit: int) -> Sequence[LaneLine]:
    """Lanes, those first where somebody spoke last."""
    return [LaneLine(Lane(*row[:4]), *row[4:]) for row in every(db, SQL["lanes"], (limit,))]


def summaries(db: apsw.Connection, lane: Lane) -> Sequence[Summary]:
    """Every version of a lane's summary, newest first."""
    lane_id = lane_id_of(db, lane)
    found = [] if lane_id is None else every(db, SQL["versions"], (lane_id,))
    return [
        Summary(version, first, last, text, Made(made), model, at)
        for version, first, last, text, made, model, at in found
    ]
