"""Quiet commits: those that write nothing to the journal, so that nobody who waits for something to happen is woken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from keepsaid.adapters.sql.commit_table import CommitTable
from keepsaid.adapters.sql.operations.commits import buffer_commits
from keepsaid.adapters.sql.operations.queries import SqlLanes
from keepsaid.adapters.sql.tombs import Tombs, tombs_beside
from keepsaid.adapters.sqlite.connection import LOOKUPS_KIB, open_writer, translated
from keepsaid.adapters.sqlite.migrate import look, migrate
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.adapters.sqlite.session import SqliteSession
from keepsaid.adapters.sqlite.writer import TransactionExecutor, Writer
from keepsaid.domain.commits import BeginPruning, Commit, EpisodesKept, Prune, Renew, StepEnd, StepStart, TakeReplies
from keepsaid.domain.event import Distribute, SettleDeliveries, Subscribe, TakeDeliveries
from keepsaid.domain.process import Beat, Note
from keepsaid.domain.session import ClaimCollection
from keepsaid.domain.task import RenewTask, ResultsKept, TellStatus
from keepsaid.ports.store_views import Operations

_QUIET = frozenset[type]({
    Beat,
    BeginPruning,
    ClaimCollection,
    Distribute,
    EpisodesKept,
    Note,
    Prune,
    Renew,
    RenewTask,
    ResultsKept,
    SettleDeliveries,
    StepEnd,
    StepStart,
    Subscribe,
    TakeDeliveries,
    TakeReplies,
    TellStatus,
})  # fmt: skip


def is_quiet(commit: Commit[object]) -> bool:
    """Whether a commit of this type never tells of anything; of all others somebody may want to know at once."""
    return type(commit) in _QUIET


R = TypeVar("R")


class SqliteOperations(SqlLanes):
    """The operational store: every read above, and the one way to write."""

    def __init__(
        self, writer: Operations, readers: Readers, own_writer: Writer | None = None, tombs: Tombs | None = None
    ) -> None:
        super().__init__(readers, tombs or tombs_beside(readers.path))
        self._own_readers = readers
        self._writer = writer
        self._own_writer = own_writer

    async def apply(self, commit: Commit[R]) -> R:
        """Apply one commit; returns after it is on disk."""
        done = await self._writer.apply(commit)
        if not is_quiet(commit):
            self._told.set()
        return done

    async def close(self) -> None:
        """Stop the threads and close the file."""
        await self._own_readers.close()
        if self._own_writer is not None:
            await self._own_writer.close()


async def open_operations(path: Path) -> SqliteOperations:
    """Open or create the operational store at `path`; raises a StoreError with the file untouched."""
    writer = await start(path, ("buffer",), lambda db: buffer_commits(db, tombs_beside(path)))
    return SqliteOperations(writer, Readers(path, cached_kib=LOOKUPS_KIB), writer)


async def start(path: Path, parts: Sequence[str], table: Callable[[SqliteSession], CommitTable]) -> Writer:
    """Open, migrate and start the writer of a file that holds these parts of the schema."""
    return Writer(await asyncio.to_thread(open_ledger, path, parts, table), "+".join(parts))


def open_ledger(path: Path, parts: Sequence[str], table: Callable[[SqliteSession], CommitTable]) -> TransactionExecutor:
    """Open and migrate a file that holds these parts of the schema, for whoever is to write it."""
    with ExitStack() as undo:
        look(path, parts)
        db = open_writer(path)
        undo.callback(db.close)
        for part in parts:
            migrate(db, path, part)
        with translated(path):
            ledger = TransactionExecutor(db, path, table(db))
        undo.pop_all()
        return ledger
