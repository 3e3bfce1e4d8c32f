"""Leases: claims of ready batches, what a failed batch is charged, and what the death of the process means for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import groupby, islice
from typing import NamedTuple

from keepsaid.adapters.sql.operations import collection, files, routing, rows, tasks
from keepsaid.adapters.sql.operations.journal import write_facts, write_facts_grouped
from keepsaid.adapters.sql.operations.outbox import keep_notices
from keepsaid.adapters.sql.operations.routing import abandon, refresh_ready
from keepsaid.adapters.sql.query import (
    JointStatement,
    Row,
    SqlSession,
    column,
    every,
    load,
    one,
    only,
    scalar,
    write_rows,
)
from keepsaid.domain import batch as domain
from keepsaid.domain import commits, event, ids, process, reply, route, views
from keepsaid.domain.batch import Suspicion
from keepsaid.domain.states import move
from keepsaid.domain.turn import Lease

CLAIMS = load("claims")
_Taking = tuple[commits.ClaimBatches, int, int]
_NORMAL, _SUSPECT = 0, 1


def claim(db: SqlSession, claims: Sequence[commits.ClaimBatches]) -> list[tuple[Lease, ...]]:
    """Lease a trial alone, else normal batches and at most one suspect; the last claim sets the order for all."""
    last = claims[-1]
    limits = [max(0, min(commit.limit, len(commit.turn_ids))) for commit in claims]
    nothing: list[tuple[Lease, ...]] = [()] * len(claims)
    (wakes, *stand), normal = _looked(db, last, sum(limits))
    if wakes:
        _wake(db, last.at)
        (_, *stand), normal = _looked(db, last, sum(limits))
    leased, alone, suspects, suspicious = stand
    if alone or not any(limits):
        return nothing
    held = one(db, CLAIMS["next_trial"], (last.lived_ms,)) if suspicious else None
    if held is not None and not leased:
        n = next(n for n, limit in enumerate(limits) if limit)
        begun_ms = claims[n].lived_ms
        beat_ms = domain.next_beat_ms(begun_ms, begun_ms, claims[n].terms)
        db.post(CLAIMS["begin_trial"], (claims[n].owner, begun_ms, beat_ms))
        nothing[n] = _leased(db, [(claims[n], held[0], claims[n].turn_ids[0])], alone=True)
        return nothing
    if held is not None and last.at - held[3] >= commits.LONER_PATIENCE_MS:
        return nothing
    ready = _best(last, normal, sum(limits))
    if suspicious and not suspects:
        ready += _best(last, every(db, CLAIMS["ready"], (_SUSPECT, 1)), 1)
    chosen = iter(sorted(ready, key=lambda row: _order(last, row))[: sum(limits)])
    taken = [
        [(commit, row[0], turn_id) for turn_id, row in zip(commit.turn_ids, islice(chosen, limit), strict=False)]
        for commit, limit in zip(claims, limits, strict=True)
    ]
    claimed = iter(_leased(db, [one for part in taken for one in part]))
    return [tuple(islice(claimed, len(part))) for part in taken]


def wake(db: SqlSession, at: int | None) -> None:
    """Make ready what waited until `at`, or all that waits if that is None."""
    if one(db, CLAIMS["asleep"], (at,)) is not None:
        _wake(db, at)


def _wake(db: SqlSession, at: int | None) -> None:
    db.post(CLAIMS["wake_batches"], (at,))
    db.post(CLAIMS["wake"], (at,))


def _looked(db: SqlSession, commit: commits.ClaimBatches, limit: int) -> tuple[Row, list[Row]]:
    """What the statement `look` finds, and of every level of priority the normal batches that came first."""
    look = JointStatement(CLAIMS["look"], (commit.at,))
    [found], normal = db.ask(look, JointStatement(CLAIMS["ready"], (_NORMAL, limit)))
    return found, normal


def _best(commit: commits.ClaimBatches, found: Sequence[Row], limit: int) -> list[Row]:
    """Those first that count as best: id, priority, arrival, ready since."""
    return sorted(found, key=lambda row: _order(commit, row))[:limit]


def _order(commit: commits.ClaimBatches, row: Row) -> tuple[int, int, int]:
    batch_id, priority, first_at, _ = row
    return commit.ageing.counts_as(priority, commit.at - first_at), first_at, batch_id


def lease_one(db: SqlSession, commit: commits.ClaimBatches, batch_id: int) -> Lease:
    """Lease a batch that this transaction queued, and that nobody else can have seen."""
    [lease] = _leased(db, [(commit, batch_id, commit.turn_ids[0])])
    return lease


def _leased(db: SqlSession, taken: Sequence[_Taking], *, alone: bool = False) -> tuple[Lease, ...]:
    """Lease batches in a few statements, whatever their number."""
    if not taken:
        return ()
    for owner, part in groupby(taken, key=lambda one: one[0].owner):
        mine = list(part)
        terms = (move("batch", "queued", "claim"), owner, max(commit.lease_until for commit, _, _ in mine), alone)
        db.post(CLAIMS["lease"], (db.numbers([batch_id for _, batch_id, _ in mine]), *terms))
    numbers = (db.numbers([batch_id for _, batch_id, _ in taken]),)
    batches, turns = db.ask(JointStatement(CLAIMS["batch"], numbers), JointStatement(CLAIMS["open_turns"], numbers))
    found = {row[2]: row for row in batches}
    open_turns = dict[int, int](turns)
    db.post(CLAIMS["not_ready"], (db.numbers([row[0] for row in found.values()]),))
    begun = [
        (turn_id, found[batch_id][0], batch_id, "open", commit.at)
        for commit, batch_id, turn_id in taken
        if batch_id not in open_turns
    ]
    write_rows(db, CLAIMS["start_turns"], begun)
    write_facts_grouped(db, taken[-1][0].at, [event.started(turn_id, batch_id) for turn_id, _, batch_id, *_ in begun])
    for open_turn in open_turns.values():
        routing.leave_unseen(db, open_turn)
    return tuple(
        Lease(rows.batch(found[batch_id]), open_turns.get(batch_id, turn_id), alone, continued=batch_id in open_turns)
        for _, batch_id, turn_id in taken
    )


CRASHES = load("crashes")
_WINDOWS_AFTER_CLOCK_BACK = load("leases")["windows_after_clock_back"]


class _InFlight(NamedTuple):
    """A batch in flight at a death, as a row of the statement `in_flight`."""

    id: int
    lane_id: int
    state: str
    owner: str
    alone: bool
    first: int
    last: int
    requeued: bool
    attempts: int
    crashes: int
    deaths: int
    exposed_ms: int
    charges: int
    trial_after_ms: int

    @property
    def before(self) -> Suspicion:
        evidence = domain.TrialEvidence(self.deaths, self.exposed_ms)
        return Suspicion(self.attempts, self.crashes, evidence, self.charges, self.trial_after_ms)


def void_leases(db: SqlSession, commit: process.VoidLeases) -> tuple[int, ...]:
    reply_ids = iter(commit.reply_ids)
    others = [_Other(*row) for row in every(db, CRASHES["unended"], (commit.owner,))]
    alive = {one.owner for one in others if not one.is_over(commit.sharing)}
    in_flight = [_InFlight(*row) for row in every(db, CRASHES["in_flight"], (commit.owner,))]
    in_flight = [one for one in in_flight if one.owner not in alive]
    over = [one for one in others if one.owner not in alive]
    trials = _end_lives(db, commit, over, {one.owner for one in in_flight if one.alone})
    if not alive:
        wake(db, None)
        db.post(_WINDOWS_AFTER_CLOCK_BACK, (commit.at,))
    collection.void(db, commit.owner, commit.at, at_once=not alive)
    tasks.void(db, commit.owner, commit.at, at_once=not alive)
    lives = [domain.PastLife(lived_ms, bool(died)) for lived_ms, died in every(db, CRASHES["lives"])]
    mean_ms, dead = domain.mean_life_ms(lives), []
    for batch in in_flight:
        trial = trials.get(batch.owner) if batch.alone else None
        after = batch.before.after_death(trial, mean_ms, commit.terms)
        if _settle(db, commit, batch, after, reply_ids) == "dead":
            dead.append(batch.id)
        refresh_ready(db, batch.lane_id)
    return tuple(dead)


class _Other(NamedTuple):
    """Another owner whose life has not ended on record, as a row of the statement `unended`."""

    owner: str
    state: str
    due_ms: int
    trial_ms: int | None
    kept_until: int
    home: str

    def is_over(self, sharing: domain.Sharing | None) -> bool:
        """Whether it is dead: any other is where a store is not shared."""
        return sharing is None or self.kept_until < sharing.at or self.home == sharing.home != ""


def _end_lives(
    db: SqlSession, commit: process.VoidLeases, over: Sequence[_Other], in_trial: Set[str]
) -> Mapping[str, domain.FatalTrial]:
    """Record how former lives ended, and that one begins; returns the trials that were fatal, by owner."""
    trials: dict[str, domain.FatalTrial] = {}
    for ended in over:
        verb = "die"
        if ended.owner in in_trial and ended.trial_ms is not None:
            verb, trials[ended.owner] = "die_in_trial", domain.FatalTrial(ended.trial_ms, ended.due_ms)
        db.post(CRASHES["end_life"], (ended.owner, move("life", ended.state, verb)))
    sharing = commit.sharing
    kept = (0, True, "") if sharing is None else (sharing.until, sharing.may_lead, sharing.home)
    due_ms = domain.next_beat_ms(0, None, commit.terms)
    db.post(CRASHES["begin_life"], (commit.owner, commit.at, due_ms, *kept))
    db.post(CRASHES["forget_lives"], (domain.LIVES_MAX,))
    return trials


def _settle(
    db: SqlSession, commit: process.VoidLeases, batch: _InFlight, after: Suspicion, reply_ids: Iterator[int]
) -> str:
    """Queue, split, park or bury a batch that was in flight; returns its state."""
    joined = column(db, CRASHES["joined"], (batch.id,))
    has_parts = batch.last > batch.first or bool(joined)
    if has_parts and after.charges > batch.before.charges and _split(db, commit, batch, after, joined):
        return "queued"
    verb = "expire"
    if after.attempts >= commits.ATTEMPTS_MAX:
        verb = "park" if has_parts else "bury"
    state = move("batch", batch.state, verb)
    _keep(db, batch.id, state, after, (domain.DIED, commit.at))
    if state != "queued":
        write_facts(db, commit.at, event.ended(batch.id, state))
        parked = abandon(db, batch.id, (domain.DIED, event.OVER[state]), commit.at)
        if (reply_id := next(reply_ids, None)) is not None:
            special = commit.notice_parked if state == "review" else commit.notice_again if batch.requeued else ""
            text = domain.notice_text(special or commit.notice, ids.show("batch", batch.id), after.crashes)
            keep_notices(db, (batch.id, *parked), reply.ReplyDraft(reply_id, text, notice=True), reply_ids, commit.at)
    return state


def _keep(db: SqlSession, batch_id: int, state: str, after: Suspicion, why: tuple[str, int]) -> None:
    error, at = why
    counts = (after.attempts, after.crashes, *after.evidence, after.charges, after.trial_after_ms)
    db.post(CRASHES["crashed"], (batch_id, state, error, None if state == "queued" else at, at, *counts))


def _split(db: SqlSession, commit: process.VoidLeases, batch: _InFlight, after: Suspicion, joined: list[int]) -> bool:
    """Separate a batch from what joined its turn, or halve it; False where a call might be repeated that must not."""
    messages = rows.messages_of(db, batch.id)
    whole = len(messages) == batch.last - batch.first + 1
    if one(db, routing.SQL["unrepeatable"], (batch.id,)) is not None or not (joined or (whole and commit.split_id)):
        return False
    abandon(db, batch.id, (domain.SPLIT, event.AbandonReason.SPLIT), commit.at)
    after = after.in_parts()
    _keep(db, batch.id, move("batch", batch.state, "expire"), after, (domain.SPLIT, commit.at))
    if joined:
        db.post(CRASHES["suspect_too"], (db.numbers(joined), after.crashes, after.trial_after_ms))
        return True
    kept = domain.halves(len(messages))
    chars = [len(message.text) for message in messages]
    first, second = messages[kept - 1], messages[kept]
    made = (commit.split_id, second.number, second.received_at, sum(chars[kept:]))
    db.post(CRASHES["second_part"], (batch.id, *made))
    db.post(CRASHES["first_part"], (batch.id, first.number, first.id, sum(chars[:kept])))
    action, *by = only(db, CRASHES["verdict"], (batch.id,))
    assert commit.split_id is not None, "it was just looked at"
    verdict = route.Verdict(route.Action(action), *by)
    write_facts_grouped(db, commit.at, [event.judged(commit.split_id, len(messages) - kept, verdict)])
    return True


def end_life(db: SqlSession, owner: str, verb: str) -> None:
    """Record how the life of an owner ended, if it is on record and has not ended."""
    for (state,) in every(db, CRASHES["running"], (owner,)):
        db.post(CRASHES["end_life"], (owner, move("life", state, verb)))


def beat(db: SqlSession, commit: process.Beat) -> process.Pulse:
    sharing = commit.sharing
    kept_until = 0 if sharing is None else sharing.until
    if sharing is not None:
        db.post(CRASHES["all_kept"], (sharing.until_of_recent, kept_until, commit.owner))
    db.post(CRASHES["beat"], (commit.owner, commit.lived_ms, commit.due_ms, kept_until))
    trial_waits = one(db, CRASHES["waits_for_trial"]) is not None
    if sharing is None:
        return process.Pulse(trial_waits)
    others = [_Other(*row) for row in every(db, CRASHES["unended"], (commit.owner,))]
    leads = scalar(db, CRASHES["leads"]) == commit.owner
    return process.Pulse(trial_waits, leads, any(one.is_over(sharing) for one in others))


def running_processes(db: SqlSession) -> tuple[views.RunningProcess, ...]:
    """The running processes; the first that may lead, and still says that it lives, does."""
    running = every(db, CRASHES["running_processes"])
    leader = next((owner for owner, _, _, may_lead, is_silent in running if may_lead and not is_silent), None)
    return tuple(
        views.RunningProcess(owner, began, until, owner == leader, bool(is_silent))
        for owner, began, until, _, is_silent in running
    )


def requeue_crashed(db: SqlSession, commit: process.RequeueCrashed) -> int:
    """Queue again, once, what crashes alone buried."""
    acquitted = column(db, CRASHES["acquit"])
    buried = every(db, CRASHES["buried"], (commit.limit,))
    anew = (commit.at, commit.reason, commit.terms.after_ms, domain.HELD_AFTER)
    for batch_id, _, before in buried:
        db.post(CRASHES["requeue"], (batch_id, move("batch", before, "requeue"), *anew))
    if changed := {*acquitted, *(lane_id for _, lane_id, _ in buried)}:
        refresh_ready(db, *sorted(changed))
    return len(buried)


LEASES = load("leases")


def renew(db: SqlSession, commit: commits.Renew) -> bool:
    db.execute(LEASES["renew"], (commit.batch_id, commit.fence, commit.lease_until))
    return db.changes() == 1


def release(db: SqlSession, commit: commits.Release) -> bool:
    if (held := one(db, LEASES["held"], (commit.batch_id, commit.fence))) is None:
        return False
    state = move("batch", held[0], "release")
    db.post(LEASES["release"], (commit.batch_id, state, commit.not_before, commit.deferred, commit.reason))
    if commit.deferred or commit.survived:
        db.post(LEASES["clear"], (commit.batch_id, commit.survived and not commit.deferred))
    refresh_ready(db, held[1])
    return True


def fail(db: SqlSession, commit: commits.Fail) -> str:
    """Charge an attempt or park; the third attempt buries."""
    if (held := one(db, LEASES["held"], (commit.batch_id, commit.fence))) is None:
        return scalar(db, LEASES["state"], (commit.batch_id,)) or "unknown"
    before, lane_id, attempts = held
    how, charge = commit.how, commit.how is not commits.Failure.PARK
    if how is commits.Failure.RETRY and attempts + 1 >= commits.ATTEMPTS_MAX:
        how = commits.Failure.BURY
    state = move("batch", before, how)
    times = (max(commit.not_before, commit.at), None if state == "queued" else commit.at)
    db.post(LEASES["settle"], (commit.batch_id, state, charge, commit.error, *times))
    if state != "queued":
        write_facts(db, commit.at, event.ended(commit.batch_id, state))
        parked = abandon(db, commit.batch_id, (commit.error, event.OVER[state]), commit.at)
        if commit.notice is not None:
            keep_notices(db, (commit.batch_id, *parked), commit.notice, iter(commit.reply_ids), commit.at)
    refresh_ready(db, lane_id)
    return state


def expire_leases(db: SqlSession, commit: commits.ExpireLeases) -> int:
    return _give_back(db, "expired", commit.at, "expire")


def relinquish(db: SqlSession, commit: process.Relinquish) -> int:
    """Queue everything an owner holds, by its own word."""
    end_life(db, commit.owner, "stop")
    return _give_back(db, "owned", commit.owner, "release")


def _give_back(db: SqlSession, which: str, bound: object, verb: str) -> int:
    batches = every(db, LEASES[which], (bound,))
    for batch_id, lane_id, before in batches:
        db.post(LEASES["release"], (batch_id, move("batch", before, verb), 0, False, ""))
        refresh_ready(db, lane_id)
    return len(batches) + tasks.give_back(db, which, bound, verb)


def requeue(db: SqlSession, commit: commits.Requeue) -> bool:
    """Queue a settled batch again by a person's word, and what was parked because it had joined it."""
    row = one(db, LEASES["state"], (commit.batch_id,))
    if row is None or row[0] not in ("dead", "dropped", "review") or row[2] is not None:
        return False
    for batch_id, before in [(commit.batch_id, row[0]), *every(db, LEASES["parked_with"], (commit.batch_id,))]:
        db.post(LEASES["requeue"], (batch_id, move("batch", before, "requeue"), commit.at, commit.reason))
        if before == "dropped":
            files.want(db, batch_id)
    refresh_ready(db, row[1])
    return True
