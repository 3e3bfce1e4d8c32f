"""Tasks and schedules with their runs, read only, and how rows of schedules read as values."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.adapters.sql.operations import files, outbox, routing, rows, turn_files
from keepsaid.adapters.sql.operations.rows import TASKS, task_of, task_or_none, tasks_of
from keepsaid.adapters.sql.query import Row, SqlSession, SqlView, as_json, column, every, load, one, only, reads, scalar
from keepsaid.domain import effects, relay, route, timing
from keepsaid.domain.message import SYSTEM, Lane, Trust
from keepsaid.domain.schedule import NewSchedule, RunOutput, Schedule, ScheduleRun, Target, What, verdict_on
from keepsaid.domain.task import Task, TaskFilter, TaskStory, TaskWork

SCHEDULES = load("schedules")
_NOWHERE = (None, None, None, None, None, False)


def schedule_of(row: Row) -> Schedule:
    """A schedule of the columns that `parts.sql` names."""
    what = (timing.timing_of(row[3]), What(row[4]), row[5], _target(row[6:12]), Trust(row[12]))
    return Schedule(NewSchedule(*(*row[:3], *what, *map(bool, row[13:15]))), *row[15:])


def run_of(row: Row) -> ScheduleRun:
    """A run of the columns that `parts.sql` names."""
    return ScheduleRun(*(*row[:5], _target(row[5:11]), *row[11:]))


def _target(row: Row) -> Target | None:
    channel, account, conversation, key, url, direct = row
    return None if channel is None else Target(Lane(channel, account, conversation, key), url, bool(direct))


def content_of(new: NewSchedule) -> tuple[object, ...]:
    """The columns of what is asked for, from `what` to `whenever`."""
    place = _NOWHERE if new.target is None else (*new.target.lane, new.target.url, new.target.direct)
    return (str(new.what), timing.written(new.timing), new.text, *place, str(new.trust), new.urgent, new.whenever)


def _due(db: SqlSession, at: int, limit: int, *, once: bool = True) -> list[Schedule]:
    return [schedule_of(row) for row in every(db, SCHEDULES["due"], (at, limit, once))]


def _next_due(db: SqlSession) -> int | None:
    return scalar(db, SCHEDULES["next_due"])


def _ready(db: SqlSession, at: int, limit: int, errands: int) -> list[tuple[ScheduleRun, Schedule]]:
    found = [*every(db, SCHEDULES["ready"], (at, 0, limit)), *every(db, SCHEDULES["ready"], (at, 1, errands))]
    return [(run, schedule_of(only(db, SCHEDULES["one"], (run.schedule_id,)))) for run in map(run_of, found)]


def _list_unsettled_outputs(db: SqlSession, limit: int) -> list[RunOutput]:
    outputs = (RunOutput(*row) for row in every(db, SCHEDULES["heard"], (limit,)))
    return [output for output in outputs if verdict_on(output)[0]]


def _list_orphaned_runs(db: SqlSession, limit: int) -> list[ScheduleRun]:
    return [run_of(row) for row in every(db, SCHEDULES["worked"], (limit,))]


def _schedule(db: SqlSession, schedule_id: int) -> Schedule | None:
    return next(map(schedule_of, every(db, SCHEDULES["one"], (schedule_id,))), None)


def _schedules(db: SqlSession, states: Sequence[str], after: int, limit: int) -> list[Schedule]:
    return [schedule_of(row) for row in every(db, SCHEDULES["list"], (as_json(states), after, limit))]


def _runs(db: SqlSession, schedule_id: int, limit: int) -> list[ScheduleRun]:
    return [run_of(row) for row in every(db, SCHEDULES["runs"], (schedule_id, limit))]


def _latest(db: SqlSession) -> int | None:
    return scalar(db, SCHEDULES["latest"])


class SqlSchedules(SqlView):
    """Schedules and their runs, read only."""

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


def _story(db: SqlSession, task_id: int) -> TaskStory | None:
    if (task := task_or_none(db, task_id)) is None:
        return None
    steps = tuple(map(rows.step, every(db, TASKS["steps"], (task_id,))))
    waiting = tuple(column(db, TASKS["waiting_for"], (task_id,)))
    return TaskStory(task, steps, tasks_of(db, task.after), waiting)


def _find(db: SqlSession, wanted: TaskFilter) -> list[Task]:
    lane_id = None if wanted.lane is None else routing.lane_id_of(db, wanted.lane) or 0
    bound = (wanted.state, wanted.key, lane_id, wanted.limit)
    return [task_of(row) for row in every(db, TASKS["find"], bound)]


def _next_ready(db: SqlSession, kind: route.TaskKind) -> int | None:
    return scalar(db, TASKS["next_ready"], (str(kind),))


def _next_expiry(db: SqlSession) -> int | None:
    return scalar(db, TASKS["next_expiry"])


def _results(db: SqlSession, limit: int) -> list[TaskWork]:
    found = []
    for task in tasks_of(db, column(db, TASKS["unremembered"], (limit,))):
        messages = tuple(column(db, TASKS["messages_of"], (task.id, _MESSAGES_MAX)))
        found.append(TaskWork(task, messages, _read_staged_requests(db, task)))
    return found


def _read_staged_requests(db: SqlSession, task: Task) -> effects.StagedRequests | None:
    """Read the memory requests that a branch staged, with the messages its turn answered; None if there are none."""
    requests = outbox.staged(db, task.id)
    if not requests or task.turn_id is None:
        return None
    batches = column(db, TASKS["answered_by"], (task.turn_id,))
    messages = tuple(message for batch_id in batches for message in rows.messages_of(db, batch_id))
    [external] = only(db, TASKS["heard_outside"], (task.turn_id, rows.OWN_TOOLS))
    return effects.StagedRequests(f"task:{task.id}", task.turn_id, messages, requests, bool(external))


def _list_open_tasks(db: SqlSession, lane: Lane, limit: int) -> list[Task]:
    return [task_of(row) for row in every(db, TASKS["beside"], (*lane, limit))]


def _list_ended_tasks(db: SqlSession, lane: Lane, since: int, limit: int) -> list[Task]:
    return [task_of(row) for row in every(db, TASKS["ended_beside"], (*lane, since, limit))]


def _list_unreported_tasks(db: SqlSession, limit: int) -> list[relay.UnreportedTasks]:
    lanes: dict[int, list[int]] = {}
    for task_id, lane_id in every(db, TASKS["untold"], (limit,)):
        lanes.setdefault(lane_id, []).append(task_id)
    return [_of_lane(db, lane_id, tasks_of(db, ids)) for lane_id, ids in lanes.items()]


def _of_lane(db: SqlSession, lane_id: int, tasks: tuple[Task, ...]) -> relay.UnreportedTasks:
    lane = tasks[0].lane
    assert lane is not None, "a task without a lane is never reported"
    said_at, url, direct, *_ = one(db, TASKS["last_said"], (lane_id, SYSTEM)) or (0, None, 0)
    [rounds] = only(db, TASKS["rounds"], (lane_id, said_at))
    return relay.UnreportedTasks(lane, tasks, rounds, url, bool(direct))


class SqlTasks(SqlView):
    """Tasks, read only."""

    task = reads(_story)
    find = reads(_find)
    next_ready = reads(_next_ready)
    next_expiry = reads(_next_expiry)
    list_open_tasks = reads(_list_open_tasks)
    list_ended_tasks = reads(_list_ended_tasks)
    list_unreported_tasks = reads(_list_unreported_tasks)
    results = reads(_results)


class SqlFiles(SqlView):
    """Reads files: those that came with messages, and those of turns."""

    next_due = reads(files.next_due)
    of_messages = reads(files.of_messages)
    placed = reads(files.placed)
    content = reads(files.content)
    payload = reads(files.payload)
    turn_file = reads(turn_files.placed)
    attached = reads(turn_files.attached)
    turn_content = reads(turn_files.content)
