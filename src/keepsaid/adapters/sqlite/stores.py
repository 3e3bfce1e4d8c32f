"""Both stores on SQLite: a pair of files with a writer each, or one file with one; the ports of each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, closing
from pathlib import Path

from keepsaid.adapters.sql.marks import check_move_mark, end_move
from keepsaid.adapters.sql.memory import forgetting as memory_forgetting
from keepsaid.adapters.sql.memory.rows import MemoryParts
from keepsaid.adapters.sql.operations import forgetting, queries
from keepsaid.adapters.sql.operations.chronicle import SqlChronicles
from keepsaid.adapters.sql.operations.store import ReadOnly, SqlOperations
from keepsaid.adapters.sql.query import CommitTable, column, load, only
from keepsaid.adapters.sql.search.memories import MEMORY_TABLE, SearchedMemories
from keepsaid.adapters.sql.tombstones import KEY_NAME, TombstoneKeyring, open_keyring
from keepsaid.adapters.sql.writer import Writer
from keepsaid.adapters.sqlite import connection, integrity, writer
from keepsaid.adapters.sqlite.connection import Readers, SqliteSession, open_reader, open_writer, translated
from keepsaid.adapters.sqlite.writer import TransactionExecutor
from keepsaid.config.home import write_file
from keepsaid.errors import LogLost, StoreError, StoreUnpaired
from keepsaid.ports import runtime
from keepsaid.ports.store_views import Operations
from keepsaid.values import frozen

PAIR = load("pair")
_OTHER = {"buffer": "memory", "memory": "buffer"}
_HELD = {"buffer": "messages", "memory": "memories"}


@frozen
class Half:
    """One store of the pair, as a reader finds it.

    `schema` is 0 when the file is missing, empty or has no table of its part. `stored` tells whether anything was ever
    put into it, `memory` is the memory store that a buffer was joined with.
    """

    path: Path
    part: str
    schema: int = 0
    is_other: bool = False
    stored: bool = False
    id: bytes | None = None
    memory: bytes | None = None
    is_readable: bool = True


def check_pair(buffer: Path, memory: Path) -> bool:
    """Whether the two files are a joined pair; False when they are new or have to be joined first.

    Raises StoreUnpaired when one is missing, empty, exchanged or of another home, LogLost when a log is lost.
    """
    halves = _inspected(buffer, "buffer"), _inspected(memory, "memory")
    if not all(half.is_readable for half in halves):
        return True
    _check_parts(*halves)
    for half in halves:
        if half.schema:
            with closing(open_reader(half.path)) as db, translated(half.path):
                writer.check_log(db, half.path)
        elif half.path.exists():
            writer.check_log(None, half.path)
    first, second = halves
    for lost, left in ((first, second), (second, first)):
        if not lost.schema and left.stored:
            state = "holds nothing" if lost.path.exists() else "is missing"
            raise StoreUnpaired(f"{lost.path} {state}, and {left.path} holds {_HELD[left.part]} that belong to it")
    is_joined = first.memory is not None and first.memory == second.id
    if first.memory is not None and not is_joined and (first.stored or second.stored):
        raise StoreUnpaired(f"{memory} does not belong to {buffer}: it is of another home, or of another time")
    return is_joined


def join_pair(buffer: Path, memory: Path) -> None:
    """Join the two stores, unless they are a joined pair."""
    if not check_pair(buffer, memory):
        join(buffer, memory)


def join(buffer: Path, memory: Path) -> None:
    """Make or migrate both stores, and let the buffer name the memory store. Safe to repeat after a crash."""
    for path, part in ((buffer, "buffer"), (memory, "memory")):
        integrity.look(path, (part,))
    with closing(open_writer(buffer)) as first:
        integrity.migrate(first, buffer, "buffer")
        with closing(open_writer(memory)) as second:
            integrity.migrate(second, memory, "memory")
            with translated(memory):
                found = only(second, PAIR["mark"])[0]
        with translated(buffer):
            first.execute(PAIR["join"], (found,))


def accept_loss(buffer: Path, memory: Path) -> None:
    """Accept both files as they are: create a missing one, empty, and join the two."""
    for path in (buffer, memory):
        writer.forget_progress(path)
    if buffer.resolve() != memory.resolve():
        join(buffer, memory)


def _inspected(path: Path, part: str) -> Half:
    if not path.exists() or not path.stat().st_size:
        return Half(path, part)
    try:
        db = open_reader(path)
    except StoreError as error:
        if type(error) is not StoreError:
            raise
        return Half(path, part, is_readable=False)  # it needs repair first, which reading cannot do
    with closing(db), translated(path):
        if not (schema := integrity.version(db, part)):
            return Half(path, part, is_other=integrity.version(db, _OTHER[part]) > 0)
        known = db.table_exists("main", "store_mark")
        store, named = only(db, PAIR["mark"]) if known else (None, None)
        return Half(path, part, schema, False, bool(only(db, PAIR[f"stored_{part}"])[0]), store, named)


def _check_parts(buffer: Half, memory: Half) -> None:
    if buffer.is_other and memory.is_other:
        raise StoreUnpaired(
            f"{buffer.path} holds memories and {memory.path} holds messages: the two were exchanged",
            hint="exchange the two files, or the settings buffer.path and memory.path",
        )
    for half in (buffer, memory):
        if half.is_other:
            raise StoreUnpaired(
                f"{half.path} holds {_HELD[_OTHER[half.part]]}, but it is the file of {half.part}.path",
                hint=f"put the right file there, or change the setting {half.part}.path",
            )


class SqliteOperations(SqlOperations):
    """The operational store in a file of SQLite."""

    def __init__(
        self, writer: Operations, readers: Readers, own: Writer | None = None, keyring: TombstoneKeyring | None = None
    ) -> None:
        closing = (readers.close, own.close) if own is not None else (readers.close,)
        super().__init__(writer, readers, keyring or open_keyring(readers.path), closing)


async def open_operations(path: Path) -> SqliteOperations:
    """Open or create the operational store at `path`; raises a StoreError with the file untouched."""
    writer = await start(path, ("buffer",), lambda db: queries.buffer_commits(db, open_keyring(path)))
    return SqliteOperations(writer, Readers(path, cached_kib=connection.LOOKUPS_KIB), writer)


async def start(path: Path, parts: Sequence[str], table: Callable[[SqliteSession], CommitTable]) -> Writer:
    """Open, migrate and start the writer of a file that holds these parts of the schema."""
    return Writer(await asyncio.to_thread(open_ledger, path, parts, table), "+".join(parts))


def open_ledger(path: Path, parts: Sequence[str], table: Callable[[SqliteSession], CommitTable]) -> TransactionExecutor:
    """Open and migrate a file that holds these parts of the schema, for whoever is to write it."""
    with ExitStack() as undo:
        db = _open(path, parts)
        undo.callback(db.close)
        with translated(path):
            ledger = TransactionExecutor(db, path, table(db))
        undo.pop_all()
        return ledger


def _open(path: Path, parts: Sequence[str]) -> SqliteSession:
    with ExitStack() as undo:
        integrity.look(path, parts)
        db = open_writer(path)
        undo.callback(db.close)
        for part in parts:
            integrity.migrate(db, path, part)
        with translated(path):
            end_move(db)
        undo.pop_all()
        return db


_LOG_PAGES = 250
"""One memory that leaves the index changes a hundred pages: a longer log would hold up the writer when it is moved."""


class SqliteMemories(SearchedMemories):
    """Memories in one SQLite file; `writer` must know MEMORY_TABLE, `closing` are closed with it, in order."""

    def __init__(
        self,
        writer: Operations,
        readers: Readers,
        ids: runtime.Ids,
        closing: Sequence[Readers | Writer] = (),
        redactor: runtime.Redactor | None = None,
        keyring: TombstoneKeyring | None = None,
    ) -> None:
        parts = MemoryParts(writer, readers, ids, redactor, keyring or open_keyring(readers.path))
        super().__init__(parts, [part.close for part in closing])


async def open_memories(
    path: Path, ids: runtime.Ids, redactor: runtime.Redactor | None = None, keyring: TombstoneKeyring | None = None
) -> SqliteMemories:
    """Open or create the memory store at `path`; raises a StoreError with the file untouched.

    `keyring` is that of its home, beside the operational store; without one, the keyring is beside this store.
    """
    db = await asyncio.to_thread(_open, path, ("memory",))
    if keyring is not None:
        db.attach(keyring)
    writer = Writer(TransactionExecutor(db, path, MEMORY_TABLE, _LOG_PAGES), "memory")
    readers = Readers(path)
    return SqliteMemories(writer, readers, ids, (readers, writer), redactor, keyring)


async def open_stores(
    buffer: Path, memory: Path, ids: runtime.Ids, closing: AsyncExitStack, redactor: runtime.Redactor | None = None
) -> tuple[SqliteOperations, SqliteMemories]:
    """Open or create both stores; `closing` closes them in the right order. Memory holds no secret of `redactor`.

    Raises StoreUnpaired or LogLost, with nothing changed, when one of them is not what the last start left.
    """
    if not await asyncio.to_thread(_same, buffer, memory):
        await asyncio.to_thread(join_pair, buffer, memory)
        operations = await open_operations(buffer)
        closing.push_async_callback(operations.close)
        memories = await open_memories(memory, ids, redactor, open_keyring(buffer))
        closing.push_async_callback(memories.close)
        return operations, memories
    writer = await start(
        buffer, ("buffer", "memory"), lambda db: queries.buffer_commits(db, open_keyring(buffer)) | MEMORY_TABLE
    )
    readers, searching = Readers(buffer, cached_kib=connection.LOOKUPS_KIB), Readers(buffer)
    for part in (writer, readers, searching):
        closing.push_async_callback(part.close)
    return SqliteOperations(writer, readers), SqliteMemories(writer, searching, ids, (), redactor, open_keyring(buffer))


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


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
            writer.check_log(db, buffer)
    elif buffer.exists():
        writer.check_log(None, buffer)


async def read_stores(
    buffer: Path, memory: Path, ids: runtime.Ids, closing: AsyncExitStack
) -> tuple[SqlChronicles, SqliteMemories]:
    """Open both stores for reading; raises StoreError when they do not exist, do not match or are another program's."""
    await asyncio.to_thread(check_stores, buffer, memory)
    for path, part in ((buffer, "buffer"), (memory, "memory")):
        await asyncio.to_thread(_checked, path, part)
    buffer_readers, memory_readers = Readers(buffer, 1), Readers(memory, 1)
    closing.push_async_callback(buffer_readers.close)
    closing.push_async_callback(memory_readers.close)
    keyring = open_keyring(buffer)
    no_writer = ReadOnly(str(memory))
    return SqlChronicles(buffer_readers, keyring), SqliteMemories(no_writer, memory_readers, ids, keyring=keyring)


