"""A large operational store, made by a few set statements: 100,000 messages in 20,000 lanes, most of it settled.

Lane `l` holds five messages; message `n` of it has the id `n * STEP + l`, its batch, turn and reply the same. The
lanes from `WAITING_FROM` wait: three of their messages are in no batch. Those from `QUEUED_FROM` have a queued
batch, the eight before them a leased one. Of the first 1,000 the last reply has not left: 100 are to be pushed to a
URL, the rest is sent by the channel `github` or waits to be pulled from `http`.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.integrity import migrate

NOW = 1_790_000_000_000
"""When the first message came, milliseconds UTC."""

STEP = 100_000
"""What lies between the ids of two messages of one lane."""

QUEUED_FROM = 18_001
WAITING_FROM = 19_001


def filled(path: Path) -> apsw.Connection:
    """A new file with all of it, open."""
    db = open_writer(path)
    migrate(db, path, "buffer")
    db.pragma("synchronous", "off")
    with db:
        db.execute(Path(__file__).with_name("large.sql").read_text("utf-8"))
    return db
