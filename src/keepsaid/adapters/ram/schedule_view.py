"""Schedules, read only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from keepsaid.adapters.ram.schedule_row import ScheduleRow
from keepsaid.adapters.ram.state import BatchRow, ReplyRow, State
from keepsaid.domain.schedule import Heard, Run, Schedule, What, verdict_on
from keepsaid.domain.timing import Once


class RamSchedules:
    """Schedules and their runs."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def due(self, at: int, limit: int, *, once: bool = True) -> Sequence[Schedule]:
        """Active schedules whose time has come."""
        due = [(row.next_at, row) for row in self._active() if row.next_at is not None and row.next_at <= at]
        due = [one for one in due if once or not isinstance(one[1].new.timing, Once)]
        return [row.value for _, row in sorted(due, key=lambda one: (one[0], one[1].new.id))][:limit]

    async def next_due(self) -> int | None:
        """When the next comes, or a run may begin."""
        times = [row.next_at for row in self._active() if row.next_at is not None]
        times += [row.run.ready_at for row in self._state.runs.values() if row.run.state == "due"]
        return min(times, default=None)

    async def ready(self, at: int, limit: int, errands: int) -> Sequence[tuple[Run, Schedule]]:
        """Runs that may begin."""
        runs = [row.run for row in self._state.runs.values() if row.run.state == "due" and row.run.ready_at <= at]
        runs.sort(key=lambda run: (run.ready_at, run.schedule_id, run.due_at))
        due = [(run, self._state.schedules[run.schedule_id].value) for run in runs]
        said = [one for one in due if one[1].new.what is not What.RUN][:limit]
        return [*said, *[one for one in due if one[1].new.what is What.RUN][:errands]]

    async def heard(self, limit: int) -> Sequence[Heard]:
        """Runs whose output can be settled further."""
        found = (self._heard(row.run) for row in self._state.runs.values() if row.run.output in ("asked", "waiting"))
        return [one for one in found if verdict_on(one)[0]][:limit]

    def _heard(self, run: Run) -> Heard:
        message = self._state.messages.get(run.message_id or 0)
        batch = None if message is None else self._state.lanes[message.lane].batch_of(message.number)
        reply = self._state.replies.get(run.reply_id or 0) or _reply(self._state, batch)
        stands = "" if message is None else "received" if batch is None else batch.state
        reason = "" if batch is None else batch.error or batch.verdict.reason
        if reply is None:
            return Heard(run.schedule_id, run.due_at, run.output, stands, reason)
        answered = reply.draft.id, reply.state, reply.detail
        return Heard(run.schedule_id, run.due_at, run.output, stands, reason, *answered)

    async def worked(self, limit: int) -> Sequence[Run]:
        """Runs whose task has ended."""
        under_way = (row.run for row in self._state.runs.values() if row.run.state == "running")
        return [run for run in under_way if run.task_id is not None and self._is_over(run.task_id)][:limit]

    def _is_over(self, task_id: int) -> bool:
        row = self._state.tasks.get(task_id)
        return row is None or row.task.ended_at is not None

    async def schedule(self, schedule_id: int) -> Schedule | None:
        """One schedule."""
        row = self._state.schedules.get(schedule_id)
        return None if row is None else row.value

    async def schedules(self, states: Sequence[str], after: int, limit: int) -> Sequence[Schedule]:
        """Schedules in these states."""
        rows = sorted(self._state.schedules.items())
        return [row.value for number, row in rows if number > after and row.state in states][:limit]

    async def runs(self, schedule_id: int, limit: int) -> Sequence[Run]:
        """The runs of a schedule, latest first."""
        mine = [row.run for row in self._state.runs.values() if row.run.schedule_id == schedule_id]
        return sorted(mine, key=lambda run: -run.due_at)[:limit]

    async def latest(self) -> int | None:
        """The latest time at which a run was made."""
        return max((row.run.fired_at for row in self._state.runs.values()), default=None)

    def _active(self) -> Iterable[ScheduleRow]:
        return (row for row in self._state.schedules.values() if row.state == "active")


def _reply(state: State, batch: BatchRow | None) -> ReplyRow | None:
    if batch is None or batch.state != "done":
        return None
    replies = list(batch.replies)
    if batch.steered is not None:
        replies += state.turns[batch.steered].batch.replies
    return next((reply for reply in replies if not reply.draft.notice), None)
