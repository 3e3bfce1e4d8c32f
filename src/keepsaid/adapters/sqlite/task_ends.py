"""The ends of tasks: what a run came to, what a death of the process means, and what becomes of those that waited."""

from __future__ import annotations

from collections import deque

import apsw

from keepsaid.adapters.sqlite import staging, steps
from keepsaid.adapters.sqlite.outbox import keep_for_owner
from keepsaid.adapters.sqlite.query import every, one
from keepsaid.adapters.sqlite.task_making import keep
from keepsaid.adapters.sqlite.task_rows import SQL, task_or_none, tell
from keepsaid.domain.effects import MakeTask
from keepsaid.domain.ids import show
from keepsaid.domain.states import move
from keepsaid.domain.task import Ending, EndTask, Task, made_of, settled, verb_after_crash


def end(db: apsw.Connection, commit: EndTask) -> str:
    """End a run."""
    task = task_or_none(db, commit.task_id)
    if task is None or task.fence != commit.fence or task.state != "running":
        return ""
    if commit.ending is not None and not steps.end_step(db, commit.ending):
        return ""
    now = settled(task, commit)
    counts = (now.attempts, now.crashes, now.ready_at, now.deferrals, now.deferred_from)
    db.execute(SQL["end"], (task.id, now.state, now.result, now.reason, *counts, now.ended_at))
    if commit.how is not Ending.RELEASE:
        db.execute(SQL["spent"], (task.id, now.usage.tokens_in, now.usage.tokens_out, now.usage.cost_micros))
    _leave(db, now, commit)
    _told(db, now, commit)
    return now.state


def _leave(db: apsw.Connection, task: Task, commit: EndTask) -> None:
    """What a completed branch wants done, and remembered."""
    for effect in commit.effects if task.state == "completed" else ():
        if isinstance(effect, MakeTask):
            keep(db, made_of(effect, task.lane, task.turn_id, task.depth + 1), commit.at)
        else:
            staging.stage(db, effect, task.id)
            db.execute(SQL["to_remember"], (task.id,))


def _told(db: apsw.Connection, task: Task, commit: EndTask) -> None:
    if task.state == "pending":
        return
    tell(db, task.state, task.id, commit.at, attempts=task.attempts)
    ended(db, task.id, task.state, task.reason, commit.at)
    if commit.notice is not None and task.is_told:
        keep_for_owner(db, commit.notice, commit.at, task.id)


def ended(db: apsw.Connection, task_id: int, state: str, reason: str, at: int) -> None:
    """Let go what waited for a task, or let it fail with it."""
    if state == "completed":
        for waiting, before in every(db, SQL["freed"], (task_id,)):
            db.execute(SQL["go"], (waiting, move("task", before, "unblock"), "", None))
    elif state in ("failed", "cancelled"):
        _cascade(db, task_id, f"{show('task', task_id)}, which it waits for, was {state}: {reason}", at)


def _cascade(db: apsw.Connection, upstream: int, reason: str, at: int) -> None:
    lost = deque([upstream])
    while lost:
        for waiting, before in every(db, SQL["waiting"], (lost.popleft(),)):
            db.execute(SQL["go"], (waiting, move("task", before, "cascade"), reason, at))
            tell(db, "failed", waiting, at, attempts=0, upstream=upstream)
            lost.append(waiting)


def void(db: apsw.Connection, owner: str, at: int) -> None:
    """The owner of what is running is dead: a crash is counted, and what becomes of each is told by its terms."""
    for (task_id,) in every(db, SQL["in_flight"], (owner,)):
        task = task_or_none(db, task_id)
        assert task is not None, "it was just found"
        left = one(db, SQL["call_left"], (task_id,)) is not None
        verb, reason = verb_after_crash(task, call_left=left)
        state = move("task", task.state, verb)
        ended_at = at if state == "failed" else None
        db.execute(SQL["crashed"], (task_id, state, task.crashes + 1, reason, at, ended_at))
        if state != "pending":
            tell(db, state, task_id, at, attempts=task.attempts)
            ended(db, task_id, state, reason, at)
    db.execute(SQL["all_soon"], (at,))


def expire(db: apsw.Connection, steady: int) -> int:
    """Leases that ran out; returns how many."""
    return _back(db, every(db, SQL["expired"], (steady,)), "expire")


def relinquish(db: apsw.Connection, owner: str) -> int:
    """What an owner holds, by its own word; returns how many."""
    return _back(db, every(db, SQL["owned"], (owner,)), "release")


def _back(db: apsw.Connection, found: list[tuple[int]], verb: str) -> int:
    for (task_id,) in found:
        db.execute(SQL["back"], (task_id, move("task", "running", verb)))
    return len(found)
