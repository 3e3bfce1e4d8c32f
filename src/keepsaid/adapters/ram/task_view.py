"""Tasks in memory, read only."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.adapters.ram.busy import steered_into
from keepsaid.adapters.ram.state import State, TurnRow
from keepsaid.adapters.ram.task_row import TaskRow
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import SYSTEM, Trust
from keepsaid.domain.relay import Untold
from keepsaid.domain.staged import Wishes
from keepsaid.domain.task import Task, TaskFilter, TaskStory, TaskWork
from keepsaid.domain.visibility import from_outside
from keepsaid.domain.work import TaskKind

_MESSAGES_MAX = 100


def in_line(state: State, kind: TaskKind) -> Sequence[TaskRow]:
    """Pending tasks of a kind whose key nobody is busy with, in the order in which they are begun."""
    busy = {row.key for row in state.tasks.values() if row.state == "running"}
    rows = (row for row in state.tasks.values() if row.state == "pending" and row.task.kind is kind)
    return sorted((row for row in rows if row.key not in busy), key=lambda row: (row.task.priority, row.id))


def _heard_outside(turn: TurnRow) -> bool:
    """Whether the lane of a turn holds what outsiders wrote, or tools brought since the turn's session began."""
    lane = turn.batch.lane
    if lane.external_from is not None:
        return True
    if any(one is not None and one.inbound.origin.trust is Trust.EXTERNAL for one in lane.messages):
        return True
    mine = (at for at, entry in enumerate(lane.transcript, 1) if entry.turn_id == turn.id)
    position = next(mine, len(lane.transcript) + 1)
    begins = max((one.first for one in lane.sessions if one.first <= position), default=1)
    return from_outside(entry.record for entry in lane.transcript[begins - 1 :])


class RamTasks:
    """Tasks, read only."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def task(self, task_id: int) -> TaskStory | None:
        """One task."""
        rows = self._state.tasks
        row = rows.get(task_id)
        if row is None:
            return None
        steps = tuple(row.steps[n].value for n in sorted(row.steps))
        before = tuple(rows[one].task for one in row.task.after if one in rows)
        return TaskStory(
            row.task, steps, before, tuple(sorted(one.id for one in rows.values() if task_id in one.task.after))
        )

    async def find(self, wanted: TaskFilter) -> Sequence[Task]:
        """Tasks, newest first."""
        asked = wanted.state, wanted.key, wanted.lane
        found = [
            row.task
            for _, row in sorted(self._state.tasks.items(), reverse=True)
            if all(want in (None, have) for want, have in zip(asked, (row.state, row.key, row.task.lane), strict=True))
        ]
        return found[: wanted.limit]

    async def next_ready(self, kind: TaskKind) -> int | None:
        """When the next pending task may be claimed."""
        return min((row.task.ready_at for row in in_line(self._state, kind)), default=None)

    async def next_expiry(self) -> int | None:
        """When the next task that waits for a person may wait no longer."""
        waiting = (row.task for row in self._state.tasks.values() if row.state == "needs_review")
        return min((one.expires_at for one in waiting if one.expires_at is not None), default=None)

    async def beside(self, lane: Lane, limit: int) -> Sequence[Task]:
        """What turns of a lane made and that has not ended."""
        rows = (row.task for _, row in sorted(self._state.tasks.items(), reverse=True))
        return [one for one in rows if one.lane == lane and one.turn_id is not None and one.ended_at is None][:limit]

    async def untold(self, limit: int) -> Sequence[Untold]:
        """What lanes are to be told of."""
        rows = (row for _, row in sorted(self._state.tasks.items(), reverse=True))
        found = [row.task for row in rows if row.relay == 1 and row.task.ended_at is not None][:limit]
        lanes = dict.fromkeys(one.lane for one in found if one.lane is not None)
        return [self._untold(lane, tuple(one for one in reversed(found) if one.lane == lane)) for lane in lanes]

    def _untold(self, lane: Lane, tasks: tuple[Task, ...]) -> Untold:
        messages = (one for one in reversed(self._state.lanes[lane].messages) if one is not None)
        said = next((one for one in messages if one.inbound.origin.sender != SYSTEM), None)
        since = said.received_at if said else 0
        mine = (row for row in self._state.tasks.values() if row.task.lane == lane)
        rounds = {row.told_at for row in mine if row.told_at is not None and row.told_at >= since}
        inbound = said.inbound if said else None
        url, direct = (inbound.reply_url, inbound.origin.direct) if inbound else (None, False)
        return Untold(lane, tasks, len(rounds), url, direct)

    async def results(self, limit: int) -> Sequence[TaskWork]:
        """Results that memory does not have yet."""
        rows = [row for _, row in sorted(self._state.tasks.items()) if not row.remembered][:limit]
        return [TaskWork(row.task, self._messages(row.id), self._wishes(row.task)) for row in rows]

    def _messages(self, task_id: int) -> tuple[int, ...]:
        batches = (batch for batch in self._state.batches.values() if batch.task_id == task_id)
        return tuple(sorted(message.id for batch in batches for message in batch.messages))[:_MESSAGES_MAX]

    def _wishes(self, task: Task) -> Wishes | None:
        """What a branch asked memory to do, and whether its lane holds words of outsiders."""
        deeds = tuple(self._state.staged.get(task.id, ()))
        if not deeds or task.turn_id is None:
            return None
        turn = self._state.turns.get(task.turn_id)
        if turn is None:
            return Wishes(f"task:{task.id}", task.turn_id, (), deeds, external=True)
        batches = sorted((turn.batch, *steered_into(turn)), key=lambda batch: batch.first)
        messages = tuple(message for batch in batches for message in batch.messages)
        return Wishes(f"task:{task.id}", task.turn_id, messages, deeds, _heard_outside(turn))
