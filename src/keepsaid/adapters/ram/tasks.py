"""Tasks: claimed, decided, and what turns want of them; those that wait for others are let go, or fail with them."""

from __future__ import annotations

import json
from dataclasses import replace

from keepsaid.adapters.ram.state import State
from keepsaid.adapters.ram.task_ends import ended
from keepsaid.adapters.ram.task_making import keep, tell
from keepsaid.adapters.ram.task_view import in_line
from keepsaid.domain.commits import Prune
from keepsaid.domain.effects import JudgeTask, MakeTask, OfTask, RelayTask, StopTask
from keepsaid.domain.lane import Lane
from keepsaid.domain.relay import TellBack
from keepsaid.domain.retention import Pruned
from keepsaid.domain.states import move
from keepsaid.domain.task import (
    CALL_EXPIRED,
    ENDED,
    FORGOTTEN,
    CancelTask,
    ClaimTasks,
    DecideTask,
    ExpireTasks,
    RenewTask,
    ResultsKept,
    RunTask,
    Task,
    TellStatus,
    made_of,
)
from keepsaid.domain.work import WorkTerms


def claim(state: State, commit: ClaimTasks) -> tuple[Task, ...]:
    """Lease tasks that are due; of one key only one at a time."""
    rows = [row for row in in_line(state, commit.kind) if row.task.ready_at <= commit.at][: commit.limit]
    keys: set[str] = set()
    claimed = []
    for row in rows:
        if row.key not in keys:
            keys.add(row.key)
            task = row.task
            began = commit.at if task.started_at is None else task.started_at
            row.go("start", fence=task.fence + 1, started_at=began, reason="")
            row.owner, row.lease_until = commit.owner, commit.lease_until
            tell(state, "started", row.id, commit.at, attempt=task.attempts + 1)
            claimed.append(row.task)
    return tuple(claimed)


def renew(state: State, commit: RenewTask) -> bool:
    """Move the end of a lease that is still held."""
    row = state.held_task(commit.task_id, commit.fence)
    if row is not None:
        row.lease_until = commit.lease_until
    return row is not None


def status(state: State, commit: TellStatus) -> bool:
    """Keep what a worker says of its task."""
    row = state.held_task(commit.task_id, commit.fence)
    if row is not None:
        row.put(status=commit.text)
    return row is not None


def run_now(state: State, commit: RunTask) -> bool:
    """Make a pending task due."""
    row = state.tasks.get(commit.task_id)
    if row is None or row.state != "pending":
        return False
    row.put(ready_at=min(row.task.ready_at, commit.at))
    return True


def cancel(state: State, commit: CancelTask) -> bool:
    """End a task by somebody's word."""
    row = state.tasks.get(commit.task_id)
    if row is None or row.state in ENDED:
        return False
    row.go("cancel", reason=commit.reason, ended_at=commit.at)
    row.relay = 0
    tell(state, "cancelled", row.id, commit.at)
    ended(state, row.id, commit.reason, commit.at)
    return True


def expire(state: State, commit: ExpireTasks) -> int:
    """Fail what waited for a person too long."""
    waiting = (row for row in state.tasks.values() if row.state == "needs_review" and row.task.expires_at is not None)
    overdue = sorted(row.id for row in waiting if (row.task.expires_at or 0) <= commit.at)
    for task_id in overdue:
        decide(state, DecideTask(task_id, commit.at, False, CALL_EXPIRED))
    return len(overdue)


def decide(state: State, commit: DecideTask) -> bool:
    """A person's word on a parked task."""
    row = state.tasks.get(commit.task_id)
    if row is None or row.state != "needs_review":
        return False
    if commit.approved and row.task.expires_at is not None and row.task.expires_at <= commit.at:
        return False
    if not commit.approved:
        row.go("fail", reason=commit.reason, ended_at=commit.at)
        tell(state, "failed", row.id, commit.at, attempts=row.task.attempts)
        ended(state, row.id, commit.reason, commit.at)
        return True
    left = row.call_left
    if left is not None and commit.result is None:
        del row.steps[left]
    elif left is not None:
        step = row.steps[left]
        step.output, step.step = json.dumps(commit.result), replace(step.step, state=move("step", "started", "finish"))
    anew = {"attempts": 0, "crashes": 0, "deferrals": 0, "deferred_from": None}
    row.go("approve", ready_at=commit.at, reason="", **anew)
    return True


def obey(state: State, effect: OfTask, lane: Lane, made_by: tuple[int, int]) -> None:
    """What a turn asks for; `made_by` is its id, and when."""
    turn_id, at = made_by
    match effect:
        case MakeTask():
            keep(state, made_of(effect, lane, turn_id, 1), at)
        case StopTask():
            cancel(state, CancelTask(effect.task_id, at, effect.reason))
        case JudgeTask():
            decide(state, DecideTask(effect.task_id, at, effect.approved, effect.reason))
        case RelayTask():
            row = state.tasks.get(effect.task_id)
            if row is not None and row.task.lane == lane and row.relay in (1, 2):
                row.relay = 3


def told_back(state: State, commit: TellBack) -> int:
    """Results were received in their lanes."""
    rows = [row for one in commit.task_ids if (row := state.tasks.get(one)) is not None and row.relay == 1]
    for row in rows:
        row.relay, row.told_at = 2, commit.at
    return len(rows)


def kept(state: State, commit: ResultsKept) -> int:
    """Results are in memory."""
    rows = [row for one in commit.task_ids if (row := state.tasks.get(one)) is not None and not row.remembered]
    for row in rows:
        row.remembered = True
        state.staged.pop(row.id, None)
    return len(rows)


def scrub(state: State, task_id: int, at: int) -> bool:
    """Forget the words of a task and of its steps; one that has not ended is cancelled. False when there were none."""
    row = state.tasks.get(task_id)
    if row is None or not row.description:
        return False
    cancel(state, CancelTask(task_id, at, FORGOTTEN))
    row.put(key="", description="", status="", result="", reason="", terms=WorkTerms())
    row.steps, row.remembered, row.relay = {}, True, 0
    state.staged.pop(task_id, None)
    return True


def scrub_made_by(state: State, turn_id: int, at: int) -> int:
    """Forget the words of the tasks that a turn made; returns how many there were."""
    made = [one.id for one in state.tasks.values() if one.task.turn_id == turn_id]
    return sum(scrub(state, task_id, at) for task_id in made)


def prune(state: State, commit: Prune) -> Pruned:
    """Remove the oldest that ended; how many went before says that it goes on."""
    held = {one for row in state.tasks.values() if row.task.ended_at is None for one in row.task.after}
    held |= {batch.task_id or 0 for batch in state.batches.values() if batch.pruned_at is None}
    old = [
        (row.task.ended_at, row.id)
        for row in state.tasks.values()
        if row.task.ended_at is not None and row.task.ended_at < commit.before and row.remembered and row.id not in held
    ]
    going = sorted(old)[: commit.rows_max]
    for _, task_id in going:
        del state.tasks[task_id]
    gone = {task_id for _, task_id in going}
    for reply in [*state.replies.values()]:
        if reply.about_task in gone and reply.state in ("sent", "not_deliverable"):
            del state.replies[reply.draft.id]
    before = commit.after[0] if commit.after else 0
    return Pruned(0, 0, 0, (int(before) + len(going),) if len(going) == commit.rows_max else None)
