"""Session: a connection of SQLite, with what commits and queries ask of it, and what a change of rows took away."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import apsw

from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.adapters.sqlite.piece_index import count_terms, reindex, stems
from keepsaid.adapters.sqlite.sealing import altered
from keepsaid.adapters.sqlite.vector_index import alike


@contextmanager
def record_undo(db: apsw.Connection, number: int | None, tables: Sequence[str], keep: str) -> Iterator[None]:
    """Record what the block deletes from these tables as undo image `number`; None records nothing.

    `keep` is the statement that stores the image: an inverted changeset, compressed with zlib.
    """
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


class SqliteSession(apsw.Connection):
    """What `SqlSession` asks for and apsw's connection has not."""

    def attach(self, tombs: TombstoneKeyring) -> None:
        """Let statements say `buried(digest)`: NULL where nothing was forgotten yet."""
        self.create_scalar_function("buried", lambda *given: tombs.compute_tombstone(given[0]), 1, deterministic=False)

    def numbers(self, values: Sequence[int]) -> object:
        """Bind whole numbers as one value, without a copy: `IN (SELECT value FROM carray(?))`."""
        return apsw.carray(array("q", values))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin at once as the one that writes; roll back unless the block ends well."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        finally:
            if self.in_transaction:
                self.execute("ROLLBACK")

    def reindex(self) -> None:
        """Index what a trigger noted as changed."""
        reindex(self)

    def stems(self, text: str) -> list[str]:
        """Cut a text as FTS5 does."""
        return stems(self, text)

    def count_terms(self, most: int) -> bool:
        """Count where the last count ended."""
        return count_terms(self, most)

    def alike(self, ids: Sequence[int], above: float) -> tuple[tuple[int, int], ...]:
        """Compare the vectors with numpy."""
        return alike(self, tuple(ids), above)

    def altered(self, table: str, keys: Sequence[int], *outer: object) -> frozenset[int]:
        """Compare rows with their checksums."""
        return altered(self, table, keys, *outer)

    def record_undo(self, number: int | None, tables: Sequence[str], keep: str) -> AbstractContextManager[None]:
        """Record what the block deletes with SQLite's session extension."""
        return record_undo(self, number, tables, keep)

    def put_back(self, number: int, read: str) -> list[tuple[str, tuple[object, ...]]]:
        """Apply what was recorded, turned round."""
        return put_back(self, number, read)
