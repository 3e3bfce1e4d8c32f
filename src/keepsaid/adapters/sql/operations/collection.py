"""Extraction jobs: marked sessions are claimed, read under a fence, and cleared; episodes that are recorded."""

from __future__ import annotations

import json
from collections.abc import Sequence

from keepsaid.adapters.sql.operations import journal, outbox, sessions
from keepsaid.adapters.sql.query import Row, SqlSession, every, load, one, only, run, scalar
from keepsaid.domain import commits, event, learning, message, redaction, session, states, turn

EPISODES = load("episodes")


def kept(db: SqlSession, commit: commits.EpisodesKept) -> int:
    """Clear episode work, and keep where messages hold secrets; returns how many batches had work."""
    for message_id, found in commit.redactions:
        db.post(EPISODES["keep_marks"], (message_id, json.dumps(found)))
    for batch_id in commit.batch_ids:
        outbox.done(db, batch_id)
    return sum(run(db, EPISODES["kept"], (batch_id,)) for batch_id in commit.batch_ids)


def marks(db: SqlSession, message_id: int) -> tuple[redaction.SecretMark, ...]:
    return tuple(redaction.SecretMark(*of) for of in json.loads(scalar(db, EPISODES["marks"], (message_id,)) or "[]"))


COLLECTION = load("collection")
RUN = "collection"


def claim(db: SqlSession, commit: session.ClaimCollection) -> session.ExtractionLease | None:
    """Claim the session that is due for longest; one that has to wait is not due any more."""
    while (row := one(db, COLLECTION["due"], (commit.at,))) is not None:
        if (found := _claimable(db, commit, row)) is not None:
            taken = (states.move("collection", row[2], "claim"), commit.lease_until, commit.owner)
            db.post(COLLECTION["claim"], (found.session_id, *taken))
            return found
        db.post(COLLECTION["wait"], (row[0], states.move("collection", row[2], "wait")))
    return None


def _claimable(db: SqlSession, commit: session.ClaimCollection, row: Row) -> session.ExtractionLease | None:
    session_id, lane_id, _, fence, attempts, first, last, processed, ruled, firm_until, marked, reason, *place = row
    lane, done = message.Lane(*place), max(processed, first - 1)
    finding = _finding(db, session_id, lane)
    if commit.thorough:
        after = done
        fit = finding is not None or firm_until > processed or last <= done
        fit = fit or only(db, COLLECTION["ripe"], (lane_id, done, session_id, commit.ripe))[0] >= commit.ripe
    else:
        after = max(done, ruled)
        fit = finding is not None or last > after
    if not fit:
        return None
    return session.ExtractionLease(session_id, lane, fence + 1, after, marked, reason, attempts, finding, after == done)


def _finding(db: SqlSession, session_id: int, lane: message.Lane) -> learning.ExtractionResult | None:
    if (row := one(db, COLLECTION["finding"], (session_id,))) is None:
        return None
    found = (lane, *row[2:5], learning.decoded(row[5]), turn.Usage(*row[6:9]), row[9])
    return learning.ExtractionResult(row[0], session_id, *found)


def keep_finding(db: SqlSession, commit: session.KeepFinding) -> bool:
    found, usage = commit.finding, commit.finding.usage
    row = one(db, COLLECTION["held"], (found.session_id, commit.fence))
    if row is None or one(db, COLLECTION["finding"], (found.session_id,)) is not None:
        return False
    what = found.id, found.session_id, row[1], found.first, found.last, found.extractor
    costs = usage.tokens_in, usage.tokens_out, usage.cost_micros, found.created_at
    db.post(COLLECTION["keep_finding"], (*what, learning.encoded(found.statements), *costs))
    return True


def collected(db: SqlSession, commit: session.Collected) -> session.Left:
    """What was read is done with; the mark goes with the last record."""
    if (row := one(db, COLLECTION["held"], (commit.session_id, commit.fence))) is None:
        return session.Left.REFUSED
    state, _, last, processed, ruled, marked = row
    if commit.finding_id is not None:
        db.post(COLLECTION["applied"], (commit.finding_id, commit.session_id, commit.at))
    if commit.thorough:
        processed = max(processed, commit.until)
    ruled = max(ruled, commit.until)
    if processed < last:
        left = max(marked, last), states.move("collection", state, "leave"), commit.at
        db.post(COLLECTION["read"], (commit.session_id, processed or None, ruled, *left))
        return session.Left.MARKED
    done = None, states.move("collection", state, "finish"), None
    db.post(COLLECTION["read"], (commit.session_id, processed, ruled, *done))
    journal.write_facts(db, commit.at, event.read_to(commit.session_id, processed))
    return session.Left.CLEARED


def failed(db: SqlSession, commit: session.CollectionFailed) -> bool:
    if (row := one(db, COLLECTION["held"], (commit.session_id, commit.fence))) is None:
        return False
    state = states.move("collection", row[0], "park" if commit.next_at is None else "fail")
    db.post(COLLECTION["failed"], (commit.session_id, state, commit.next_at, commit.charged, commit.error))
    if commit.next_at is None:
        journal.write_facts(db, commit.at, event.unreadable(commit.session_id, commit.error))
    return True


def requeue(db: SqlSession, commit: session.RequeueCollection) -> bool:
    if scalar(db, COLLECTION["parked"], (commit.session_id,)) != "parked":
        return False
    db.post(COLLECTION["requeue"], (commit.session_id, states.move("collection", "parked", "requeue"), commit.at))
    return True


def mark_one(db: SqlSession, commit: session.Invalidate) -> bool:
    row = one(db, COLLECTION["last_record"], (commit.session_id,))
    is_there = row is not None and row[0] <= commit.record <= row[1]
    return is_there and sessions.invalidate(db, commit.session_id, commit.record, commit.reason, commit.at)


def mark_unprocessed(db: SqlSession, commit: session.MarkUnprocessed) -> session.Marked:
    rows = every(db, COLLECTION["unread"], (commit.after, commit.limit))
    count = 0
    for session_id, first, last, processed, ruled in rows:
        if last >= first and last > (processed if commit.thorough else max(processed, ruled)):
            count += sessions.invalidate(db, session_id, last, commit.reason, commit.at)
    if len(rows) == commit.limit:
        return session.Marked(count, rows[-1][0])
    db.post(COLLECTION["ran"], (RUN, commit.at))
    return session.Marked(count, None)


def void(db: SqlSession, owner: str, at: int, *, at_once: bool) -> None:
    """Sessions that dead owners had claimed are due; `at_once`, also those that wait for a time."""
    _give_back(db, every(db, COLLECTION["claimed_elsewhere"], (owner,)), at)
    if at_once:
        run(db, COLLECTION["at_once"], (at,))


def read_anew(db: SqlSession, lane_id: int, at: int) -> None:
    """End the readings of a lane that began before something in it was forgotten."""
    _give_back(db, every(db, COLLECTION["claimed_in"], (lane_id,)), at)


def _give_back(db: SqlSession, claimed: Sequence[Row], at: int) -> None:
    for session_id, state in claimed:
        db.post(COLLECTION["give_back"], (session_id, states.move("collection", state, "leave"), at))
