"""Age: a memory that holds few vectors comes to where many have come and gone."""

from __future__ import annotations

from pathlib import Path

from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.stores import MEMORY_TABLE
from keepsaid.adapters.sqlite.writer import TransactionExecutor
from keepsaid_testkit.crash.evidence import SQL

_BUSY_MS = 10_000


def age(home: Path) -> None:
    """With a few vectors more the next block of them is whole. What a kill left in the log is left to the next life."""
    path = home / "data" / "memory.db"
    db = open_writer(path)
    ledger = TransactionExecutor(db, path, MEMORY_TABLE)
    try:
        db.set_busy_timeout(_BUSY_MS)
        with db:
            db.execute(SQL["first_vectors"])
            db.execute(SQL["many_vectors"])
    finally:
        ledger.close(broken=True)
