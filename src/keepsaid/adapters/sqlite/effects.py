"""Effects: what the tools of a turn leave behind, in the commit that settles it."""

from __future__ import annotations

from typing import assert_never

import apsw

from keepsaid.adapters.sqlite import receipts, schedules, slots, staging, standing, tasks
from keepsaid.adapters.sqlite.query import only
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.effects import (
    ClearSlot,
    EndSchedule,
    FillSlot,
    JudgeTask,
    KeepTime,
    MakeTask,
    Measured,
    OfTask,
    OfTime,
    OpenSlot,
    RelayTask,
    SetPersonality,
    StopTask,
)
from keepsaid.domain.lane import Lane
from keepsaid.domain.receipt import JudgeMemory
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
            case MakeTask() | StopTask() | JudgeTask() | RelayTask() | KeepTime() | EndSchedule():
                _set_about(db, effect, commit, lane_id)
            case Measured():
                standing.measure(db, effect)
            case _:
                assert_never(effect)


def _set_about(db: apsw.Connection, effect: OfTask | OfTime, commit: TurnCommit, lane_id: int) -> None:
    """What is to be done later: as a task, or at a time."""
    if isinstance(effect, KeepTime | EndSchedule):
        schedules.leave(db, effect, commit.turn_id, commit.at)
    else:
        tasks.obey(db, effect, Lane(*only(db, _LANE, (lane_id,))), (commit.turn_id, commit.at))
