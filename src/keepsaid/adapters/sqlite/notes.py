"""Notes on SQLite: kept by name until they are over."""

from __future__ import annotations

import apsw

from keepsaid.adapters.sqlite.outbox import keep_for_owner
from keepsaid.adapters.sqlite.query import one
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.process import Note, NotifyOwner

SQL = load("notes")


def keep(db: apsw.Connection, commit: Note) -> None:
    """Apply one commit."""
    db.execute(SQL["over"], (commit.at,))
    db.execute(SQL["keep"], (commit.name, commit.text, commit.until))


def notify(db: apsw.Connection, commit: NotifyOwner) -> bool:
    """Tell the owner, unless he was told."""
    if one(db, SQL["read"], (commit.name, commit.at)) is not None:
        return True
    if not keep_for_owner(db, commit.notice, commit.at):
        return False
    keep(db, Note(commit.name, "told", commit.until, commit.at))
    return True


class SqliteNotes:
    """Notes, read only."""

    _readers: Readers

    async def note(self, name: str, at: int) -> str:
        """What was noted under a name; "" for nothing, and for what is over at that time (milliseconds UTC)."""
        return await self._readers.run(_read, name, at)


def _read(db: apsw.Connection, name: str, at: int) -> str:
    row = one(db, SQL["read"], (name, at))
    return "" if row is None else str(row[0])
