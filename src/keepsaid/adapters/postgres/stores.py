"""Both stores in a database of PostgreSQL: opened, migrated, and written by one writer for each process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from contextlib import closing as closing_of

from keepsaid.adapters.postgres.connection import PostgresPlace, connect, in_our_words
from keepsaid.adapters.postgres.dialect import PACKAGE
from keepsaid.adapters.postgres.near import NEAR_MIN, NearFiller, NearVectors
from keepsaid.adapters.postgres.readers import PostgresReaders
from keepsaid.adapters.postgres.schema import find_numbers, migrate
from keepsaid.adapters.postgres.session import PostgresSession
from keepsaid.adapters.postgres.writer import PostgresExecutor, VacuumingWriter
from keepsaid.adapters.sql.marks import check_move_mark, end_move
from keepsaid.adapters.sql.memory import forgetting as memory_forgetting
from keepsaid.adapters.sql.memory.rows import MemoryParts
from keepsaid.adapters.sql.operations import forgetting, queries
from keepsaid.adapters.sql.operations.chronicle import SqlChronicles
from keepsaid.adapters.sql.operations.store import ReadOnly, SqlOperations
from keepsaid.adapters.sql.query import CommitTable, SqlSession, column, load, scalar
from keepsaid.adapters.sql.scripts import due
from keepsaid.adapters.sql.search import word_blocks
from keepsaid.adapters.sql.search.memories import MEMORY_TABLE, SearchedMemories
from keepsaid.adapters.sql.tombstones import HASHES_NAME, KEY_NAME, TombstoneKeyring
from keepsaid.adapters.sql.writer import Writer
from keepsaid.errors import StoreError, StoreUnpaired
from keepsaid.ports import runtime

PAIR, PLACE = load("pair"), load("place", PACKAGE)
_PROVED = b"keepsaid"
"""Its tombstone proves that a home has the key."""


def _memory_table(place: PostgresPlace, near_min: int = NEAR_MIN) -> CommitTable:
    """The commits of memory; one table for each writer."""
    near = NearFiller(place.schema, near_min)
    return MEMORY_TABLE | CommitTable({}, {}, (near.fill,), (word_blocks.forget_progress,))


UNDOABLE = {
    "buffer": forgetting.UNDOABLE,
    "memory": (*memory_forgetting.TABLES, *memory_forgetting.GRAVES),
}
"""The tables of each part whose rows an undo puts back."""


async def open_operations(place: PostgresPlace, keyring: TombstoneKeyring) -> SqlOperations:
    """Open or create the operational store; raises a StoreError with the database untouched."""
    await asyncio.to_thread(migrate, place, "buffer", UNDOABLE["buffer"])
    writer = await _start(place, keyring, lambda db: queries.buffer_commits(db, keyring))
    readers = PostgresReaders(place)
    return SqlOperations(writer, readers, keyring, (readers.close, writer.close))


async def open_memories(
    place: PostgresPlace,
    ids: runtime.Ids,
    keyring: TombstoneKeyring,
    redactor: runtime.Redactor | None = None,
    near_min: int = NEAR_MIN,
) -> SearchedMemories:
    """Open or create the memory store; raises a StoreError with the database untouched.

    From `near_min` vectors in a space on, pgvector finds the nearest, where it is installed.
    """
    await asyncio.to_thread(migrate, place, "memory", UNDOABLE["memory"])
    table = _memory_table(place, near_min)
    writer = await _start(place, keyring, lambda _: table)
    readers = PostgresReaders(place)
    parts, closing = MemoryParts(writer, readers, ids, redactor, keyring), (readers.close, writer.close)
    return SearchedMemories(parts, closing, NearVectors(place.schema))


async def open_stores(
    place: PostgresPlace,
    ids: runtime.Ids,
    keyring: TombstoneKeyring,
    closing: AsyncExitStack,
    redactor: runtime.Redactor | None = None,
) -> tuple[SqlOperations, SearchedMemories]:
    """Open or create both stores; `closing` closes them in the right order. Memory holds no secret of `redactor`.

    Other processes may work with them. Raises StoreUnpaired where this home lacks their key.
    """

    def prepared(db: SqlSession) -> CommitTable:
        migrate_stores(place)
        check_move_mark(db, str(place))
        check_key(place, keyring, make=True)
        end_move(db)
        return queries.buffer_commits(db, keyring) | _memory_table(place)

    writer = await _start(place, keyring, prepared)
    readers, searching = PostgresReaders(place), PostgresReaders(place)
    for part in (writer, readers, searching):
        closing.push_async_callback(part.close)
    parts = MemoryParts(writer, searching, ids, redactor, keyring)
    return SqlOperations(writer, readers, keyring), SearchedMemories(parts, (), NearVectors(place.schema))


def migrate_stores(place: PostgresPlace) -> None:
    """Make both stores, or bring them up to date; raises a StoreError with the database as it was."""
    for part, undoable in UNDOABLE.items():
        migrate(place, part, undoable)


async def _start(place: PostgresPlace, keyring: TombstoneKeyring, table: Callable[[SqlSession], CommitTable]) -> Writer:
    """Start the thread that writes a database."""
    return VacuumingWriter(place, await asyncio.to_thread(PostgresExecutor, place, table, keyring))


async def read_stores(
    place: PostgresPlace, ids: runtime.Ids, keyring: TombstoneKeyring, closing: AsyncExitStack
) -> tuple[SqlChronicles, SearchedMemories]:
    """Open both stores for reading; raises a StoreError where they are not there, older, newer or another program's."""
    await asyncio.to_thread(check_stores, place, keyring)
    readers, searching = PostgresReaders(place, 1), PostgresReaders(place, 1)
    closing.push_async_callback(readers.close)
    closing.push_async_callback(searching.close)
    parts = MemoryParts(ReadOnly(str(place)), searching, ids, None, keyring)
    return SqlChronicles(readers, keyring), SearchedMemories(parts, (), NearVectors(place.schema))


