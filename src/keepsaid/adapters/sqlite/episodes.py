"""Episode work that is done, and the redaction marks of the messages it recorded."""

from __future__ import annotations

import json

import apsw

from keepsaid.adapters.sqlite import staging
from keepsaid.adapters.sqlite.query import one, run
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.commits import EpisodesKept
from keepsaid.domain.redaction import Mark

SQL = load("episodes")


def kept(db: apsw.Connection, commit: EpisodesKept) -> int:
    """Clear episode work, and keep where messages hold secrets; returns how many batches had work."""
    for message_id, found in commit.redactions:
        run(db, SQL["keep_marks"], (message_id, json.dumps(found)))
    for batch_id in commit.batch_ids:
        staging.done(db, batch_id)
    return sum(run(db, SQL["kept"], (batch_id,)) for batch_id in commit.batch_ids)


def marks(db: apsw.Connection, message_id: int) -> tuple[Mark, ...]:
    """Where a message's text holds secrets, as its recorder found."""
    row = one(db, SQL["marks"], (message_id,))
    return () if row is None else tuple(Mark(*mark) for mark in json.loads(row[0]))
