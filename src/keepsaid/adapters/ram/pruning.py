"""Pruning: what is settled and old leaves; keys, lanes and transcripts stay right without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from keepsaid.adapters.ram import journal, schedules, tasks
from keepsaid.adapters.ram.state import BatchRow, State
from keepsaid.domain.commits import BeginPruning, Prune
from keepsaid.domain.message import Message, Trust
from keepsaid.domain.prompt import Role
from keepsaid.domain.retention import Backlog, Prunable, Pruned, PruneHistory, PruneRun, Stale
from keepsaid.domain.task import ENDED
from keepsaid.domain.turn import NO_MODEL

_SETTLED = ("sent", "not_deliverable")
_OTHERS: Mapping[Stale, Callable[[State, Prune], Pruned]] = {
    Stale.EVENTS: journal.prune,
    Stale.TASKS: tasks.prune,
    Stale.RUNS: schedules.prune,
}


def begin(state: State, commit: BeginPruning) -> None:
    """Record a run."""
    state.prune_runs.insert(0, PruneRun(commit.at, max(state.messages, default=0), 0))


def history(state: State) -> PruneHistory:
    """The runs there were."""
    first = min(state.messages, default=None)
    first_at = None if first is None else state.messages[first].received_at
    return PruneHistory(tuple(state.prune_runs), first_at, sum(run.messages for run in state.prune_runs))


def prunable(state: State, messages_before: int, records_before: int) -> Prunable:
    """What a run would remove."""
    going = list(_going(state))
    messages = sum(len(one.messages) for one in going if _ended(one) < messages_before)
    return Prunable(messages, sum(_ended(one) < min(messages_before, records_before) for one in going))


def backlog(state: State) -> Backlog:
    """What waits."""
    queued = [batch for row in state.lanes.values() for batch in row.open if batch.state == "queued"]
    unrouted = [row for row in state.lanes.values() if row.oldest_at is not None]
    waiting = sum(row.head - row.batched for row in unrouted) + sum(one.last - one.first + 1 for one in queued)
    oldest = [row.oldest_at for row in unrouted if row.oldest_at is not None] + [batch.first_at for batch in queued]
    return Backlog(waiting, min(oldest, default=None))


def prune(state: State, commit: Prune) -> Pruned:
    """Remove one piece: that of one batch, or all keys."""
    if commit.what is Stale.KEYS:
        return _forget_keys(state, commit.before)
    if commit.what is Stale.FINDINGS:
        return _forget_findings(state, commit.before)
    if commit.what in _OTHERS:
        return _OTHERS[commit.what](state, commit)
    emptied = commit.what is Stale.RECORDS
    found = sorted((_ended(batch), batch.id) for batch in _going(state) if bool(batch.messages) is not emptied)
    left = [place for place in found if place[0] < commit.before and place > commit.after]
    if not left:
        return Pruned(0, 0, 0, None)
    batch = state.batches[left[0][1]]
    after = left[0] if len(left) > 1 else None
    if emptied:
        _forget_batch(state, batch)
        return Pruned(0, 1, 0, after)
    gone = batch.messages
    for message in gone:
        _forget_message(state, batch, message)
    batch.pruned_at = commit.at
    for turn in batch.turns:
        turn.steps.clear()
    if state.prune_runs:
        run = state.prune_runs[0]
        state.prune_runs[0] = run._replace(messages=run.messages + len(gone))
    return Pruned(len(gone), 0, 0, after)


def _going(state: State) -> Iterator[BatchRow]:
    """Batches that nobody needs any more, however young."""
    for batch in state.batches.values():
        task = None if batch.task_id is None else state.tasks.get(batch.task_id)
        settled = all(reply.state in _SETTLED for reply in batch.replies)
        done = batch.state in ("done", "dropped") and batch.id not in state.episodes_due
        if done and settled and (task is None or task.state in ENDED):
            yield batch


def _ended(batch: BatchRow) -> int:
    return batch.ended_at or 0


def _forget_message(state: State, batch: BatchRow, message: Message) -> None:
    lane, number = batch.lane, message.number
    lane.messages[number - 1] = None
    del state.messages[message.id]
    state.redactions.pop(message.id, None)
    state.placed.pop(message.id, None)
    if message.inbound.origin.trust is Trust.EXTERNAL:
        lane.external_from = number if lane.external_from is None else min(lane.external_from, number)
    provider_id = message.inbound.marks.provider_id
    if provider_id is not None:
        named = (lane.lane.channel, lane.lane.account, lane.lane.conversation), provider_id
        if state.named.get(named, (1, 0, lane.lane))[:2] == (0, message.id):
            del state.named[named]


def _forget_batch(state: State, batch: BatchRow) -> None:
    silent = {turn.id for turn in batch.turns if turn.model == NO_MODEL}
    batch.lane.transcript = [
        replace(entry, unprompted=True) if entry.turn_id in silent and entry.record.role is Role.ASSISTANT else entry
        for entry in batch.lane.transcript
    ]
    for turn in batch.turns:
        del state.turns[turn.id]
    for reply in batch.replies:
        del state.replies[reply.draft.id]
    batch.lane.batches.remove(batch)
    del state.batches[batch.id]


def _forget_findings(state: State, before: int) -> Pruned:
    rows = state.findings.items()
    for number in [number for number, row in rows if row.applied_at is not None and row.applied_at < before]:
        del state.findings[number]
    return Pruned(0, 0, 0, None)


def _forget_keys(state: State, until: int) -> Pruned:
    going = [key for key, (_, number) in state.keys.items() if number <= until and number not in state.messages]
    for key in going:
        del state.keys[key]
    return Pruned(0, 0, len(going), None)