def check_stores(place: PostgresPlace, keyring: TombstoneKeyring) -> None:
    """Raise a StoreError unless both stores are there and can be read by this program and this home."""
    for part, number in find_numbers(place).items():
        if number == 0:
            safe, hint = "Nothing was stored here so far.", "keepsaid chat"
            raise StoreError(f"there is no store in {place} yet", safe=safe, hint=hint)
        if due(part, number):
            safe, hint = "Nothing was changed.", "keepsaid serve, which brings it up to date"
            raise StoreError(f"{place} is of an older release", safe=safe, hint=hint)
    with in_our_words(place), closing_of(connect(place)) as connection:
        check_move_mark(PostgresSession(connection), str(place))
    check_key(place, keyring)


def are_there(place: PostgresPlace) -> bool:
    """Whether both stores were ever made; raises a StoreError if that cannot be read."""
    return all(find_numbers(place).values())


def check_key(place: PostgresPlace, keyring: TombstoneKeyring, *, make: bool = False) -> None:
    """Raise StoreUnpaired unless this home has the key of the stores' tombstones; `make` gives new stores one."""
    with in_our_words(place), closing_of(connect(place)) as connection:
        db = PostgresSession(connection)
        proof = scalar(db, PLACE["key_proof"])
        if proof is None and make:
            [made] = keyring.make_tombstones([_PROVED])
            db.execute(PLACE["keep_proof"], (made,))
        elif proof is not None and keyring.compute_tombstones([_PROVED]) != [proof]:
            raise StoreUnpaired(
                f"{place} belongs to a home that has another {KEY_NAME}",
                safe="Nothing was changed.",
                hint=f"copy {KEY_NAME}, and {HASHES_NAME} if it is there, from the data directory of that home to this",
            )


def lacks_tombstones(place: PostgresPlace, keyring: TombstoneKeyring) -> bool:
    """Whether a store lacks a tombstone that is kept in this home: an older copy of the database was put in place.

    True until what came back is hidden. While a forgetting is being undone, this is false. Raises StoreError.
    """
    kept = keyring.kept.read()
    if not kept or not are_there(place):
        return False
    check_stores(place, keyring)
    with in_our_words(place), closing_of(connect(place)) as connection:
        db = PostgresSession(connection)
        if column(db, PAIR["undoing"]):
            return False
        if column(db, PAIR["forgetting_again"]):
            return True
        statements = forgetting.SQL["tombstones"], memory_forgetting.SQL["tombstones"]
        return not all(kept.issubset(column(db, statement)) for statement in statements)
