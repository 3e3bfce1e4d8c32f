"""Effects: what the tools of a turn leave behind, in the commit that settles it."""

from __future__ import annotations

from typing import assert_never

from keepsaid.adapters.ram import receipts, schedules, slots, standing, tasks
from keepsaid.adapters.ram.state import LaneRow, State
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
from keepsaid.domain.receipt import JudgeMemory
from keepsaid.domain.staged import StageMemory


def leave(state: State, commit: TurnCommit, lane: LaneRow) -> None:
    """Apply the effects of a turn, in order."""
    for effect in commit.outcome.effects:
        match effect:
            case OpenSlot():
                slots.open_slot(lane, effect, (commit.turn_id, commit.at))
            case FillSlot():
                slots.fill_slot(lane, effect, commit.at)
            case ClearSlot():
                slots.clear_slot(lane, effect, commit.at)
            case SetPersonality():
                standing.set_personality(state, effect, commit.at)
            case JudgeMemory():
                receipts.judged(state, effect, commit.at)
            case StageMemory():
                state.staged.setdefault(commit.turn_id, []).append(effect)
            case MakeTask() | StopTask() | JudgeTask() | RelayTask() | KeepTime() | EndSchedule():
                _set_about(state, effect, commit, lane)
            case Measured():
                standing.measure(state, effect)
            case _:
                assert_never(effect)


def _set_about(state: State, effect: OfTask | OfTime, commit: TurnCommit, lane: LaneRow) -> None:
    """What is to be done later: as a task, or at a time."""
    if isinstance(effect, KeepTime | EndSchedule):
        schedules.leave(state, effect, commit.turn_id, commit.at)
    else:
        tasks.obey(state, effect, lane.lane, (commit.turn_id, commit.at))
