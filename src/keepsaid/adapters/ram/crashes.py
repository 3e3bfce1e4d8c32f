"""Crashes: what the death of the process means for the batches that were in flight, and what is known of its lives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import islice

from keepsaid.adapters.ram import task_ends
from keepsaid.adapters.ram.busy import abandon, steered_into
from keepsaid.adapters.ram.collection import void
from keepsaid.adapters.ram.outbox import keep_notices
from keepsaid.adapters.ram.state import BatchRow, LifeRow, State
from keepsaid.domain.commits import ATTEMPTS_MAX, Claim, VoidLeases
from keepsaid.domain.fact import OVER, Over, ended, judged
from keepsaid.domain.ids import show
from keepsaid.domain.lives import Beat, RequeueCrashed
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.states import move
from keepsaid.domain.suspicion import (
    DIED,
    HELD_AFTER,
    LIVES_MAX,
    SPLIT,
    FatalTrial,
    Suspicion,
    halves,
    mean_life_ms,
    next_beat_ms,
    notice_text,
)


def void_leases(state: State, commit: VoidLeases) -> tuple[int, ...]:
    """End the leases of dead owners; returns the batches that are dead now."""
    reply_ids = iter(commit.reply_ids)
    void(state, commit.owner, commit.at)
    task_ends.void(state, commit.owner, commit.at)
    for lane in state.lanes.values():
        lane.due_at = None if lane.due_at is None else min(lane.due_at, commit.at)
        if lane.ready is not None:
            lane.ready.later = False
    in_flight = sorted((batch for batch in state.leased() if batch.owner != commit.owner), key=lambda batch: batch.id)
    trials = _end_lives(state, commit, {batch.owner for batch in in_flight if batch.alone})
    mean_ms = mean_life_ms([life.past for life in state.lives if life.state != "running"])
    for batch in in_flight:
        trial = trials.get(batch.owner) if batch.alone else None
        _settle(state, commit, batch, batch.suspicion.after_death(trial, mean_ms, commit.terms), reply_ids)
    return tuple(batch.id for batch in in_flight if batch.state == "dead")


def _end_lives(state: State, commit: VoidLeases, in_trial: Set[str]) -> Mapping[str, FatalTrial]:
    """Record how former lives ended, and that one begins; returns the trials that were fatal, by owner."""
    trials: dict[str, FatalTrial] = {}
    for life in state.lives:
        if life.state != "running" or life.owner == commit.owner:
            continue
        fatal = life.owner in in_trial and life.trial_ms is not None
        if fatal:
            trials[life.owner] = FatalTrial(life.trial_ms or 0, life.due_ms)
        life.state = move("life", life.state, "die_in_trial" if fatal else "die")
    if all(life.owner != commit.owner for life in state.lives):
        state.lives.append(LifeRow(commit.owner, next_beat_ms(0, None, commit.terms)))
    del state.lives[:-LIVES_MAX]
    return trials


def _settle(state: State, commit: VoidLeases, batch: BatchRow, after: Suspicion, reply_ids: Iterator[int]) -> None:
    """Queue, split, park or bury a batch that was in flight."""
    turn = batch.open_turn
    joined = [] if turn is None else [one for one in steered_into(turn) if one.state == "queued"]
    has_parts = batch.last > batch.first or bool(joined)
    if has_parts and after.charges > batch.charges and _split(state, commit, batch, after, joined):
        return
    batch.suspect(after)
    batch.error, batch.ready_at = DIED, commit.at
    if after.attempts < ATTEMPTS_MAX:
        batch.go("expire")
        return
    batch.go("park" if has_parts else "bury")
    parked = end(state, batch, DIED, commit.at)
    reply_id = next(reply_ids, None)
    if reply_id is not None:
        text = notice_text(_template(commit, batch), show("batch", batch.id), after.crashes)
        keep_notices(state, (batch, *parked), ReplyDraft(reply_id, text), reply_ids, commit.at)


def _template(commit: VoidLeases, batch: BatchRow) -> str:
    if batch.state == "review":
        return commit.notice_parked or commit.notice
    return (commit.notice_again if batch.requeued else "") or commit.notice


def end(state: State, batch: BatchRow, reason: str, at: int) -> Sequence[BatchRow]:
    """Nobody goes on with this batch by itself: its turn is over; returns what is parked with it."""
    batch.ended_at = at
    state.told(at, ended(batch.id, batch.state))
    return abandon(state, batch, (reason, OVER[batch.state]), at)


def _split(state: State, commit: VoidLeases, batch: BatchRow, after: Suspicion, joined: list[BatchRow]) -> bool:
    """Separate a batch from what joined its turn, or halve it; False where a call might be repeated that must not."""
    turn, messages = batch.open_turn, batch.messages
    whole = len(messages) == batch.last - batch.first + 1
    if turn is not None and not all(step.repeatable for step in turn.recorded):
        return False
    if not (joined or (whole and commit.split_id)):
        return False
    abandon(state, batch, (SPLIT, Over.SPLIT), commit.at)
    after = after.in_parts()
    batch.suspect(after)
    batch.error, batch.ready_at = SPLIT, commit.at
    batch.go("expire")
    for one in joined:
        one.crashes, one.trial_after_ms = after.crashes, after.trial_after_ms
    if not joined and commit.split_id is not None:
        _halve(state, batch, commit.split_id, commit.at)
    return True


def _halve(state: State, batch: BatchRow, new_id: int, at: int) -> None:
    messages, kept = batch.messages, halves(len(batch.messages))
    chars = [len(message.text) for message in messages]
    second = replace(
        batch, id=new_id, first=messages[kept].number, first_at=messages[kept].received_at, chars=sum(chars[kept:]),
        alone=False, owner="", turns=[], replies=[],
    )  # fmt: skip
    batch.last, batch.chars = messages[kept - 1].number, sum(chars[:kept])
    state.batches[new_id] = second
    lane = batch.lane
    lane.batches.insert(lane.batches.index(batch) + 1, second)
    lane.open.append(second)
    state.told_together(at, [judged(new_id, len(messages) - kept, second.verdict)])


def begin_trial(state: State, commit: Claim) -> None:
    """Record at which age of the process a trial began."""
    for life in state.lives:
        if life.owner == commit.owner:
            life.trial_ms = life.lived_ms = commit.lived_ms
            life.due_ms = next_beat_ms(commit.lived_ms, commit.lived_ms, commit.terms)


def beat(state: State, commit: Beat) -> bool:
    """Record that a process lives; returns whether a batch waits for a trial."""
    for life in state.lives:
        if life.owner == commit.owner and life.state == "running":
            life.lived_ms, life.due_ms = commit.lived_ms, commit.due_ms
    ready = (lane.ready for lane in state.lanes.values())
    return any(batch is not None and batch.crashes >= HELD_AFTER and not batch.later for batch in ready)


def requeue_crashed(state: State, commit: RequeueCrashed) -> int:
    """Queue again, once, what crashes alone buried."""
    for batch in [lane.ready for lane in state.lanes.values()]:
        untried = batch is not None and not batch.later and not batch.evidence.deaths and not batch.requeued
        if batch is not None and untried:
            batch.crashes = batch.trial_after_ms = 0
    rows = sorted(state.batches.values(), key=lambda batch: batch.id)
    buried = (batch for batch in rows if batch.state == "dead" and batch.pruned_at is None and not batch.requeued)
    crashed = list(islice((batch for batch in buried if 0 < batch.charges == batch.attempts), commit.limit))
    for batch in crashed:
        batch.go("requeue")
        batch.suspect(Suspicion(crashes=HELD_AFTER, trial_after_ms=commit.terms.after_ms))
        batch.ready_at, batch.later, batch.ended_at, batch.error = commit.at, True, None, ""
        batch.deferrals = batch.survived = 0
        batch.deferred_from = batch.steered = None
        batch.requeued, batch.verdict = True, replace(batch.verdict, reason=commit.reason)
    return len(crashed)
