"""Aside: what a change of rows took away, kept where nothing reads it, so that the change can be undone.

The rows are those of SQLite's own record of a transaction, turned round; they are written in that same transaction.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import apsw


@contextmanager
def kept_aside(db: apsw.Connection, number: int | None, tables: Sequence[str], keep: str) -> Iterator[None]:
    """Keep what the block takes away from these tables under a number, by the statement `keep`; with None nothing."""
    if number is None:
        yield
        return
    session = apsw.Session(db, "main")
    try:
        for table in tables:
            session.attach(table)
        yield
        changes = session.changeset()
    finally:
        session.close()
    if changes:
        db.execute(keep, (number, zlib.compress(apsw.Changeset.invert(changes))))


def put_back(db: apsw.Connection, number: int, read: str) -> list[tuple[str, tuple[object, ...]]]:
    """Undo what was kept under a number, the last first; returns what came back: the table, and the row's key.

    What has been changed since is as it was before; what is gone since stays gone.
    """
    found: list[tuple[str, tuple[object, ...]]] = []
    kept: list[tuple[bytes]] = db.execute(read, (number,)).fetchall()  # type: ignore[assignment]
    for (packed,) in kept:
        images = zlib.decompress(packed)
        for change in apsw.Changeset.iter(images):
            row = change.new if change.opcode == apsw.SQLITE_INSERT else change.old
            found.append((change.name, tuple(row[at] for at in sorted(change.pk_columns)) if row else ()))
        apsw.Changeset.apply(images, db, conflict=_settled)
    return found


def _settled(reason: int, _change: object) -> int:
    return apsw.SQLITE_CHANGESET_REPLACE if reason == apsw.SQLITE_CHANGESET_DATA else apsw.SQLITE_CHANGESET_OMIT
