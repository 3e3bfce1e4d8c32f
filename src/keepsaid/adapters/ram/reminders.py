"""What a lane was reminded of."""

from __future__ import annotations

import json

from keepsaid.adapters.ram.state import LaneRow, State, TurnRow
from keepsaid.domain.context import Block, Reminders
from keepsaid.domain.lane import Lane
from keepsaid.domain.receipt import block_in
from keepsaid.domain.taint import taint_in


def reminders(state: State, lane: Lane, turns: int, blocks: int) -> Reminders:
    """The memories of the last turns, and the last blocks, oldest first."""
    row = state.lanes.get(lane)
    if row is None:
        return Reminders()
    settled = [turn for turn in state.turns.values() if turn.batch.lane is row and turn.state == "committed"]
    settled.sort(key=lambda turn: turn.id, reverse=True)
    lately = frozenset(one for turn in settled[: max(0, turns)] for one in turn.chosen)
    reminded = [turn for turn in settled if turn.chosen][: max(0, blocks)]
    found = (_block(row, turn) for turn in reversed(reminded))
    return Reminders(tuple(block for block in found if block is not None), lately)


def _block(row: LaneRow, turn: TurnRow) -> Block | None:
    text, covered = block_in(json.loads(turn.trace)), row.context.covered
    begins = next(
        (
            position
            for position, entry in enumerate(row.transcript, 1)
            if position > covered and entry.turn_id == turn.id and not entry.unprompted
        ),
        None,
    )
    return (
        None if begins is None or not text else Block(begins, text, turn.chosen, taint_in(json.loads(turn.trace)).trust)
    )
