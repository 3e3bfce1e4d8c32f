"""Session: a connection of SQLite, with what commits and queries ask of it, and what a change of rows took away."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import apsw

from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.adapters.sqlite.piece_index import count_terms, reindex, stems
from keepsaid.adapters.sqlite.sealing import altered
from keepsaid.adapters.sqlite.vector_index import alike


class SqliteSession(apsw.Connection):
    """What `SqlSession` asks for and apsw's connection has not."""

    def attach(self, keyring: TombstoneKeyring) -> None:
        """Let statements say `buried(digest)`: NULL where nothing was forgotten yet."""
        self.create_scalar_function(
            "buried", lambda *given: keyring.compute_tombstone(given[0]), 1, deterministic=False
        )

    def numbers(self, values: Sequence[int]) -> object:
        """Bind whole numbers as one value, without a copy: `IN (SELECT value FROM carray(?))`."""
        return apsw.carray(array("q", values))

    def texts(self, values: Sequence[str] | Sequence[bytes]) -> object:
        return apsw.carray(tuple(values))

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

    reindex = reindex
    stems = stems
    count_terms = count_terms
    alike = alike
    altered = altered

    @contextmanager
    def record_undo(self, number: int | None, tables: Sequence[str], keep: str) -> Iterator[None]:
        """An undo image is an inverted changeset, compressed with zlib."""
        if number is None:
            yield
            return
        session = apsw.Session(self, "main")
        try:
            for table in tables:
                session.attach(table)
            yield
            changes = session.changeset()
        finally:
            session.close()
        if changes:
            self.execute(keep, (number, zlib.compress(apsw.Changeset.invert(changes))))

    def put_back(self, number: int, read: str) -> list[tuple[str, tuple[object, ...]]]:
        """A row that was changed since is restored; one that was deleted since stays deleted."""
        found: list[tuple[str, tuple[object, ...]]] = []
        kept: list[tuple[bytes]] = self.execute(read, (number,)).fetchall()  # type: ignore[assignment]
        for (packed,) in kept:
            images = zlib.decompress(packed)
            for change in apsw.Changeset.iter(images):
                row = change.new if change.opcode == apsw.SQLITE_INSERT else change.old
                found.append((change.name, tuple(row[at] for at in sorted(change.pk_columns)) if row else ()))
            apsw.Changeset.apply(images, self, conflict=_settled)
        return found


def _settled(reason: int, _change: object) -> int:
    return apsw.SQLITE_CHANGESET_REPLACE if reason == apsw.SQLITE_CHANGESET_DATA else apsw.SQLITE_CHANGESET_OMIT
