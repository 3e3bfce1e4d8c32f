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
_COUNTED = ("messages", "priority", "ready_at", "fence", "attempts", "crashes", "deferrals", "deferred_from")


def task_of(row: Row) -> Task:
    """A row of the columns of a task."""
    task_id, key, kind, state, turn_id, depth, rule, description, terms, outside = row[:10]
    counted = dict(zip(_COUNTED, row[10:18], strict=True))
    status, result, reason = row[18:21]
    created_at, started_at, ended_at, expires_at, after = row[24:29]
    return Task(
        id=task_id,
        key=key,
        state=state,
        description=description,
        kind=TaskKind(kind),
        lane=Lane(*row[29:]) if row[29] is not None else None,
        turn_id=turn_id,
        depth=depth,
        rule=rule,
        terms=decoded(terms),
        outside=bool(outside),
        status=status,
        result=result,
        reason=reason,
        usage=Usage(*row[21:24]),
        created_at=created_at,
        started_at=started_at,
        ended_at=ended_at,
        after=tuple(json.loads(after)),
        expires_at=expires_at,
        **counted,
    )


def tasks_of(db: SqlSession, ids: Sequence[int]) -> tuple[Task, ...]:
    """These tasks, by id; those that do not exist are left out."""
    return tuple(task_of(row) for row in every(db, SQL["of"], (db.numbers(tuple(ids)),))) if ids else ()


def task_or_none(db: SqlSession, task_id: int) -> Task | None:
    return next(iter(tasks_of(db, (task_id,))), None)


def write_task_event(db: SqlSession, what: str, task_id: int, at: int, **more: Json) -> None:
    journal.write_facts(db, at, happened(what, task_id, **more))
