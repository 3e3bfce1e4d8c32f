"""Both stores: two files with a writer each, or one file with one; and both read only."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import TypeVar

from keepsaid.adapters.sql.operations.chronicle import SqlChronicles
from keepsaid.adapters.sql.operations.commits import buffer_commits
from keepsaid.adapters.sql.operations.forgetting import SQL as FORGETTING
from keepsaid.adapters.sql.query import every
from keepsaid.adapters.sql.tombs import KEY_NAME, tombs_beside
from keepsaid.adapters.sqlite.connection import LOOKUPS_KIB, open_reader, open_writer, translated
from keepsaid.adapters.sqlite.memories import MEMORY_TABLE, SqliteMemories, open_memories
from keepsaid.adapters.sqlite.migrate import check
from keepsaid.adapters.sqlite.operations import SqliteOperations, open_operations, start
from keepsaid.adapters.sqlite.pair import check_pair, join
from keepsaid.adapters.sqlite.progress import check_log
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.config.durable import write_file
from keepsaid.domain.commits import Commit
from keepsaid.errors import LogLost, StoreError, StoreUnpaired
from keepsaid.ports.redactor import Redactor
from keepsaid.ports.runtime import Ids

R = TypeVar("R")


async def open_stores(
    buffer: Path, memory: Path, ids: Ids, closing: AsyncExitStack, redactor: Redactor | None = None
) -> tuple[SqliteOperations, SqliteMemories]:
    """Open or create both stores; `closing` closes them in the right order. Memory holds no secret of `redactor`.

    Raises StoreUnpaired or LogLost, with nothing changed, when one of them is not what the last start left.
    """
    if not await asyncio.to_thread(_same, buffer, memory):
        await asyncio.to_thread(_joined, buffer, memory)
        operations = await open_operations(buffer)
        closing.push_async_callback(operations.close)
        memories = await open_memories(memory, ids, redactor, tombs_beside(buffer))
        closing.push_async_callback(memories.close)
        return operations, memories
    writer = await start(
        buffer, ("buffer", "memory"), lambda db: buffer_commits(db, tombs_beside(buffer)) | MEMORY_TABLE
    )
    readers, searching = Readers(buffer, cached_kib=LOOKUPS_KIB), Readers(buffer)
    for part in (writer, readers, searching):
        closing.push_async_callback(part.close)
    return SqliteOperations(writer, readers), SqliteMemories(writer, searching, ids, (), redactor, tombs_beside(buffer))


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _joined(buffer: Path, memory: Path) -> None:
    if not check_pair(buffer, memory):
        join(buffer, memory)


def check_stores(buffer: Path, memory: Path) -> None:
    """Raise StoreUnpaired or LogLost when the stores, of two files or of one, are not what the last start left.

    A runtime may make them meanwhile, so that one file was seen before and the other after: a second look decides.
    """
    try:
        _check(buffer, memory)
    except (StoreUnpaired, LogLost):
        _check(buffer, memory)


def _check(buffer: Path, memory: Path) -> None:
    if not _same(buffer, memory):
        check_pair(buffer, memory)
    elif buffer.exists() and buffer.stat().st_size:
        with closing(open_reader(buffer)) as db:
            check_log(db, buffer)
    elif buffer.exists():
        check_log(None, buffer)


class ReadOnly:
    """Stands where a writer would, for who may only read."""

    async def apply(self, commit: Commit[R]) -> R:
        """Refuse."""
        raise StoreError(f"{type(commit).__name__} needs the runtime: these files were opened for reading only")


async def read_stores(
    buffer: Path, memory: Path, ids: Ids, closing: AsyncExitStack
) -> tuple[SqlChronicles, SqliteMemories]:
    """Open both stores for reading; raises StoreError when they do not exist, are no pair or another program's."""
    await asyncio.to_thread(check_stores, buffer, memory)
    for path, part in ((buffer, "buffer"), (memory, "memory")):
        await asyncio.to_thread(_checked, path, part)
    buffer_readers, memory_readers = Readers(buffer, 1), Readers(memory, 1)
    closing.push_async_callback(buffer_readers.close)
    closing.push_async_callback(memory_readers.close)
    tombs = tombs_beside(buffer)
    reading = SqliteMemories(ReadOnly(), memory_readers, ids, tombs=tombs)
    return SqlChronicles(buffer_readers, tombs), reading


def _checked(path: Path, part: str) -> None:
    if not path.exists():
        raise StoreError(f"there is no {path} yet", safe="Nothing was stored here so far.", hint="keepsaid chat")
    db = open_reader(path)
    try:
        check(db, path, part)
    finally:
        db.close()


def carry(present: Path, restored: Path) -> int:
    """Let a restored operational store know what the present one forgot; returns how many tombstones there are.

    Its next start forgets all of that again. Nothing is carried from a home that has no store or no key.
    """
    key = present.with_name(KEY_NAME)
    if not present.exists() or not key.exists():
        return 0
    with closing(open_reader(present)) as db, translated(present):
        hashes = every(db, FORGETTING["tombstones"])
    write_file(restored.with_name(KEY_NAME), key.read_bytes())
    with closing(open_writer(restored)) as db, translated(restored):
        db.executemany(FORGETTING["bury"], [(hash_, 0) for (hash_,) in hashes])
    return len(hashes)
