"""Tasks, read only."""

from __future__ import annotations

import json

from keepsaid.adapters.sql.operations import rows
from keepsaid.adapters.sql.operations.routing import lane_id_of
from keepsaid.adapters.sql.operations.steps import staged
from keepsaid.adapters.sql.operations.task_rows import SQL, task_of, task_or_none, tasks_of
from keepsaid.adapters.sql.query import every, one, only, reads
from keepsaid.adapters.sql.session import SqlReaders, SqlSession
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import SYSTEM
from keepsaid.domain.relay import Untold
from keepsaid.domain.staged import Wishes
from keepsaid.domain.task import Task, TaskFilter, TaskStory, TaskWork
from keepsaid.domain.turn import Step, StepKind, Usage
from keepsaid.domain.visibility import OWN_TOOLS
from keepsaid.domain.work import TaskKind

_MESSAGES_MAX = 100
_OWN_TOOLS = json.dumps(sorted(OWN_TOOLS))


def _story(db: SqlSession, task_id: int) -> TaskStory | None:
    """One task."""
    task = task_or_none(db, task_id)
    if task is None:
        return None
    waiting = tuple(row[0] for row in every(db, SQL["waiting_for"], (task_id,)))
    return TaskStory(task, _steps(db, task_id), tasks_of(db, task.after), waiting)


def _steps(db: SqlSession, task_id: int) -> tuple[Step, ...]:
    return tuple(
        Step(n, StepKind(kind), subject, input_hash, state, json.loads(output or "null"), Usage(*spent), bool(again))
        for n, kind, subject, input_hash, state, output, *spent, again in every(db, SQL["steps"], (task_id,))
    )


def _find(db: SqlSession, wanted: TaskFilter) -> list[Task]:
    """Tasks, newest first."""
    lane_id = None if wanted.lane is None else lane_id_of(db, wanted.lane) or 0
    bound = (wanted.state, wanted.key, lane_id, wanted.limit)
    return [task_of(row) for row in every(db, SQL["find"], bound)]


def _next_ready(db: SqlSession, kind: TaskKind) -> int | None:
    """When the next pending task may be claimed."""
    row = one(db, SQL["next_ready"], (str(kind),))
    return None if row is None else row[0]


def _next_expiry(db: SqlSession) -> int | None:
    """When the next task that waits for a person may wait no longer."""
    row = one(db, SQL["next_expiry"])
    return None if row is None else row[0]


def _results(db: SqlSession, limit: int) -> list[TaskWork]:
    """Results that memory does not have yet."""
    found = [row[0] for row in every(db, SQL["unremembered"], (limit,))]
    return [
        TaskWork(
            task,
            tuple(row[0] for row in every(db, SQL["messages_of"], (task.id, _MESSAGES_MAX))),
            _wishes(db, task),
        )
        for task in tasks_of(db, found)
    ]


def _wishes(db: SqlSession, task: Task) -> Wishes | None:
    """What a branch asked memory to do, with what its turn answered, and whether its lane holds words of outsiders."""
    deeds = staged(db, task.id)
    if not deeds or task.turn_id is None:
        return None
    batches = [int(row[0]) for row in every(db, SQL["answered_by"], (task.turn_id,))]
    messages = tuple(one for batch_id in batches for one in rows.messages_of(db, batch_id))
    [external] = only(db, SQL["heard_outside"], (task.turn_id, _OWN_TOOLS))
    return Wishes(f"task:{task.id}", task.turn_id, messages, deeds, bool(external))


def _beside(db: SqlSession, lane: Lane, limit: int) -> list[Task]:
    """What turns of a lane made and that has not ended."""
    lane_id = lane_id_of(db, lane)
    return [] if lane_id is None else [task_of(row) for row in every(db, SQL["beside"], (lane_id, limit))]


def _untold(db: SqlSession, limit: int) -> list[Untold]:
    """What lanes are to be told of."""
    lanes: dict[int, list[int]] = {}
    for task_id, lane_id in every(db, SQL["untold"], (limit,)):
        lanes.setdefault(lane_id, []).append(task_id)
    return [_of_lane(db, lane_id, tasks_of(db, ids)) for lane_id, ids in lanes.items()]


def _of_lane(db: SqlSession, lane_id: int, tasks: tuple[Task, ...]) -> Untold:
    lane = tasks[0].lane
    assert lane is not None, "only what has a lane is to be told"
    said_at, url, direct = one(db, SQL["last_said"], (lane_id, SYSTEM)) or (0, None, 0)
    [rounds] = only(db, SQL["rounds"], (lane_id, said_at))
    return Untold(lane, tasks, rounds, url, bool(direct))


class SqlTasks:
    """Tasks, read only."""

    def __init__(self, readers: SqlReaders) -> None:
        self._readers = readers

    task = reads(_story)
    find = reads(_find)
    next_ready = reads(_next_ready)
    next_expiry = reads(_next_expiry)
    beside = reads(_beside)
    untold = reads(_untold)
    results = reads(_results)
