"""Tasks made: by somebody's word all or none, and with what a turn or a branch leaves behind."""

from __future__ import annotations

from keepsaid.adapters.ram.outbox import keep_for_owner
from keepsaid.adapters.ram.state import State
from keepsaid.adapters.ram.task_row import TaskRow
from keepsaid.domain.ids import show
from keepsaid.domain.prompt import Json
from keepsaid.domain.task import DEPTH_MAX, TOO_DEEP, CreateTasks, NewTask, Task, happened, planned
from keepsaid.domain.work import TaskKind

_LOST = ("failed", "cancelled")


def tell(state: State, what: str, task_id: int, at: int, **more: Json) -> None:
    """Write to the journal what happened to a task."""
    state.told(at, happened(what, task_id, **more))


def create(state: State, commit: CreateTasks) -> str:
    """Make tasks, wave by wave."""
    ordered, refused = planned(commit.tasks)
    if refused:
        return refused
    made = {task.id for task in ordered}
    for task in ordered:
        for number in (one for one in task.after if one not in made):
            if number not in state.tasks:
                return f"{show('task', number)} does not exist"
            if state.tasks[number].state in _LOST:
                return f"{show('task', number)} is {state.tasks[number].state}"
    for task in ordered:
        keep(state, task, commit.at)
    return ""


def keep(state: State, task: NewTask, at: int, *, relays: bool = True) -> None:
    """Write one down: it is pending, blocked while it waits for others, or failed with one of them, or too deep.

    What a turn asked for in its lane comes back there by itself, unless it is not to (`relays`). A call that waits for
    approval is not made where the same one waits or runs already.
    """
    if task.review and task.kind is TaskKind.CALL and _same_call(state, task.key):
        return
    before = {one: state.tasks[one].state for one in task.after if one in state.tasks}
    lost = next((one for one in task.after if before.get(one, _LOST[0]) in _LOST), None)
    waits = any(before.get(one) != "completed" for one in task.after)
    reason = "" if lost is None else f"{show('task', lost)}, which it waits for, came to nothing"
    reason = TOO_DEEP if task.depth > DEPTH_MAX else reason
    made = Task(
        id=task.id,
        key=task.key or show("task", task.id),
        state="failed" if reason else "needs_review" if task.review else "blocked" if waits else "pending",
        description=task.description,
        kind=task.kind,
        lane=task.lane if task.lane in state.lanes else None,
        turn_id=task.turn_id,
        depth=task.depth,
        terms=task.terms,
        outside=task.outside,
        priority=task.priority,
        after=tuple(sorted(set(task.after))),
        reason=reason or task.review,
        created_at=at,
        ended_at=at if reason else None,
        expires_at=task.expires_at,
    )
    relay = relays and made.lane is not None and made.turn_id is not None
    state.tasks[task.id] = TaskRow(made, relay=int(relay))
    tell(state, "created", task.id, at, kind=str(task.kind), after=len(task.after))
    if reason:
        tell(state, "failed", task.id, at, attempts=0, **({} if lost is None else {"upstream": lost}))
    elif task.review:
        tell(state, "needs_review", task.id, at, attempts=0)
        if task.notice is not None:
            keep_for_owner(state, task.notice, at, task.id)


def _same_call(state: State, key: str) -> bool:
    rows = (row.task for row in state.tasks.values())
    return any(
        one.key == key and one.kind is TaskKind.CALL and one.state in ("needs_review", "pending", "running")
        for one in rows
    )
