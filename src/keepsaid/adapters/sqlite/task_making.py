"""Tasks made: by somebody's word all or none, and with what a turn or a branch leaves behind."""

from __future__ import annotations

import apsw

from keepsaid.adapters.sqlite.outbox import keep_for_owner
from keepsaid.adapters.sqlite.query import numbers, one
from keepsaid.adapters.sqlite.routing import lane_id_of
from keepsaid.adapters.sqlite.task_rows import SQL, tasks_of, tell
from keepsaid.domain.ids import show
from keepsaid.domain.task import DEPTH_MAX, TOO_DEEP, CreateTasks, NewTask, Task, planned
from keepsaid.domain.work import TaskKind, encoded


def create(db: apsw.Connection, commit: CreateTasks) -> str:
    """Make tasks, wave by wave."""
    ordered, refused = planned(commit.tasks)
    if refused:
        return refused
    made = {task.id for task in ordered}
    for task in ordered:
        known = {found.id: found for found in tasks_of(db, [number for number in task.after if number not in made])}
        for number in task.after:
            found = known.get(number)
            if number not in made and (found is None or found.state in ("failed", "cancelled")):
                return f"{show('task', number)} {'does not exist' if found is None else f'is {found.state}'}"
    for task in ordered:
        keep(db, task, commit.at)
    return ""


def keep(db: apsw.Connection, task: NewTask, at: int, *, relays: bool = True) -> None:
    """Write one down: it is pending, blocked while it waits for others, or failed with one of them, or too deep.

    What a turn asked for in its lane comes back there by itself, unless it is not to (`relays`). A call that waits for
    approval is not made where the same one waits or runs already.
    """
    if task.review and task.kind is TaskKind.CALL and one(db, SQL["same_call"], (task.key,)) is not None:
        return
    earlier = {found.id: found for found in tasks_of(db, task.after)}
    lost = next((number for number in task.after if _is_lost(earlier.get(number))), None)
    waits = any(number not in earlier or earlier[number].state != "completed" for number in task.after)
    reason = "" if lost is None else f"{show('task', lost)}, which it waits for, came to nothing"
    reason = TOO_DEEP if task.depth > DEPTH_MAX else reason
    state = "failed" if reason else "needs_review" if task.review else "blocked" if waits else "pending"
    reason = reason or task.review
    at_end = at if state == "failed" else None
    lane_id = None if task.lane is None else lane_id_of(db, task.lane)
    place = (task.id, task.key or show("task", task.id), str(task.kind), state, lane_id, task.turn_id, task.depth)
    work = (task.description, encoded(task.terms), task.outside, task.priority)
    relay = relays and lane_id is not None and task.turn_id is not None
    db.execute(SQL["keep"], (*place, *work, reason, at, at_end, relay, task.expires_at))
    if task.after:
        db.execute(SQL["keep_after"], (task.id, numbers(task.after)))
    tell(db, "created", task.id, at, kind=str(task.kind), after=len(task.after))
    if state == "failed":
        tell(db, "failed", task.id, at, attempts=0, **({} if lost is None else {"upstream": lost}))
    elif state == "needs_review":
        tell(db, state, task.id, at, attempts=0)
        if task.notice is not None:
            keep_for_owner(db, task.notice, at, task.id)


def _is_lost(task: Task | None) -> bool:
    return task is None or task.state in ("failed", "cancelled")
