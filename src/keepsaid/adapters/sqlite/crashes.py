"""Crashes: what the death of the process means for the batches that were in flight, and what is known of its lives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import chain

import apsw

from keepsaid.adapters.sqlite import task_ends
from keepsaid.adapters.sqlite.busy import SQL as BUSY
from keepsaid.adapters.sqlite.busy import abandon
from keepsaid.adapters.sqlite.claims import wake
from keepsaid.adapters.sqlite.collection import void
from keepsaid.adapters.sqlite.outbox import keep_notices
from keepsaid.adapters.sqlite.query import Row, every, numbers, one, only
from keepsaid.adapters.sqlite.routing import refresh_ready
from keepsaid.adapters.sqlite.rows import messages_of
from keepsaid.adapters.sqlite.statements import load
from keepsaid.adapters.sqlite.telling import tell, tell_together
from keepsaid.domain.commits import ATTEMPTS_MAX, VoidLeases
from keepsaid.domain.fact import OVER, Over, ended, judged
from keepsaid.domain.ids import show
from keepsaid.domain.process import Beat, RequeueCrashed
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.route import Action, Verdict
from keepsaid.domain.states import move
from keepsaid.domain.suspicion import (
    DIED,
    HELD_AFTER,
    LIVES_MAX,
    SPLIT,
    Evidence,
    FatalTrial,
    PastLife,
    Suspicion,
    halves,
    mean_life_ms,
    next_beat_ms,
    notice_text,
)

SQL = load("crashes")
_CLOSE_WINDOWS = load("leases")["close_windows"]


@dataclass(frozen=True, slots=True)
class _InFlight:
    """A batch in flight at a death, and what was known against it."""

    id: int
    lane_id: int
    state: str
    owner: str
    alone: bool
    first: int
    last: int
    requeued: bool
    before: Suspicion

    @classmethod
    def of(cls, row: Row) -> _InFlight:
        """A row of the statement `in_flight`."""
        attempts, crashes, deaths, exposed_ms, charges, trial_after_ms = row[8:]
        before = Suspicion(attempts, crashes, Evidence(deaths, exposed_ms), charges, trial_after_ms)
        batch_id, lane_id, state, owner, alone, first, last, requeued = row[:8]
        return cls(batch_id, lane_id, state, owner, bool(alone), first, last, bool(requeued), before)


def void_leases(db: apsw.Connection, commit: VoidLeases) -> tuple[int, ...]:
    """End the leases of dead owners; returns the batches that are dead now."""
    reply_ids = iter(commit.reply_ids)
    wake(db, None)
    void(db, commit.owner, commit.at)
    task_ends.void(db, commit.owner, commit.at)
    db.execute(_CLOSE_WINDOWS, (commit.at,))
    in_flight = [_InFlight.of(row) for row in every(db, SQL["in_flight"], (commit.owner,))]
    trials = _end_lives(db, commit, {one.owner for one in in_flight if one.alone})
    mean_ms = mean_life_ms([PastLife(lived_ms, bool(died)) for lived_ms, died in every(db, SQL["lives"])])
    dead = []
    for batch in in_flight:
        trial = trials.get(batch.owner) if batch.alone else None
        after = batch.before.after_death(trial, mean_ms, commit.terms)
        if _settle(db, commit, batch, after, reply_ids) == "dead":
            dead.append(batch.id)
        refresh_ready(db, batch.lane_id)
    return tuple(dead)


def _end_lives(db: apsw.Connection, commit: VoidLeases, in_trial: Set[str]) -> Mapping[str, FatalTrial]:
    """Record how former lives ended, and that one begins; returns the trials that were fatal, by owner."""
    trials: dict[str, FatalTrial] = {}
    for owner, before, due_ms, trial_ms in every(db, SQL["unended"], (commit.owner,)):
        fatal = owner in in_trial and trial_ms is not None
        if fatal:
            trials[owner] = FatalTrial(trial_ms, due_ms)
        db.execute(SQL["end_life"], (owner, move("life", before, "die_in_trial" if fatal else "die")))
    db.execute(SQL["begin_life"], (commit.owner, commit.at, next_beat_ms(0, None, commit.terms)))
    db.execute(SQL["forget_lives"], (LIVES_MAX,))
    return trials


def _settle(
    db: apsw.Connection, commit: VoidLeases, batch: _InFlight, after: Suspicion, reply_ids: Iterator[int]
) -> str:
    """Queue, split, park or bury a batch that was in flight; returns its state."""
    joined = [batch_id for (batch_id,) in every(db, SQL["joined"], (batch.id,))]
    has_parts = batch.last > batch.first or bool(joined)
    if has_parts and after.charges > batch.before.charges and _split(db, commit, batch, after, joined):
        return "queued"
    verb = "expire"
    if after.attempts >= ATTEMPTS_MAX:
        verb = "park" if has_parts else "bury"
    state = move("batch", batch.state, verb)
    _keep(db, batch.id, state, after, (DIED, commit.at))
    if state != "queued":
        tell(db, commit.at, ended(batch.id, state))
        parked = abandon(db, batch.id, (DIED, OVER[state]), commit.at)
        if (reply_id := next(reply_ids, None)) is not None:
            text = notice_text(_template(commit, batch, state), show("batch", batch.id), after.crashes)
            keep_notices(db, (batch.id, *parked), ReplyDraft(reply_id, text, notice=True), reply_ids, commit.at)
    return state


def _template(commit: VoidLeases, batch: _InFlight, state: str) -> str:
    if state == "review":
        return commit.notice_parked or commit.notice
    return (commit.notice_again if batch.requeued else "") or commit.notice


def _keep(db: apsw.Connection, batch_id: int, state: str, after: Suspicion, why: tuple[str, int]) -> None:
    error, at = why
    counts = (after.attempts, after.crashes, *after.evidence, after.charges, after.trial_after_ms)
    db.execute(SQL["crashed"], (batch_id, state, error, None if state == "queued" else at, at, *counts))


def _split(db: apsw.Connection, commit: VoidLeases, batch: _InFlight, after: Suspicion, joined: list[int]) -> bool:
    """Separate a batch from what joined its turn, or halve it; False where a call might be repeated that must not."""
    messages = messages_of(db, batch.id)
    whole = len(messages) == batch.last - batch.first + 1
    if one(db, BUSY["unrepeatable"], (batch.id,)) is not None or not (joined or (whole and commit.split_id)):
        return False
    abandon(db, batch.id, (SPLIT, Over.SPLIT), commit.at)
    after = after.in_parts()
    _keep(db, batch.id, move("batch", batch.state, "expire"), after, (SPLIT, commit.at))
    if joined:
        db.execute(SQL["suspect_too"], (numbers(joined), after.crashes, after.trial_after_ms))
        return True
    kept = halves(len(messages))
    chars = [len(message.text) for message in messages]
    second = messages[kept]
    made = (batch.id, commit.split_id, second.number, second.received_at, sum(chars[kept:]))
    db.execute(SQL["second_part"], made)
    db.execute(SQL["first_part"], (batch.id, messages[kept - 1].number, messages[kept - 1].id, sum(chars[:kept])))
    action, *by = only(db, SQL["verdict"], (batch.id,))
    assert commit.split_id is not None, "it was just looked at"
    tell_together(db, commit.at, [judged(commit.split_id, len(messages) - kept, Verdict(Action(action), *by))])
    return True


def end_life(db: apsw.Connection, owner: str, verb: str) -> None:
    """Record how the life of an owner ended, if it is on record and has not ended."""
    row = one(db, SQL["running"], (owner,))
    if row is not None:
        db.execute(SQL["end_life"], (owner, move("life", row[0], verb)))


def beat(db: apsw.Connection, commit: Beat) -> bool:
    """Record that a process lives; returns whether a batch waits for a trial."""
    db.execute(SQL["beat"], (commit.owner, commit.lived_ms, commit.due_ms))
    return one(db, SQL["waits_for_trial"]) is not None


def requeue_crashed(db: apsw.Connection, commit: RequeueCrashed) -> int:
    """Queue again, once, what crashes alone buried."""
    acquitted = chain.from_iterable(every(db, SQL["acquit"]))
    buried = every(db, SQL["buried"], (commit.limit,))
    for batch_id, _, before in buried:
        state = move("batch", before, "requeue")
        db.execute(SQL["requeue"], (batch_id, state, commit.at, commit.reason, commit.terms.after_ms, HELD_AFTER))
    changed = {*acquitted, *(lane_id for _, lane_id, _ in buried)}
    if changed:
        refresh_ready(db, *sorted(changed))
    return len(buried)
