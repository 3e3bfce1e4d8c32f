"""Inline: writer and readers without threads, for a loop on which time is virtual. Not for a program at work."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Concatenate

from keepsaid.adapters.sql.operations.queries import buffer_commits
from keepsaid.adapters.sql.query import P, T
from keepsaid.adapters.sql.search.memories import MEMORY_TABLE
from keepsaid.adapters.sql.tombstones import TombstoneKeyring, open_keyring
from keepsaid.adapters.sql.writer import RejectedCommit
from keepsaid.adapters.sqlite import integrity, sealing, stores, writer
from keepsaid.adapters.sqlite.connection import Readers, SqliteSession
from keepsaid.domain.commits import Commit

_IN_MEMORY = Path(":memory:")


class InlineWriter:
    """Applies commits on the event loop, without a thread."""

    def __init__(self, ledger: writer.TransactionExecutor) -> None:
        self._ledger = ledger

    async def apply(self, commit: Commit[T]) -> T:
        [result] = self._ledger.apply([commit])
        if isinstance(result, RejectedCommit):
            raise result.error
        self._ledger.tidy()
        done: T = result
        return done

    def drop(self) -> None:
        self._ledger.close(broken=True)


class InlineReaders(Readers):
    """Reads on the event loop, without threads; over one connection, if it is given one."""

    def __init__(self, path: Path, db: SqliteSession | None = None) -> None:
        super().__init__(path)
        if db is not None:
            self._local.db = db

    async def run(self, query: Callable[Concatenate[SqliteSession, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(query, *args, **kwargs)

    def drop(self) -> None:
        for db in self._open:
            db.close()


def buffer_inline(path: Path) -> tuple[InlineWriter, InlineReaders]:
    """The operational store in a file, opened once more."""
    ledger = stores.open_ledger(path, ("buffer",), lambda db: buffer_commits(db, open_keyring(path)))
    return InlineWriter(ledger), InlineReaders(path)


def memory_inline(
    path: Path | None = None, tombs: TombstoneKeyring | None = None
) -> tuple[InlineWriter, InlineReaders]:
    """The memory store in a file, opened once more; or a new one that is in no file."""
    if path is not None:
        return InlineWriter(stores.open_ledger(path, ("memory",), lambda _: MEMORY_TABLE)), InlineReaders(path)
    db = _in_memory("memory", tombs or open_keyring(_IN_MEMORY))
    return InlineWriter(writer.TransactionExecutor(db, _IN_MEMORY, MEMORY_TABLE)), InlineReaders(_IN_MEMORY, db)


class InMemoryOperations(stores.SqliteOperations):
    """The operational store in memory, without threads: for tests, simulations and examples.

    It holds nothing but its database: another one over the same `database` goes on where this one stopped.
    """

    def __init__(self, database: InMemoryDatabase | None = None) -> None:
        self.database = database or InMemoryDatabase()
        readers = InlineReaders(_IN_MEMORY, self.database.db)
        super().__init__(_SharedWriter(self.database), readers, None, self.database.tombs)

    async def close(self) -> None:
        """Do nothing: the database lives as long as somebody holds it."""


class InMemoryDatabase:
    """An operational database in memory, with the key of its tombstones."""

    def __init__(self) -> None:
        self.tombs = open_keyring(_IN_MEMORY)
        self.db = _in_memory("buffer", self.tombs)
        self.wrote_last: object = None

    def ledger(self) -> writer.TransactionExecutor:
        """What applies commits, knowing only what is in the database."""
        return writer.TransactionExecutor(self.db, _IN_MEMORY, buffer_commits(self.db, self.tombs))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.db.execute(sql).fetchall()


class _SharedWriter(InlineWriter):
    """One of several writers over a database in memory, which share its connection.

    A writer reads its cached rows again after another one wrote. A file shows that by `PRAGMA data_version`,
    which does not change for a connection that wrote itself.
    """

    def __init__(self, database: InMemoryDatabase) -> None:
        super().__init__(database.ledger())
        self._database = database
        database.wrote_last = self

    async def apply(self, commit: Commit[T]) -> T:
        if self._database.wrote_last is not self:
            self._ledger, self._database.wrote_last = self._database.ledger(), self
        return await super().apply(commit)


def _in_memory(part: str, tombs: TombstoneKeyring) -> SqliteSession:
    """A new database in memory with this part of the schema, without row checksums: no disk can alter its rows."""
    db = _connected(tombs)
    db.deserialize("main", _migrated(part))
    return db


def _connected(tombs: TombstoneKeyring) -> SqliteSession:
    db = SqliteSession(str(_IN_MEMORY))
    db.attach(tombs)
    sealing.register(db)
    return db


@cache
def _migrated(part: str) -> bytes:
    db = _connected(open_keyring(_IN_MEMORY))
    integrity.migrate(db, _IN_MEMORY, part)
    return db.serialize("main")
