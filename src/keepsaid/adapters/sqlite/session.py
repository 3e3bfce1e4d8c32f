"""Session: a connection of SQLite, with what commits and queries ask of whatever database holds the store."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import apsw

from keepsaid.adapters.sql.tombs import Tombs
from keepsaid.adapters.sqlite.aside import kept_aside, put_back
from keepsaid.adapters.sqlite.piece_index import count_terms, reindex
from keepsaid.adapters.sqlite.piece_scores import stems
from keepsaid.adapters.sqlite.sealing import altered
from keepsaid.adapters.sqlite.vector_index import alike


class SqliteSession(apsw.Connection):
    """What `SqlSession` asks for and apsw's connection has not."""

    def attach(self, tombs: Tombs) -> None:
        """Let statements say `buried(digest)`: NULL where nothing was forgotten yet."""
        self.create_scalar_function("buried", lambda *given: tombs.grave(given[0]), 1, deterministic=False)

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

    def kept_aside(self, number: int | None, tables: Sequence[str], keep: str) -> AbstractContextManager[None]:
        """Record what the block takes away by SQLite's session extension."""
        return kept_aside(self, number, tables, keep)

    def put_back(self, number: int, read: str) -> list[tuple[str, tuple[object, ...]]]:
        """Apply what was recorded, turned round."""
        return put_back(self, number, read)
