"""Leases: who works on which batch, and what a failed one is charged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from keepsaid.adapters.ram import task_ends
from keepsaid.adapters.ram.busy import leave_unseen, steered_into
from keepsaid.adapters.ram.crashes import begin_trial, end
from keepsaid.adapters.ram.outbox import keep_notices
from keepsaid.adapters.ram.state import BatchRow, State, TurnRow
from keepsaid.domain.commits import (
    ATTEMPTS_MAX,
    LONER_PATIENCE_MS,
    Claim,
    ExpireLeases,
    Fail,
    Failure,
    Release,
    Relinquish,
    Renew,
    Requeue,
)
from keepsaid.domain.fact import started
from keepsaid.domain.route import Action
from keepsaid.domain.states import move
from keepsaid.domain.suspicion import HELD_AFTER, Suspicion
from keepsaid.domain.turn import Lease


def claim(state: State, commit: Claim) -> tuple[Lease, ...]:
    """Lease ready batches."""
    chosen = _choose(state, commit)
    for batch in chosen:
        if batch.crashes >= HELD_AFTER:
            begin_trial(state, commit)
    turn_ids = iter(commit.turn_ids)
    leases = tuple(_lease(state, batch, commit, turn_ids.__next__) for batch in chosen)
    begun = [started(lease.turn_id, lease.batch.id) for lease in leases if not lease.continued]
    state.told_together(commit.at, begun)
    return leases


def _choose(state: State, commit: Claim) -> Sequence[BatchRow]:
    ready = [batch for batch in (lane.ready for lane in state.lanes.values()) if batch is not None]
    for batch in ready:
        batch.later = batch.later and batch.ready_at > commit.at
    limit = min(commit.limit, len(commit.turn_ids))
    leased = list(state.leased())
    if limit < 1 or any(batch.alone for batch in leased):
        return ()
    due = sorted((batch for batch in ready if not batch.later), key=lambda batch: _order(commit, batch))
    held = [batch for batch in due if batch.crashes >= HELD_AFTER and batch.trial_after_ms <= commit.lived_ms]
    loner = min(held, key=lambda batch: (batch.priority, batch.first_at, batch.id), default=None)
    if loner is not None and not leased:
        return (loner,)
    if loner is not None and commit.at - loner.ready_at - loner.trial_after_ms >= LONER_PATIENCE_MS:
        return ()
    taken = next((batch for batch in leased if batch.crashes), None)
    suspect = taken or next((batch for batch in due if batch.crashes == 1), None)
    return list(islice((batch for batch in due if not batch.crashes or batch is suspect), limit))


def _order(commit: Claim, batch: BatchRow) -> tuple[int, int, int]:
    return commit.ageing.counts_as(batch.priority, commit.at - batch.first_at), batch.first_at, batch.id


def _lease(state: State, batch: BatchRow, commit: Claim, next_turn_id: Callable[[], int]) -> Lease:
    batch.go("claim")
    batch.owner, batch.lease_until, batch.later = commit.owner, commit.lease_until, False
    batch.fence += 1
    batch.alone = batch.crashes >= HELD_AFTER
    turn = batch.open_turn
    if turn is not None:
        leave_unseen(turn)
        return Lease(batch.value, turn.id, batch.alone, continued=True)
    turn = TurnRow(next_turn_id(), batch, commit.at)
    state.turns[turn.id] = turn
    batch.turns.append(turn)
    return Lease(batch.value, turn.id, batch.alone)


def renew(state: State, commit: Renew) -> bool:
    """Move the end of a lease that is still held."""
    batch = state.held(commit.batch_id, commit.fence)
    if batch is None:
        return False
    batch.lease_until = commit.lease_until
    return True


def release(state: State, commit: Release) -> bool:
    """Give a batch back without charge."""
    batch = state.held(commit.batch_id, commit.fence)
    if batch is None:
        return False
    batch.go("release")
    batch.ready_at, batch.later = commit.not_before or batch.ready_at, commit.not_before > 0
    if commit.deferred:
        batch.deferrals += 1
        batch.deferred_from = commit.not_before if batch.deferred_from is None else batch.deferred_from
    if commit.deferred or commit.survived:
        survived = commit.survived and not commit.deferred
        batch.suspect(Suspicion(batch.attempts - batch.charges, int(survived)))
        batch.survived += survived
    batch.error = commit.reason or batch.error
    return True


def fail(state: State, commit: Fail) -> str:
    """Charge an attempt or park; the third attempt buries."""
    batch = state.held(commit.batch_id, commit.fence)
    if batch is None:
        known = state.batches.get(commit.batch_id)
        return known.state if known else "unknown"
    attempts = batch.attempts + (commit.how is not Failure.PARK)
    how = Failure.BURY if commit.how is Failure.RETRY and attempts >= ATTEMPTS_MAX else commit.how
    batch.go(how)
    batch.suspect(Suspicion(attempts))
    batch.error = commit.error
    batch.ready_at, batch.later = max(commit.not_before, commit.at), True
    if batch.state != "queued":
        parked = end(state, batch, commit.error, commit.at)
        if commit.notice is not None:
            keep_notices(state, (batch, *parked), commit.notice, iter(commit.reply_ids), commit.at)
    return batch.state


def expire_leases(state: State, commit: ExpireLeases) -> int:
    """Queue batches whose owner has not renewed in time."""
    expired = [batch for batch in state.leased() if batch.lease_until <= commit.at]
    return _give_back(expired, "expire") + task_ends.expire(state, commit.at)


def relinquish(state: State, commit: Relinquish) -> int:
    """Queue everything an owner holds, by its own word."""
    for life in state.lives:
        if life.owner == commit.owner and life.state == "running":
            life.state = move("life", life.state, "stop")
    owned = [batch for batch in state.leased() if batch.owner == commit.owner]
    return _give_back(owned, "release") + task_ends.relinquish(state, commit.owner)


def _give_back(batches: Sequence[BatchRow], verb: str) -> int:
    for batch in batches:
        batch.go(verb)
    return len(batches)


def requeue(state: State, commit: Requeue) -> bool:
    """Queue a settled batch again by a person's word, and what was parked because it had joined it."""
    batch = state.batches.get(commit.batch_id)
    if batch is None or batch.state not in ("dead", "dropped", "review") or batch.pruned_at is not None:
        return False
    joined = [one for turn in batch.turns for one in steered_into(turn)]
    for one in (batch, *(one for one in joined if one.state == "review" and one.pruned_at is None)):
        one.go("requeue")
        one.suspect(Suspicion())
        one.deferrals = one.survived = 0
        one.ready_at, one.later, one.ended_at, one.error = commit.at, True, None, ""
        one.steered = one.deferred_from = None
        one.verdict = replace(one.verdict, action=Action.FORWARD, reason=commit.reason)
    return True
