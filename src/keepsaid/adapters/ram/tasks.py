"""Tasks: made, claimed and decided; those that wait for others are let go, or fail with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from keepsaid.adapters.ram.state import State
from keepsaid.adapters.ram.task_ends import ended, tell
from keepsaid.adapters.ram.task_row import TaskRow
from keepsaid.domain.commits import Prune
from keepsaid.domain.effects import JudgeTask, MakeTask, OfTask, RelayTask, StopTask
from keepsaid.domain.ids import show
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import SYSTEM
from keepsaid.domain.relay import TellBack, Untold
from keepsaid.domain.retention import Pruned
from keepsaid.domain.states import move
from keepsaid.domain.task import (
    DEPTH_MAX,
    ENDED,
    FORGOTTEN,
    CancelTask,
    ClaimTasks,
    CreateTasks,
    Cycle,
    DecideTask,
    NewTask,
    RenewTask,
    ResultsKept,
    RunTask,
    Task,
    TaskFilter,
    TaskStory,
    TaskWork,
    TellStatus,
    from_turn,
    waves,
)
from keepsaid.domain.work import TaskKind

_MESSAGES_MAX = 100
_LOST = ("failed", "cancelled")


def create(state: State, commit: CreateTasks) -> str:
    """Make tasks, wave by wave."""
    try:
        ordered = [task for wave in waves(commit.tasks) for task in wave]
    except Cycle as circle:
        return f"they wait for one another: {' -> '.join(show('task', one) for one in circle.path)}"
    made = {task.id for task in ordered}
    for task in ordered:
        if task.depth > DEPTH_MAX:
            return f"work may make work {DEPTH_MAX} deep"
        for number in (one for one in task.after if one not in made):
            if number not in state.tasks:
                return f"{show('task', number)} does not exist"
            if state.tasks[number].state in _LOST:
                return f"{show('task', number)} is {state.tasks[number].state}"
    for task in ordered:
        keep(state, task, commit.at)
    return ""


def keep(state: State, task: NewTask, at: int) -> None:
    """Write one down: it is pending, blocked while it waits for others, or failed with one of them."""
    before = {one: state.tasks[one].state for one in task.after if one in state.tasks}
    lost = next((one for one in task.after if before.get(one, _LOST[0]) in _LOST), None)
    waits = any(before.get(one) != "completed" for one in task.after)
    made = Task(
        id=task.id,
        key=task.key or show("task", task.id),
        state="failed" if lost is not None else "blocked" if waits else "pending",
        description=task.description,
        kind=task.kind,
        lane=task.lane if task.lane in state.lanes else None,
        turn_id=task.turn_id,
        depth=task.depth,
        terms=task.terms,
        outside=task.outside,
        priority=task.priority,
        after=tuple(sorted(set(task.after))),
        created_at=at,
    )
    if lost is not None:
        made = replace(made, reason=f"{show('task', lost)}, which it waits for, came to nothing", ended_at=at)
    state.tasks[task.id] = TaskRow(made, relay=int(made.lane is not None and made.turn_id is not None))
    tell(state, "created", task.id, at, kind=str(task.kind), after=len(task.after))
    if lost is not None:
        tell(state, "failed", task.id, at, attempts=0, upstream=lost)


def claim(state: State, commit: ClaimTasks) -> tuple[Task, ...]:
    """Lease tasks that are due; of one key only one at a time."""
    rows = [row for row in _waiting(state, commit.kind) if row.task.ready_at <= commit.at][: commit.limit]
    keys: set[str] = set()
    claimed = []
    for row in rows:
        if row.key not in keys:
            keys.add(row.key)
            task = row.task
            began = commit.at if task.started_at is None else task.started_at
            row.go("start", fence=task.fence + 1, started_at=began, reason="")
            row.owner, row.lease_until = commit.owner, commit.lease_until
            tell(state, "started", row.id, commit.at, attempt=task.attempts + 1)
            claimed.append(row.task)
    return tuple(claimed)


def _waiting(state: State, kind: TaskKind) -> Sequence[TaskRow]:
    busy = {row.key for row in state.tasks.values() if row.state == "running"}
    rows = (row for row in state.tasks.values() if row.state == "pending" and row.task.kind is kind)
    return sorted((row for row in rows if row.key not in busy), key=lambda row: (row.task.priority, row.id))


def renew(state: State, commit: RenewTask) -> bool:
    """Move the end of a lease that is still held."""
    row = state.held_task(commit.task_id, commit.fence)
    if row is not None:
        row.lease_until = commit.lease_until
    return row is not None


def status(state: State, commit: TellStatus) -> bool:
    """Keep what a worker says of its task."""
    row = state.held_task(commit.task_id, commit.fence)
    if row is not None:
        row.put(status=commit.text)
    return row is not None


def run_now(state: State, commit: RunTask) -> bool:
    """Make a pending task due."""
    row = state.tasks.get(commit.task_id)
    if row is None or row.state != "pending":
        return False
    row.put(ready_at=min(row.task.ready_at, commit.at))
    return True


def cancel(state: State, commit: CancelTask) -> bool:
    """End a task by somebody's word."""
    row = state.tasks.get(commit.task_id)
    if row is None or row.state in ENDED:
        return False
    row.go("cancel", reason=commit.reason, ended_at=commit.at)
    row.relay = 0
    tell(state, "cancelled", row.id, commit.at)
    ended(state, row.id, commit.reason, commit.at)
    return True


