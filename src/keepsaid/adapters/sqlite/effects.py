"""Effects: what the tools of a turn leave behind, in the commit that settles it."""

from __future__ import annotations

from typing import assert_never

import apsw

from keepsaid.adapters.sqlite import receipts, slots, staging, standing, tasks
from keepsaid.adapters.sqlite.query import only
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.effects import (
    ClearSlot,
    FillSlot,
    JudgeTask,
    MakeTask,
    Measured,
    OpenSlot,
    SetPersonality,
    StopTask,
)
from keepsaid.domain.feedback import JudgeMemory
from keepsaid.domain.lane import Lane
from keepsaid.domain.staged import StageMemory

_LANE = load("turns")["lane"]


def leave(db: apsw.Connection, commit: TurnCommit, lane_id: int) -> None:
    """Apply the effects of a turn, in order."""
    for effect in commit.outcome.effects:
        match effect:
            case OpenSlot():
                slots.open_slot(db, effect, lane_id, (commit.turn_id, commit.at))
            case FillSlot():
                slots.fill_slot(db, effect, lane_id, commit.at)
            case ClearSlot():
                slots.clear_slot(db, effect, lane_id, commit.at)
            case SetPersonality():
                standing.set_personality(db, effect, commit.at)
            case JudgeMemory():
                receipts.judged(db, effect, commit.at)
            case StageMemory():
                staging.stage(db, effect, commit.turn_id)
            case MakeTask() | StopTask() | JudgeTask():
                tasks.obey(db, effect, Lane(*only(db, _LANE, (lane_id,))), (commit.turn_id, commit.at))
            case Measured():
                standing.measure(db, effect)
            case _:
                assert_never(effect)
