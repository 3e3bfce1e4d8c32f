"""Slots: questions that wait for an answer, moved by the commits of turns and of resets."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.adapters.ram.state import LaneRow
from keepsaid.domain.effects import ClearSlot, FillSlot, OpenSlot
from keepsaid.domain.slot import TAKEN_OVER, Slot, SlotState
from keepsaid.domain.states import move


def open_slot(lane: LaneRow, effect: OpenSlot, place: tuple[int, int]) -> None:
    """Ask; `place` is the turn and the time. What the person was asked here before is cleared."""
    turn_id, at = place
    for slot in pending(lane):
        if slot.person == effect.person:
            _end(lane, slot, "clear", at, TAKEN_OVER)
    anchor, until = f"reply:{turn_id}", at + effect.lasts_ms
    lane.slots[turn_id] = Slot(turn_id, effect.person, effect.question, anchor, at, until)


def fill_slot(lane: LaneRow, effect: FillSlot, at: int) -> None:
    """An open slot of this lane was answered."""
    slot = lane.slots.get(effect.slot_id)
    if slot is not None and slot.state is SlotState.OPEN:
        answered = replace(slot, filled_by=f"message:{effect.message_id}", value=effect.value)
        _end(lane, answered, "fill", at)


def clear_slot(lane: LaneRow, effect: ClearSlot, at: int) -> None:
    """An open slot of this lane ends without an answer."""
    slot = lane.slots.get(effect.slot_id)
    if slot is not None and slot.state is SlotState.OPEN:
        _end(lane, slot, effect.verb, at, effect.reason)


def clear_lane(lane: LaneRow, reason: str, at: int) -> None:
    """Nothing is asked in this lane any more."""
    for slot in pending(lane):
        _end(lane, slot, "clear", at, reason)


def _end(lane: LaneRow, slot: Slot, verb: str, at: int, reason: str = "") -> None:
    state = SlotState(move("slot", slot.state, verb))
    lane.slots[slot.id] = replace(slot, state=state, ended_at=at, reason=reason)


def pending(lane: LaneRow) -> tuple[Slot, ...]:
    """The open slots of a lane, oldest first."""
    return tuple(slot for _, slot in sorted(lane.slots.items()) if slot.state is SlotState.OPEN)