def _checked(path: Path, part: str) -> None:
    if not path.exists():
        raise StoreError(f"there is no {path} yet", safe="Nothing was stored here so far.", hint="keepsaid chat")
    with closing(open_reader(path)) as db:
        if integrity.check(db, path, part):
            check_move_mark(db, str(path))


def lacks_tombstones(buffer: Path, memory: Path) -> bool:
    """Whether a store lacks a tombstone that is kept beside them: an older copy of it was put in place.

    True until what came back is hidden. While a forgetting is being undone, this is false. Raises StoreError.
    """
    kept = open_keyring(buffer).kept.read()
    if not kept or not (buffer.exists() and memory.exists()):
        return False
    check_stores(buffer, memory)
    for path, part, statements in ((buffer, "buffer", forgetting.SQL), (memory, "memory", memory_forgetting.SQL)):
        _checked(path, part)
        with closing(open_reader(path)) as db, translated(path):
            if part == "buffer" and column(db, PAIR["undoing"]):
                return False
            if part == "buffer" and column(db, PAIR["forgetting_again"]):
                return True
            if not kept.issubset(column(db, statements["tombstones"])):
                return True
    return False


def carry(present: Path, restored: Path) -> int:
    """Copy the tombstones of a home into a restored one, which forgets again at its first start; returns how many."""
    key = present.with_name(KEY_NAME)
    if not key.exists():
        return 0
    hashes = set(open_keyring(present).kept.read())
    if present.exists():
        with closing(open_reader(present)) as db, translated(present):
            hashes.update(column(db, forgetting.SQL["tombstones"]))
    write_file(restored.with_name(KEY_NAME), key.read_bytes())
    open_keyring(restored).kept.add(hashes)
    with closing(open_writer(restored)) as db, translated(restored):
        db.executemany(forgetting.SQL["bury"], [(hash_, 0) for hash_ in hashes])
    return len(hashes)
