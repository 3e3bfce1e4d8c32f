"""Schedules and their runs, read only; and how their rows read as values."""

from __future__ import annotations

import json
from collections.abc import Sequence

from keepsaid.adapters.sql.query import every, load, one, only, reads
from keepsaid.adapters.sql.session import Row, SqlReaders, SqlSession
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Trust
from keepsaid.domain.schedule import NewSchedule, RunOutput, Schedule, ScheduleRun, Target, What, verdict_on
from keepsaid.domain.timing import timing_of, written

_NOWHERE = (None, None, None, None, None, False)


def schedule_of(row: Row) -> Schedule:
    """A schedule of the columns that `parts.sql` names."""
    number, source, name, timing, what, text = row[:6]
    trust, urgent, whenever, state, next_at, failures, reason, created_at = row[12:]
    asked = number, source, name, timing_of(timing), What(what), text
    new = NewSchedule(*asked, _target(row[6:12]), Trust(trust), bool(urgent), bool(whenever))
    return Schedule(new, state, next_at, failures, reason, created_at)


def run_of(row: Row) -> ScheduleRun:
    """A run of the columns that `parts.sql` names."""
    message_id, reply_id, reason, fired_at, ended_at, task_id = row[11:]
    schedule_id, due_at, state, ready_at, output = row[:5]
    heard = output, _target(row[5:11]), message_id, reply_id
    return ScheduleRun(schedule_id, due_at, state, ready_at, *heard, reason, fired_at, ended_at, task_id)


def _target(row: Row) -> Target | None:
    channel, account, conversation, key, url, direct = row
    return None if channel is None else Target(Lane(channel, account, conversation, key), url, bool(direct))


def place_of(target: Target | None) -> tuple[object, ...]:
    """The columns of who hears of it."""
    return _NOWHERE if target is None else (*target.lane, target.url, target.direct)


def content_of(new: NewSchedule) -> tuple[object, ...]:
    """The columns of what is asked for, from `what` to `whenever`."""
    asked = str(new.what), written(new.timing), new.text
    return (*asked, *place_of(new.target), str(new.trust), new.urgent, new.whenever)


SQL = load("schedules")


def _due(db: SqlSession, at: int, limit: int, *, once: bool = True) -> list[Schedule]:
    """Active schedules whose time has come."""
    return [schedule_of(row) for row in every(db, SQL["due"], (at, limit, once))]


def _next_due(db: SqlSession) -> int | None:
    """When the next comes, or a run may begin."""
    due: int | None = only(db, SQL["next_due"])[0]
    return due


def _ready(db: SqlSession, at: int, limit: int, errands: int) -> list[tuple[ScheduleRun, Schedule]]:
    """Runs that may begin."""
    rows = [*every(db, SQL["ready"], (at, 0, limit)), *every(db, SQL["ready"], (at, 1, errands))]
    runs = [run_of(row) for row in rows]
    return [(run, schedule_of(only(db, SQL["one"], (run.schedule_id,)))) for run in runs]


def _heard(db: SqlSession, limit: int) -> list[RunOutput]:
    """Runs whose output can be settled further."""
    return [heard for row in every(db, SQL["heard"], (limit,)) if verdict_on(heard := RunOutput(*row))[0]]


def _worked(db: SqlSession, limit: int) -> list[ScheduleRun]:
    """Runs whose task has ended."""
    return [run_of(row) for row in every(db, SQL["worked"], (limit,))]


def _schedule(db: SqlSession, schedule_id: int) -> Schedule | None:
    """One schedule."""
    row = one(db, SQL["one"], (schedule_id,))
    return None if row is None else schedule_of(row)


def _schedules(db: SqlSession, states: Sequence[str], after: int, limit: int) -> list[Schedule]:
    """Schedules in these states."""
    return [schedule_of(row) for row in every(db, SQL["list"], (json.dumps(list(states)), after, limit))]


def _runs(db: SqlSession, schedule_id: int, limit: int) -> list[ScheduleRun]:
    """The runs of a schedule, latest first."""
    return [run_of(row) for row in every(db, SQL["runs"], (schedule_id, limit))]


def _latest(db: SqlSession) -> int | None:
    """The latest time at which a run was made."""
    latest: int | None = only(db, SQL["latest"])[0]
    return latest


class SqlSchedules:
    """Schedules and their runs."""

    def __init__(self, readers: SqlReaders) -> None:
        self._readers = readers

    due = reads(_due)
    next_due = reads(_next_due)
    ready = reads(_ready)
    heard = reads(_heard)
    worked = reads(_worked)
    schedule = reads(_schedule)
    schedules = reads(_schedules)
    runs = reads(_runs)
    latest = reads(_latest)
