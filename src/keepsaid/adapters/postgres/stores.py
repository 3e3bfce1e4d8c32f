"""Opens the stores in a database of PostgreSQL (short: the memory store is not there yet)."""

from __future__ import annotations

import asyncio

from keepsaid.adapters.postgres.connection import PostgresPlace, PostgresReaders
from keepsaid.adapters.postgres.schema import migrate
from keepsaid.adapters.postgres.writer import PostgresExecutor
from keepsaid.adapters.sql.operations import forgetting, queries
from keepsaid.adapters.sql.operations.store import SqlOperations
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.adapters.sql.writer import Writer


async def open_operations(place: PostgresPlace, keyring: TombstoneKeyring) -> SqlOperations:
    """Open or create the operational store; raises a StoreError with the database untouched."""
    await asyncio.to_thread(migrate, place, "buffer", forgetting.UNDOABLE)
    executor = await asyncio.to_thread(PostgresExecutor, place, lambda db: queries.buffer_commits(db, keyring))
    writer, readers = Writer(executor, "buffer"), PostgresReaders(place)
    return SqlOperations(writer, readers, keyring, (readers.close, writer.close))
