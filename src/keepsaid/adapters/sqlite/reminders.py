"""What a lane was reminded of: kept with its turns, so that it outlives restarts and compaction."""

from __future__ import annotations

import apsw

from keepsaid.adapters.sqlite import rows
from keepsaid.adapters.sqlite.query import every
from keepsaid.adapters.sqlite.routing import lane_id_of
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.context import Block, Reminders
from keepsaid.domain.lane import Lane
from keepsaid.domain.receipt import block_in
from keepsaid.domain.taint import taint_in

SQL = load("reminders")


def reminders(db: apsw.Connection, lane: Lane, turns: int, blocks: int) -> Reminders:
    """The memories of the last turns, and the last blocks, oldest first."""
    lane_id = lane_id_of(db, lane)
    if lane_id is None:
        return Reminders()
    lately = frozenset(row[0] for row in every(db, SQL["lately"], (lane_id, turns))) if turns > 0 else frozenset()
    last = every(db, SQL["reminded"], (lane_id, blocks)) if blocks > 0 else []
    found = (_block(db, lane_id, turn_id) for (turn_id,) in reversed(last))
    return Reminders(tuple(block for block in found if block is not None), lately)


def _block(db: apsw.Connection, lane_id: int, turn_id: int) -> Block | None:
    begins = every(db, SQL["begins"], (lane_id, turn_id))
    trace = rows.trace(db, turn_id)
    text = block_in(trace)
    if not begins or not text:
        return None
    shown = tuple(row[0] for row in every(db, SQL["shown"], (turn_id,)))
    return Block(begins[0][0], text, shown, taint_in(trace).trust)
