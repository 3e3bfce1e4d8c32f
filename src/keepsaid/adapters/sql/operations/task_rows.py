"""Tasks as rows: how they read as values, and what the journal tells of them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from keepsaid.adapters.sql.operations import journal
from keepsaid.adapters.sql.query import every, load
from keepsaid.adapters.sql.session import Row, SqlSession
from keepsaid.domain.lane import Lane
from keepsaid.domain.prompt import Json
from keepsaid.domain.task import Task, happened
from keepsaid.domain.turn import Usage
from keepsaid.domain.work import TaskKind, decoded

SQL = load("tasks")
_COLUMNS: tuple[str, ...] = ("id", "key", "kind", "state", "turn_id", "depth", "rule", "description", "terms")
_COLUMNS += ("outside", "messages", "priority", "ready_at", "fence", "attempts", "crashes", "deferrals")
_COLUMNS += ("deferred_from", "status", "result", "reason", "created_at", "started_at", "ended_at", "expires_at")


def task_of(row: Row) -> Task:
    """A row of the columns of a task: the usage after its reason, what it waits for and its lane at the end."""
    columns = dict(zip(_COLUMNS, (*row[:21], *row[24:28]), strict=True))
    columns |= {"kind": TaskKind(row[2]), "terms": decoded(row[8]), "outside": bool(row[9])}
    lane = None if row[29] is None else Lane(*row[29:])
    return Task(**columns, lane=lane, usage=Usage(*row[21:24]), after=tuple(json.loads(row[28])))


def tasks_of(db: SqlSession, ids: Sequence[int]) -> tuple[Task, ...]:
    """These tasks, by id; those that do not exist are left out."""
    return tuple(task_of(row) for row in every(db, SQL["of"], (db.numbers(tuple(ids)),))) if ids else ()


def task_or_none(db: SqlSession, task_id: int) -> Task | None:
    return next(iter(tasks_of(db, (task_id,))), None)


def write_task_event(db: SqlSession, what: str, task_id: int, at: int, **more: Json) -> None:
    journal.write_facts(db, at, happened(what, task_id, **more))