def decide(state: State, commit: DecideTask) -> bool:
    """A person's word on a parked task."""
    row = state.tasks.get(commit.task_id)
    if row is None or row.state != "needs_review":
        return False
    if not commit.approved:
        row.go("fail", reason=commit.reason, ended_at=commit.at)
        tell(state, "failed", row.id, commit.at, attempts=row.task.attempts)
        ended(state, row.id, commit.reason, commit.at)
        return True
    left = row.call_left
    if left is not None and commit.result is None:
        del row.steps[left]
    elif left is not None:
        step = row.steps[left]
        step.output, step.step = json.dumps(commit.result), replace(step.step, state=move("step", "started", "finish"))
    anew = {"attempts": 0, "crashes": 0, "deferrals": 0, "deferred_from": None}
    row.go("approve", ready_at=commit.at, reason="", **anew)
    return True


def obey(state: State, effect: OfTask, lane: Lane, made_by: tuple[int, int]) -> None:
    """What a turn asks for; `made_by` is its id, and when."""
    turn_id, at = made_by
    match effect:
        case MakeTask():
            keep(state, from_turn(effect, lane, turn_id), at)
        case StopTask():
            cancel(state, CancelTask(effect.task_id, at, effect.reason))
        case JudgeTask():
            decide(state, DecideTask(effect.task_id, at, effect.approved, effect.reason))
        case RelayTask():
            row = state.tasks.get(effect.task_id)
            if row is not None and row.task.lane == lane and row.relay in (1, 2):
                row.relay = 3


def told_back(state: State, commit: TellBack) -> int:
    """Results were received in their lanes."""
    rows = [row for one in commit.task_ids if (row := state.tasks.get(one)) is not None and row.relay == 1]
    for row in rows:
        row.relay, row.told_at = 2, commit.at
    return len(rows)


def kept(state: State, commit: ResultsKept) -> int:
    """Results are in memory."""
    rows = [row for one in commit.task_ids if (row := state.tasks.get(one)) is not None and not row.remembered]
    for row in rows:
        row.remembered = True
    return len(rows)


def scrub(state: State, task_id: int, at: int) -> bool:
    """Forget the words of a task and of its steps; one that has not ended is cancelled. False when there were none."""
    row = state.tasks.get(task_id)
    if row is None or not row.description:
        return False
    cancel(state, CancelTask(task_id, at, FORGOTTEN))
    row.put(description="", status="", result="", reason="")
    row.steps, row.remembered, row.relay = {}, True, 0
    return True


def scrub_made_by(state: State, turn_id: int, at: int) -> int:
    """Forget the words of the tasks that a turn made; returns how many there were."""
    made = [one.id for one in state.tasks.values() if one.task.turn_id == turn_id]
    return sum(scrub(state, task_id, at) for task_id in made)


def prune(state: State, commit: Prune) -> Pruned:
    """Remove the oldest that ended; how many went before says that it goes on."""
    held = {one for row in state.tasks.values() if row.task.ended_at is None for one in row.task.after}
    held |= {batch.task_id or 0 for batch in state.batches.values() if batch.pruned_at is None}
    old = [
        (row.task.ended_at, row.id)
        for row in state.tasks.values()
        if row.task.ended_at is not None and row.task.ended_at < commit.before and row.remembered and row.id not in held
    ]
    going = sorted(old)[: commit.rows_max]
    for _, task_id in going:
        del state.tasks[task_id]
    before = commit.after[0] if commit.after else 0
    return Pruned(0, 0, 0, (int(before) + len(going),) if len(going) == commit.rows_max else None)


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
        return min((row.task.ready_at for row in _waiting(self._state, kind)), default=None)

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
        return [TaskWork(row.task, self._messages(row.id)) for row in rows]

    def _messages(self, task_id: int) -> tuple[int, ...]:
        batches = (batch for batch in self._state.batches.values() if batch.task_id == task_id)
        return tuple(sorted(message.id for batch in batches for message in batch.messages))[:_MESSAGES_MAX]
