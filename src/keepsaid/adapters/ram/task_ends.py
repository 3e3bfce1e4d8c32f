"""The ends of tasks: what a run came to, what a death of the process means, and what becomes of those that waited."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from keepsaid.adapters.ram.outbox import keep_for_owner
from keepsaid.adapters.ram.state import State
from keepsaid.adapters.ram.steps import end_step
from keepsaid.adapters.ram.task_making import keep, tell
from keepsaid.adapters.ram.task_row import TaskRow
from keepsaid.domain.effects import MakeTask
from keepsaid.domain.ids import show
from keepsaid.domain.task import EndTask, made_of, settled, verb_after_crash


def end(state: State, commit: EndTask) -> str:
    """End a run."""
    row = state.held_task(commit.task_id, commit.fence)
    if row is None:
        return ""
    now = settled(row.task, commit)
    if commit.ending is not None and not end_step(state, commit.ending):
        return ""
    row.task, row.remembered = now, now.state != "completed" or not now.result
    if now.state == "pending":
        return now.state
    if now.state == "completed":
        _leave(state, row, commit)
    tell(state, now.state, now.id, commit.at, attempts=now.attempts)
    ended(state, now.id, now.reason, commit.at)
    if commit.notice is not None and now.is_told:
        keep_for_owner(state, commit.notice, commit.at, now.id)
    return now.state


def _leave(state: State, row: TaskRow, commit: EndTask) -> None:
    """What a completed branch wants done, and remembered."""
    for effect in commit.effects:
        if isinstance(effect, MakeTask):
            keep(state, made_of(effect, row.task.lane, row.task.turn_id, row.task.depth + 1), commit.at)
        else:
            state.staged.setdefault(row.id, []).append(effect)
            row.remembered = False


def ended(state: State, task_id: int, reason: str, at: int) -> None:
    """Let go what waited for a task, or let it fail with it."""
    now = state.tasks[task_id].state
    if now == "completed":
        for row in waiting(state, task_id):
            if all(one in state.tasks and state.tasks[one].state == "completed" for one in row.task.after):
                row.go("unblock", reason="")
    elif now in ("failed", "cancelled"):
        _cascade(state, task_id, f"{show('task', task_id)}, which it waits for, was {now}: {reason}", at)


def waiting(state: State, task_id: int) -> Sequence[TaskRow]:
    """Those that are blocked by a task."""
    found = (row for row in state.tasks.values() if row.state == "blocked" and task_id in row.task.after)
    return sorted(found, key=lambda row: row.id)


def _cascade(state: State, upstream: int, reason: str, at: int) -> None:
    lost = deque([upstream])
    while lost:
        for row in waiting(state, lost.popleft()):
            row.go("cascade", reason=reason, ended_at=at)
            tell(state, "failed", row.id, at, attempts=0, upstream=upstream)
            lost.append(row.id)


def void(state: State, owner: str, at: int) -> None:
    """The owner of what is running is dead: a crash is counted, and what becomes of each is told by its terms."""
    for row in [one for one in _running(state) if one.owner != owner]:
        verb, reason = verb_after_crash(row.task, call_left=row.call_left is not None)
        row.go(verb, crashes=row.task.crashes + 1, reason=reason, ready_at=at)
        if row.state != "pending":
            row.put(ended_at=at if row.state == "failed" else None)
            tell(state, row.state, row.id, at, attempts=row.task.attempts)
            ended(state, row.id, reason, at)
    for row in state.tasks.values():
        if row.state == "pending":
            row.put(ready_at=min(row.task.ready_at, at))


def expire(state: State, steady: int) -> int:
    """Leases that ran out; returns how many."""
    return _back([row for row in _running(state) if row.lease_until <= steady], "expire")


def relinquish(state: State, owner: str) -> int:
    """What an owner holds, by its own word; returns how many."""
    return _back([row for row in _running(state) if row.owner == owner], "release")


def _running(state: State) -> Sequence[TaskRow]:
    return sorted((row for row in state.tasks.values() if row.state == "running"), key=lambda row: row.id)


def _back(rows: Sequence[TaskRow], verb: str) -> int:
    for row in rows:
        row.go(verb)
    return len(rows)
