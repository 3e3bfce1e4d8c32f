"""Routing: the waiting messages of a lane become batches, tasks and reasons for drops."""

from __future__ import annotations

from collections import Counter

from keepsaid.adapters.ram.intake import collect_rest
from keepsaid.adapters.ram.state import BatchRow, LaneRow, State
from keepsaid.adapters.ram.task_making import tell
from keepsaid.adapters.ram.task_row import TaskRow
from keepsaid.domain.batch import DESCRIPTION_CHARS_MAX, Routed, TaskDraft
from keepsaid.domain.commits import Dispatch
from keepsaid.domain.fact import ROUTED, judged
from keepsaid.domain.route import Action
from keepsaid.domain.task import Task


def dispatch(state: State, commit: Dispatch) -> bool:
    """Write the batches of a lane's waiting messages."""
    lane = state.lanes[commit.lane]
    _check(commit)
    last = commit.batches[-1].last
    if lane.batched != commit.after or last > lane.head:
        return False
    came: Counter[int] = Counter()
    for routed in commit.batches:
        batch = _extended(lane, routed, commit) or _keep(state, lane, routed, commit.at)
        came[batch.id] += routed.last - routed.first + 1
    batches = [(state.batches[number], count) for number, count in came.items()]
    facts = [judged(batch.id, count, batch.verdict, batch.task_id) for batch, count in batches]
    state.told_together(commit.at, [one for one in facts if one.topic == ROUTED])
    state.told(commit.at, *(one for one in facts if one.topic != ROUTED))
    lane.batched = last
    collect_rest(lane, commit.window, commit.at)
    return True


def _check(commit: Dispatch) -> None:
    """A gap would lose a message, a spawn without its task the work."""
    number = commit.after
    for routed in commit.batches:
        if routed.first != number + 1 or routed.last < routed.first:
            raise ValueError(f"the batches of {commit.lane} leave a gap after number {number}")
        if routed.verdict.action is Action.SPAWN and routed.task is None:
            raise ValueError(f"batch {routed.id} is spawned without a task")
        number = routed.last


def _extended(lane: LaneRow, routed: Routed, commit: Dispatch) -> BatchRow | None:
    batch = lane.batch_of(routed.first - 1)
    if batch is None or not _untouched(batch) or batch.verdict.action is not Action.FORWARD:
        return None
    verdict, window = routed.verdict, commit.window
    known = (batch.verdict.action, batch.verdict.rule, batch.verdict.version)
    if known != (verdict.action, verdict.rule, verdict.version):
        return None
    if routed.last - batch.first + 1 > window.count_max or batch.chars + routed.chars > window.chars_max:
        return None
    batch.last = routed.last
    batch.chars += routed.chars
    batch.priority = min(batch.priority, routed.priority)
    return batch


def _untouched(batch: BatchRow) -> bool:
    charged = batch.attempts or batch.crashes or batch.deferrals
    return batch.state == "queued" and not charged and batch.open_turn is None and batch.steered is None


def _keep(state: State, lane: LaneRow, routed: Routed, at: int) -> BatchRow:
    batch = BatchRow(
        id=routed.id,
        lane=lane,
        first=routed.first,
        last=routed.last,
        chars=routed.chars,
        verdict=routed.verdict,
        priority=routed.priority,
        first_at=routed.first_at,
        ready_at=at,
        created_at=at,
    )
    state.batches[batch.id] = batch
    lane.batches.append(batch)
    lane.open.append(batch)
    if routed.verdict.action is Action.DROP:
        batch.go("drop")
        batch.ended_at = at
    elif routed.task is not None:
        batch.go("spawn")
        batch.ended_at = at
        batch.task_id = _task(state, batch, routed.task)
        state.episodes_due[batch.id] = None
    return batch


def _task(state: State, batch: BatchRow, draft: TaskDraft) -> int:
    """The id of the pending task with this key, which takes the batch in, or of a new one."""
    count = batch.last - batch.first + 1
    row = next((one for one in state.tasks.values() if one.key == draft.key and one.task.takes_more), None)
    if row is not None:
        task = row.task
        more = "\n" + draft.description if len(task.description) < DESCRIPTION_CHARS_MAX else ""
        outside, priority = task.outside or draft.outside, min(task.priority, batch.priority)
        described, messages = task.description + more, task.messages + count
        row.put(description=described, messages=messages, outside=outside, priority=priority)
        return task.id
    made = Task(
        id=draft.id,
        key=draft.key,
        state="pending",
        description=draft.description,
        lane=batch.lane.lane,
        rule=batch.verdict.rule,
        terms=draft.terms,
        outside=draft.outside,
        messages=count,
        priority=batch.priority,
        created_at=batch.created_at,
    )
    state.tasks[draft.id] = TaskRow(made)
    tell(state, "created", draft.id, batch.created_at, kind=str(made.kind), after=0)
    return draft.id
