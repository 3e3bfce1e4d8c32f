"""Slots: questions that wait for an answer, moved by the commits of turns and of resets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import apsw

from keepsaid.adapters.sqlite.query import Row, every, one
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.effects import ClearSlot, FillSlot, OpenSlot
from keepsaid.domain.slot import TAKEN_OVER, Expected, Question, Slot, SlotState
from keepsaid.domain.states import move

SQL = load("slots")


def open_slot(db: apsw.Connection, effect: OpenSlot, lane_id: int, place: tuple[int, int]) -> None:
    """Ask; `place` is the turn and the time. What the person was asked here before is cleared."""
    turn_id, at = place
    for row in every(db, SQL["pending_of"], (lane_id, effect.person)):
        _end(db, row, "clear", at, reason=TAKEN_OVER)
    asked = effect.question
    told = (asked.text, str(asked.expected), json.dumps(asked.options), f"reply:{turn_id}", at, at + effect.lasts_ms)
    db.execute(SQL["open_slot"], (turn_id, lane_id, effect.person, *told))


def fill_slot(db: apsw.Connection, effect: FillSlot, lane_id: int, at: int) -> None:
    """An open slot of this lane was answered."""
    state = one(db, SQL["slot_state"], (effect.slot_id, lane_id))
    if state is not None and state[0] == SlotState.OPEN:
        filled_by = f"message:{effect.message_id}"
        _end(db, (effect.slot_id, state[0]), "fill", at, filled_by=filled_by, value=effect.value)


def clear_slot(db: apsw.Connection, effect: ClearSlot, lane_id: int, at: int) -> None:
    """An open slot of this lane ends without an answer."""
    state = one(db, SQL["slot_state"], (effect.slot_id, lane_id))
    if state is not None and state[0] == SlotState.OPEN:
        _end(db, (effect.slot_id, state[0]), effect.verb, at, reason=effect.reason)


def clear_lane(db: apsw.Connection, lane_id: int, reason: str, at: int) -> None:
    """Nothing is asked in this lane any more."""
    for row in every(db, SQL["open_of_lane"], (lane_id,)):
        _end(db, row, "clear", at, reason=reason)


def _end(db: apsw.Connection, row: Row, verb: str, at: int, **told: str) -> None:
    slot_id, state = row
    said = (told.get("reason", ""), told.get("filled_by", ""), told.get("value", ""))
    db.execute(SQL["end_slot"], (slot_id, move("slot", state, verb), *said, at))


def pending(db: apsw.Connection, lane_id: int) -> tuple[Slot, ...]:
    """The open slots of a lane, oldest first."""
    return tuple(_slot(row) for row in every(db, SQL["open_slots"], (lane_id,)))


def slots(db: apsw.Connection, lane_id: int, limit: int) -> Sequence[Slot]:
    """The slots of a lane, newest first."""
    return [_slot(row) for row in every(db, SQL["slots"], (lane_id, limit))]


def _slot(row: Row) -> Slot:
    question = Question(row[2], Expected(row[3]), tuple(json.loads(row[4])))
    anchor, opened_at, expires_at, state, filled_by, value, reason, ended_at = row[5:]
    asked = Slot(row[0], row[1], question, anchor, opened_at, expires_at, SlotState(state))
    return replace(asked, filled_by=filled_by, value=value, reason=reason, ended_at=ended_at)
