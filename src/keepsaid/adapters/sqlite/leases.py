"""Leases: who works on which batch, and what a failed one is charged."""

from __future__ import annotations

import apsw

from keepsaid.adapters.sqlite import task_ends
from keepsaid.adapters.sqlite.busy import abandon
from keepsaid.adapters.sqlite.crashes import end_life
from keepsaid.adapters.sqlite.outbox import keep_notices
from keepsaid.adapters.sqlite.query import every, one
from keepsaid.adapters.sqlite.routing import refresh_ready
from keepsaid.adapters.sqlite.statements import load
from keepsaid.adapters.sqlite.telling import tell
from keepsaid.domain.commits import (
    ATTEMPTS_MAX,
    ExpireLeases,
    Fail,
    Failure,
    Release,
    Relinquish,
    Renew,
    Requeue,
)
from keepsaid.domain.fact import OVER, ended
from keepsaid.domain.states import move

SQL = load("leases")


def renew(db: apsw.Connection, commit: Renew) -> bool:
    """Move the end of a lease that is still held."""
    db.execute(SQL["renew"], (commit.batch_id, commit.fence, commit.lease_until))
    return db.changes() == 1


def release(db: apsw.Connection, commit: Release) -> bool:
    """Give a batch back without charge."""
    held = one(db, SQL["held"], (commit.batch_id, commit.fence))
    if held is None:
        return False
    state = move("batch", held[0], "release")
    db.execute(SQL["release"], (commit.batch_id, state, commit.not_before, commit.deferred, commit.reason))
    if commit.deferred or commit.survived:
        db.execute(SQL["clear"], (commit.batch_id, commit.survived and not commit.deferred))
    refresh_ready(db, held[1])
    return True


def fail(db: apsw.Connection, commit: Fail) -> str:
    """Charge an attempt or park; the third attempt buries."""
    held = one(db, SQL["held"], (commit.batch_id, commit.fence))
    if held is None:
        row = one(db, SQL["state"], (commit.batch_id,))
        return str(row[0]) if row else "unknown"
    before, lane_id, attempts = held
    charge = commit.how is not Failure.PARK
    how = commit.how
    if how is Failure.RETRY and attempts + 1 >= ATTEMPTS_MAX:
        how = Failure.BURY
    state = move("batch", before, how)
    ended_at = None if state == "queued" else commit.at
    bound = (commit.batch_id, state, charge, commit.error, max(commit.not_before, commit.at), ended_at)
    db.execute(SQL["settle"], bound)
    if state != "queued":
        tell(db, commit.at, ended(commit.batch_id, state))
        parked = abandon(db, commit.batch_id, (commit.error, OVER[state]), commit.at)
        if commit.notice is not None:
            keep_notices(db, (commit.batch_id, *parked), commit.notice, iter(commit.reply_ids), commit.at)
    refresh_ready(db, lane_id)
    return state


def expire_leases(db: apsw.Connection, commit: ExpireLeases) -> int:
    """Queue batches whose owner has not renewed in time."""
    return _back(db, every(db, SQL["expired"], (commit.at,)), "expire") + task_ends.expire(db, commit.at)


def relinquish(db: apsw.Connection, commit: Relinquish) -> int:
    """Queue everything an owner holds, by its own word."""
    end_life(db, commit.owner, "stop")
    return _back(db, every(db, SQL["owned"], (commit.owner,)), "release") + task_ends.relinquish(db, commit.owner)


def _back(db: apsw.Connection, batches: list[tuple[int, int, str]], verb: str) -> int:
    for batch_id, lane_id, before in batches:
        db.execute(SQL["release"], (batch_id, move("batch", before, verb), 0, False, ""))
        refresh_ready(db, lane_id)
    return len(batches)


def requeue(db: apsw.Connection, commit: Requeue) -> bool:
    """Queue a settled batch again by a person's word, and what was parked because it had joined it."""
    row = one(db, SQL["state"], (commit.batch_id,))
    if row is None or row[0] not in ("dead", "dropped", "review") or row[2] is not None:
        return False
    again = [(commit.batch_id, row[0]), *every(db, SQL["parked_with"], (commit.batch_id,))]
    for batch_id, before in again:
        state = move("batch", before, "requeue")
        db.execute(SQL["requeue"], (batch_id, state, commit.at, commit.reason))
    refresh_ready(db, row[1])
    return True
