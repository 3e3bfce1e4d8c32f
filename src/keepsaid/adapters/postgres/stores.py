"""Both stores in a database of PostgreSQL: opened, migrated, and written by one writer for each process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from keepsaid.adapters.postgres.connection import PostgresPlace, PostgresReaders
from keepsaid.adapters.postgres.schema import migrate
from keepsaid.adapters.postgres.writer import PostgresExecutor
from keepsaid.adapters.sql.memory import forgetting as memory_forgetting
from keepsaid.adapters.sql.memory.rows import MemoryParts
from keepsaid.adapters.sql.operations import forgetting, queries
from keepsaid.adapters.sql.operations.store import SqlOperations
from keepsaid.adapters.sql.query import CommitTable, SqlSession
from keepsaid.adapters.sql.search import word_blocks
from keepsaid.adapters.sql.search.memories import MEMORY_TABLE, SearchedMemories
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.adapters.sql.writer import Writer
from keepsaid.ports import runtime

_MEMORY_TABLE = MEMORY_TABLE | CommitTable({}, {}, (), (word_blocks.start_again,))

UNDOABLE = {
    "buffer": forgetting.UNDOABLE,
    "memory": (*memory_forgetting.TABLES, *memory_forgetting.GRAVES),
}
"""The tables of each part whose rows an undo puts back."""


async def open_operations(place: PostgresPlace, keyring: TombstoneKeyring) -> SqlOperations:
    """Open or create the operational store; raises a StoreError with the database untouched."""
    writer = await _start(place, ("buffer",), keyring, lambda db: queries.buffer_commits(db, keyring))
    readers = PostgresReaders(place)
    return SqlOperations(writer, readers, keyring, (readers.close, writer.close))


async def open_memories(
    place: PostgresPlace, ids: runtime.Ids, keyring: TombstoneKeyring, redactor: runtime.Redactor | None = None
) -> SearchedMemories:
    """Open or create the memory store; raises a StoreError with the database untouched."""
    writer = await _start(place, ("memory",), keyring, lambda _: _MEMORY_TABLE)
    readers = PostgresReaders(place)
    return SearchedMemories(MemoryParts(writer, readers, ids, redactor, keyring), (readers.close, writer.close))


async def open_stores(
    place: PostgresPlace,
    ids: runtime.Ids,
    keyring: TombstoneKeyring,
    closing: AsyncExitStack,
    redactor: runtime.Redactor | None = None,
) -> tuple[SqlOperations, SearchedMemories]:
    """Open or create both stores; `closing` closes them in the right order. Memory holds no secret of `redactor`."""
    writer = await _start(
        place, ("buffer", "memory"), keyring, lambda db: queries.buffer_commits(db, keyring) | _MEMORY_TABLE
    )
    readers, searching = PostgresReaders(place), PostgresReaders(place)
    for part in (writer, readers, searching):
        closing.push_async_callback(part.close)
    parts = MemoryParts(writer, searching, ids, redactor, keyring)
    return SqlOperations(writer, readers, keyring), SearchedMemories(parts)


async def _start(
    place: PostgresPlace, parts: Sequence[str], keyring: TombstoneKeyring, table: Callable[[SqlSession], CommitTable]
) -> Writer:
    """Migrate the parts of a database, and start the thread that writes them."""
    for part in parts:
        await asyncio.to_thread(migrate, place, part, UNDOABLE[part])
    return Writer(await asyncio.to_thread(PostgresExecutor, place, table, keyring), "+".join(parts))
