"""Drop: a batch that waits is answered by nobody, by a person's word."""

from __future__ import annotations

import apsw

from keepsaid.adapters.sqlite.busy import abandon
from keepsaid.adapters.sqlite.query import one
from keepsaid.adapters.sqlite.routing import refresh_ready
from keepsaid.adapters.sqlite.statements import load
from keepsaid.adapters.sqlite.telling import tell
from keepsaid.domain.commits import Drop
from keepsaid.domain.fact import Over, dropped
from keepsaid.domain.states import move

SQL = load("drop")


def drop(db: apsw.Connection, commit: Drop) -> bool:
    """Drop a queued batch that no turn was shown; a turn that an earlier attempt left open is over."""
    row = one(db, SQL["waiting"], (commit.batch_id,))
    if row is None:
        return False
    state, lane_id, messages = row
    db.execute(SQL["drop"], (commit.batch_id, move("batch", state, "drop"), commit.reason, commit.at))
    tell(db, commit.at, dropped(commit.batch_id, messages))
    abandon(db, commit.batch_id, (commit.reason, Over.DROPPED), commit.at)
    refresh_ready(db, lane_id)
    return True
