"""Tasks: claimed, decided, and what turns want of them; those that wait for others are let go, or fail with them."""

from __future__ import annotations

import json

import apsw

from keepsaid.adapters.sqlite.query import every, numbers, one, run
from keepsaid.adapters.sqlite.routing import lane_id_of
from keepsaid.adapters.sqlite.staging import forget_staged
from keepsaid.adapters.sqlite.task_ends import ended
from keepsaid.adapters.sqlite.task_making import keep
from keepsaid.adapters.sqlite.task_rows import SQL, task_or_none, tasks_of, tell
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


def claim(db: apsw.Connection, commit: ClaimTasks) -> tuple[Task, ...]:
    """Lease tasks that are due; of one key only one at a time."""
    claimed: list[int] = []
    keys: set[str] = set()
    found = [row[0] for row in every(db, SQL["due"], (str(commit.kind), commit.at, commit.limit))]
    known = {task.id: task for task in tasks_of(db, found)}
    for task in (known[task_id] for task_id in found):
        if task.key not in keys:
            keys.add(task.key)
            state = move("task", task.state, "start")
            db.execute(SQL["claim"], (task.id, state, commit.owner, commit.lease_until, commit.at))
            tell(db, "started", task.id, commit.at, attempt=task.attempts + 1)
            claimed.append(task.id)
    taken = {task.id: task for task in tasks_of(db, claimed)}
    return tuple(taken[task_id] for task_id in claimed)


def renew(db: apsw.Connection, commit: RenewTask) -> bool:
    """Move the end of a lease that is still held."""
    return run(db, SQL["renew"], (commit.task_id, commit.fence, commit.lease_until)) == 1


def status(db: apsw.Connection, commit: TellStatus) -> bool:
    """Keep what a worker says of its task."""
    return run(db, SQL["status"], (commit.task_id, commit.fence, commit.text)) == 1


def run_now(db: apsw.Connection, commit: RunTask) -> bool:
    """Make a pending task due."""
    return run(db, SQL["soon"], (commit.task_id, commit.at)) == 1


def cancel(db: apsw.Connection, commit: CancelTask) -> bool:
    """End a task by somebody's word."""
    task = task_or_none(db, commit.task_id)
    if task is None or task.state in ENDED:
        return False
    db.execute(SQL["go"], (task.id, move("task", task.state, "cancel"), commit.reason, commit.at))
    tell(db, "cancelled", task.id, commit.at)
    ended(db, task.id, "cancelled", commit.reason, commit.at)
    return True


def expire(db: apsw.Connection, commit: ExpireTasks) -> int:
    """Fail what waited for a person too long."""
    overdue = [row[0] for row in every(db, SQL["overdue"], (commit.at,))]
    for task_id in overdue:
        decide(db, DecideTask(task_id, commit.at, False, CALL_EXPIRED))
    return len(overdue)


def decide(db: apsw.Connection, commit: DecideTask) -> bool:
    """A person's word on a parked task."""
    task = task_or_none(db, commit.task_id)
    if task is None or task.state != "needs_review":
        return False
    if commit.approved and task.expires_at is not None and task.expires_at <= commit.at:
        return False
    if not commit.approved:
        db.execute(SQL["go"], (task.id, move("task", task.state, "fail"), commit.reason, commit.at))
        tell(db, "failed", task.id, commit.at, attempts=task.attempts)
        ended(db, task.id, "failed", commit.reason, commit.at)
        return True
    left = one(db, SQL["call_left"], (task.id,))
    if left is not None and commit.result is None:
        db.execute(SQL["forget_call"], (task.id, left[0]))
    elif left is not None:
        state = move("step", "started", "finish")
        db.execute(SQL["end_call"], (task.id, left[0], state, json.dumps(commit.result), commit.at))
    db.execute(SQL["anew"], (task.id, move("task", task.state, "approve"), commit.at))
    return True


def obey(db: apsw.Connection, effect: OfTask, lane: Lane, made_by: tuple[int, int]) -> None:
    """What a turn asks for; `made_by` is its id, and when."""
    turn_id, at = made_by
    match effect:
        case MakeTask():
            keep(db, made_of(effect, lane, turn_id, 1), at)
        case StopTask():
            cancel(db, CancelTask(effect.task_id, at, effect.reason))
        case JudgeTask():
            decide(db, DecideTask(effect.task_id, at, effect.approved, effect.reason))
        case RelayTask():
            db.execute(SQL["relay"], (effect.task_id, lane_id_of(db, lane)))


def told_back(db: apsw.Connection, commit: TellBack) -> int:
    """Results were received in their lanes."""
    return run(db, SQL["tell_back"], (numbers(commit.task_ids), commit.at))


def kept(db: apsw.Connection, commit: ResultsKept) -> int:
    """Results are in memory."""
    for task_id in commit.task_ids:
        forget_staged(db, task_id)
    return run(db, SQL["remembered"], (numbers(commit.task_ids),))


def scrub(db: apsw.Connection, task_id: int, at: int) -> bool:
    """Forget the words of a task and of its steps; one that has not ended is cancelled. False when there were none."""
    task = task_or_none(db, task_id)
    if task is None or not task.description:
        return False
    cancel(db, CancelTask(task_id, at, FORGOTTEN))
    db.execute(SQL["scrub"], (task_id,))
    db.execute(SQL["forget_steps"], (task_id,))
    forget_staged(db, task_id)
    return True


def scrub_made_by(db: apsw.Connection, turn_id: int, at: int) -> int:
    """Forget the words of the tasks that a turn made; returns how many there were."""
    return sum(scrub(db, task_id, at) for (task_id,) in every(db, SQL["made_by"], (turn_id,)))


def prune(db: apsw.Connection, commit: Prune) -> Pruned:
    """Remove the oldest that ended; how many went before says that it goes on."""
    gone = run(db, SQL["forget_ended"], (commit.before, commit.rows_max))
    before = commit.after[0] if commit.after else 0
    return Pruned(0, 0, 0, (int(before) + gone,) if gone == commit.rows_max else None)
