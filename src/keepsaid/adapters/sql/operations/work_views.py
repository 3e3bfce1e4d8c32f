"""Tasks and schedules with their runs, read only, and how rows of schedules read as values."""

from __future__ import annotations

import json
from collections.abc import Sequence

from keepsaid.adapters.sql.operations import rows
from keepsaid.adapters.sql.operations.routing import lane_id_of
from keepsaid.adapters.sql.operations.steps import staged
from keepsaid.adapters.sql.operations.task_rows import SQL as TASKS
from keepsaid.adapters.sql.operations.task_rows import task_of, task_or_none, tasks_of
from keepsaid.adapters.sql.query import every, load, one, only, reads
from keepsaid.adapters.sql.session import Row, SqlReaders, SqlSession
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import SYSTEM, Trust
from keepsaid.domain.relay import UnreportedTasks
from keepsaid.domain.schedule import NewSchedule, RunOutput, Schedule, ScheduleRun, Target, What, verdict_on
from keepsaid.domain.staged import StagedRequests
from keepsaid.domain.task import Task, TaskFilter, TaskStory, TaskWork
from keepsaid.domain.timing import timing_of, written
from keepsaid.domain.turn import Step, StepKind, Usage
from keepsaid.domain.visibility import OWN_TOOLS
from keepsaid.domain.work import TaskKind

SQL = load("schedules")
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


def _list_unsettled_outputs(db: SqlSession, limit: int) -> list[RunOutput]:
    """Runs whose output can be settled further."""
    return [heard for row in every(db, SQL["heard"], (limit,)) if verdict_on(heard := RunOutput(*row))[0]]


def _list_orphaned_runs(db: SqlSession, limit: int) -> list[ScheduleRun]:
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
    list_unsettled_outputs = reads(_list_unsettled_outputs)
    list_orphaned_runs = reads(_list_orphaned_runs)
    schedule = reads(_schedule)
    schedules = reads(_schedules)
    runs = reads(_runs)
    latest = reads(_latest)


_MESSAGES_MAX = 100
_OWN_TOOLS = json.dumps(sorted(OWN_TOOLS))


def _story(db: SqlSession, task_id: int) -> TaskStory | None:
    """One task."""
    task = task_or_none(db, task_id)
    if task is None:
        return None
    waiting = tuple(row[0] for row in every(db, TASKS["waiting_for"], (task_id,)))
    return TaskStory(task, _steps(db, task_id), tasks_of(db, task.after), waiting)


def _steps(db: SqlSession, task_id: int) -> tuple[Step, ...]:
    return tuple(
        Step(n, StepKind(kind), subject, input_hash, state, json.loads(output or "null"), Usage(*spent), bool(again))
        for n, kind, subject, input_hash, state, output, *spent, again in every(db, TASKS["steps"], (task_id,))
    )


def _find(db: SqlSession, wanted: TaskFilter) -> list[Task]:
    """Tasks, newest first."""
    lane_id = None if wanted.lane is None else lane_id_of(db, wanted.lane) or 0
    bound = (wanted.state, wanted.key, lane_id, wanted.limit)
    return [task_of(row) for row in every(db, TASKS["find"], bound)]


def _next_ready(db: SqlSession, kind: TaskKind) -> int | None:
    """When the next pending task may be claimed."""
    row = one(db, TASKS["next_ready"], (str(kind),))
    return None if row is None else row[0]


def _next_expiry(db: SqlSession) -> int | None:
    """When the next task that waits for a person may wait no longer."""
    row = one(db, TASKS["next_expiry"])
    return None if row is None else row[0]


def _results(db: SqlSession, limit: int) -> list[TaskWork]:
    """Results that memory does not have yet."""
    found = [row[0] for row in every(db, TASKS["unremembered"], (limit,))]
    return [
        TaskWork(
            task,
            tuple(row[0] for row in every(db, TASKS["messages_of"], (task.id, _MESSAGES_MAX))),
            _read_staged_requests(db, task),
        )
        for task in tasks_of(db, found)
    ]


def _read_staged_requests(db: SqlSession, task: Task) -> StagedRequests | None:
    """Read the memory requests that a branch staged; None if there are none.

    They come with the messages its turn answered, and whether its lane contains text by outsiders.
    """
    deeds = staged(db, task.id)
    if not deeds or task.turn_id is None:
        return None
    batches = [int(row[0]) for row in every(db, TASKS["answered_by"], (task.turn_id,))]
    messages = tuple(one for batch_id in batches for one in rows.messages_of(db, batch_id))
    [external] = only(db, TASKS["heard_outside"], (task.turn_id, _OWN_TOOLS))
    return StagedRequests(f"task:{task.id}", task.turn_id, messages, deeds, bool(external))


def _list_open_tasks(db: SqlSession, lane: Lane, limit: int) -> list[Task]:
    """Tasks that turns of a lane made and that have not ended."""
    lane_id = lane_id_of(db, lane)
    return [] if lane_id is None else [task_of(row) for row in every(db, TASKS["beside"], (lane_id, limit))]


def _list_unreported_tasks(db: SqlSession, limit: int) -> list[UnreportedTasks]:
    """Ended tasks that were not reported to their lanes yet, by lane."""
    lanes: dict[int, list[int]] = {}
    for task_id, lane_id in every(db, TASKS["untold"], (limit,)):
        lanes.setdefault(lane_id, []).append(task_id)
    return [_of_lane(db, lane_id, tasks_of(db, ids)) for lane_id, ids in lanes.items()]


def _of_lane(db: SqlSession, lane_id: int, tasks: tuple[Task, ...]) -> UnreportedTasks:
    lane = tasks[0].lane
    assert lane is not None, "only what has a lane is to be told"
    said_at, url, direct = one(db, TASKS["last_said"], (lane_id, SYSTEM)) or (0, None, 0)
    [rounds] = only(db, TASKS["rounds"], (lane_id, said_at))
    return UnreportedTasks(lane, tasks, rounds, url, bool(direct))


class SqlTasks:
    """Tasks, read only."""

    def __init__(self, readers: SqlReaders) -> None:
        self._readers = readers

    task = reads(_story)
    find = reads(_find)
    next_ready = reads(_next_ready)
    next_expiry = reads(_next_expiry)
    list_open_tasks = reads(_list_open_tasks)
    list_unreported_tasks = reads(_list_unreported_tasks)
    results = reads(_results)
