"""Extraction jobs: marked sessions are claimed, read under a fence, and cleared; episodes that are recorded."""

from __future__ import annotations

import json
from collections.abc import Sequence

from keepsaid.adapters.sql.operations import steps
from keepsaid.adapters.sql.operations.journal import write_facts
from keepsaid.adapters.sql.operations.sessions import invalidate
from keepsaid.adapters.sql.query import Row, SqlSession, every, load, one, only, run
from keepsaid.domain import session
from keepsaid.domain.commits import EpisodesKept
from keepsaid.domain.event import read_to, unreadable
from keepsaid.domain.lane import Lane
from keepsaid.domain.learning import ExtractionResult, decoded, encoded
from keepsaid.domain.redaction import SecretMark
from keepsaid.domain.states import move
from keepsaid.domain.turn import Usage

EPISODES = load("episodes")


def kept(db: SqlSession, commit: EpisodesKept) -> int:
    """Clear episode work, and keep where messages hold secrets; returns how many batches had work."""
    for message_id, found in commit.redactions:
        run(db, EPISODES["keep_marks"], (message_id, json.dumps(found)))
    for batch_id in commit.batch_ids:
        steps.done(db, batch_id)
    return sum(run(db, EPISODES["kept"], (batch_id,)) for batch_id in commit.batch_ids)


def marks(db: SqlSession, message_id: int) -> tuple[SecretMark, ...]:
    row = one(db, EPISODES["marks"], (message_id,))
    return () if row is None else tuple(SecretMark(*mark) for mark in json.loads(row[0]))


COLLECTION = load("collection")
RUN = "collection"


def claim(db: SqlSession, commit: session.ClaimCollection) -> session.ExtractionLease | None:
    """Claim the session that is due for longest; one that has to wait is not due any more."""
    while (row := one(db, COLLECTION["due"], (commit.at,))) is not None:
        found = _claimable(db, commit, row)
        if found is not None:
            state = move("collection", row[2], "claim")
            db.execute(COLLECTION["claim"], (found.session_id, state, commit.lease_until, commit.owner))
            return found
        db.execute(COLLECTION["wait"], (row[0], move("collection", row[2], "wait")))
    return None


def _claimable(db: SqlSession, commit: session.ClaimCollection, row: Row) -> session.ExtractionLease | None:
    session_id, lane_id, _, fence, attempts, first, last, processed, ruled, firm_until, marked, reason, *place = row
    lane, done = Lane(*place), max(processed, first - 1)
    finding = _finding(db, session_id, lane)
    if commit.thorough:
        after = done
        fit = finding is not None or firm_until > processed or last <= done
        fit = fit or only(db, COLLECTION["ripe"], (lane_id, done, session_id, session.RIPE))[0] >= session.RIPE
    else:
        after = max(done, ruled)
        fit = finding is not None or last > after
    if not fit:
        return None
    return session.ExtractionLease(session_id, lane, fence + 1, after, marked, reason, attempts, finding, after == done)


def _finding(db: SqlSession, session_id: int, lane: Lane) -> ExtractionResult | None:
    row = one(db, COLLECTION["finding"], (session_id,))
    if row is None:
        return None
    statements, usage = decoded(row[5]), Usage(row[6], row[7], row[8])
    return ExtractionResult(row[0], row[1], lane, row[2], row[3], row[4], statements, usage, row[9])


def keep_finding(db: SqlSession, commit: session.KeepFinding) -> bool:
    found, usage = commit.finding, commit.finding.usage
    row = one(db, COLLECTION["held"], (found.session_id, commit.fence))
    if row is None or one(db, COLLECTION["finding"], (found.session_id,)) is not None:
        return False
    place = found.id, found.session_id, row[1], found.first, found.last
    costs = usage.tokens_in, usage.tokens_out, usage.cost_micros
    db.execute(
        COLLECTION["keep_finding"], (*place, found.extractor, encoded(found.statements), *costs, found.created_at)
    )
    return True


def collected(db: SqlSession, commit: session.Collected) -> session.Left:
    """What was read is done with; the mark goes with the last record."""
    row = one(db, COLLECTION["held"], (commit.session_id, commit.fence))
    if row is None:
        return session.Left.REFUSED
    state, _, last, processed, ruled, marked = row
    if commit.finding_id is not None:
        db.execute(COLLECTION["applied"], (commit.finding_id, commit.session_id, commit.at))
    if commit.thorough:
        processed = max(processed, commit.until)
    ruled = max(ruled, commit.until)
    if processed < last:
        left = processed or None, ruled, max(marked, last), move("collection", state, "leave"), commit.at
        db.execute(COLLECTION["read"], (commit.session_id, *left))
        return session.Left.MARKED
    done = processed, ruled, None, move("collection", state, "finish"), None
    db.execute(COLLECTION["read"], (commit.session_id, *done))
    write_facts(db, commit.at, read_to(commit.session_id, processed))
    return session.Left.CLEARED


def failed(db: SqlSession, commit: session.CollectionFailed) -> bool:
    row = one(db, COLLECTION["held"], (commit.session_id, commit.fence))
    if row is None:
        return False
    state = move("collection", row[0], "park" if commit.next_at is None else "fail")
    db.execute(COLLECTION["failed"], (commit.session_id, state, commit.next_at, commit.charged, commit.error))
    if commit.next_at is None:
        write_facts(db, commit.at, unreadable(commit.session_id, commit.error))
    return True


def requeue(db: SqlSession, commit: session.RequeueCollection) -> bool:
    row = one(db, COLLECTION["parked"], (commit.session_id,))
    if row is None or row[0] != "parked":
        return False
    db.execute(COLLECTION["requeue"], (commit.session_id, move("collection", row[0], "requeue"), commit.at))
    return True


def mark_one(db: SqlSession, commit: session.Invalidate) -> bool:
    row = one(db, COLLECTION["last_record"], (commit.session_id,))
    if row is None or not row[0] <= commit.record <= row[1]:
        return False
    return invalidate(db, commit.session_id, commit.record, commit.reason, commit.at)


def mark_unprocessed(db: SqlSession, commit: session.MarkUnprocessed) -> session.Marked:
    rows = every(db, COLLECTION["unread"], (commit.after, commit.limit))
    count = 0
    for session_id, first, last, processed, ruled in rows:
        if last >= first and last > (processed if commit.thorough else max(processed, ruled)):
            count += invalidate(db, session_id, last, commit.reason, commit.at)
    if len(rows) == commit.limit:
        return session.Marked(count, rows[-1][0])
    db.execute(COLLECTION["ran"], (RUN, commit.at))
    return session.Marked(count, None)


def void(db: SqlSession, owner: str, at: int) -> None:
    """At start: sessions that others had claimed are due, and those that wait for a time."""
    _give_back(db, every(db, COLLECTION["claimed_elsewhere"], (owner,)), at)
    run(db, COLLECTION["at_once"], (at,))


def read_anew(db: SqlSession, lane_id: int, at: int) -> None:
    """End the readings of a lane that began before something in it was forgotten."""
    _give_back(db, every(db, COLLECTION["claimed_in"], (lane_id,)), at)


def _give_back(db: SqlSession, claimed: Sequence[Row], at: int) -> None:
    for session_id, state in claimed:
        db.execute(COLLECTION["give_back"], (session_id, move("collection", state, "leave"), at))
