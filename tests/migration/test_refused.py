"""What is not ours, or not ours yet, is refused with not a byte of it changed; what is empty is new."""

from __future__ import annotations

import asyncio
import gc
import os
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import apsw
import pytest
from tests.migration.files import NEXT, PARTS, Newer, bytes_of, made, rows, schema, versions, with_a_message
from tests.waits import HANG_S

from keepsaid.adapters.sqlite.integrity import examine
from keepsaid.adapters.sqlite.stores import open_memories, open_operations, open_stores, read_stores
from keepsaid.errors import ForeignStore, SchemaTooNew, StoreError, StoreLocked
from keepsaid.testing.clock import CountingIds

Open = Callable[[Path], Awaitable[None]]


async def as_buffer(path: Path) -> None:
    await (await open_operations(path)).close()


async def as_memory(path: Path) -> None:
    await (await open_memories(path, CountingIds())).close()


async def as_both(path: Path) -> None:
    async with AsyncExitStack() as closing:
        await open_stores(path, path, CountingIds(), closing)


async def for_reading(path: Path) -> None:
    async with AsyncExitStack() as closing:
        await read_stores(path, path, CountingIds(), closing)


async def for_a_checkup(path: Path) -> None:
    examine(path, PARTS)


WRITERS = [as_buffer, as_memory, as_both]
OPENERS = [*WRITERS, for_reading, for_a_checkup]


async def refused(opened: Open, path: Path, error: type[StoreError]) -> StoreError:
    """The error, after which every byte is as it was, and nothing is left open that could change one later."""
    before = bytes_of(path)
    told = await _told(opened, path)
    gc.collect()
    assert isinstance(told, error)
    assert bytes_of(path) == before
    assert str(path) in told.what
    assert told.safe
    assert told.hint
    return told


async def _told(opened: Open, path: Path) -> StoreError | None:
    """The error alone: its traceback would keep alive whatever was open."""
    try:
        await opened(path)
    except StoreError as error:
        error.__cause__ = None
        return error.with_traceback(None)
    return None


# A newer schema


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Newer:
    return Newer(tmp_path_factory.mktemp("newer"))


LEFT = {
    "closed": "db.close()",
    # The log holds what the file does not.
    "crashed": "db.execute('PRAGMA user_version = 5'); os._exit(0)",
    # As a backup is: without a log.
    "restored": "db.pragma('journal_mode', 'delete'); db.close()",
}
"""How the newer program left its file."""


@pytest.mark.parametrize(
    ("left", "opened"),
    [
        *((left, opened) for left in LEFT for opened in OPENERS),
    ],
)
async def test_a_newer_schema_is_refused(tmp_path: Path, newer: Newer, opened: Open, left: str) -> None:
    path = tmp_path / "one.db"
    newer.run(path, *PARTS, after=LEFT[left])
    assert left != "crashed" or (tmp_path / "one.db-wal").stat().st_size
    error = await refused(opened, path, SchemaTooNew)
    told = [f"has {part} schema {NEXT[part]}; this keepsaid knows {NEXT[part] - 1}" for part in PARTS]
    assert any(one in error.what for one in told)
    assert (error.safe, error.hint) == ("The file was not touched.", SchemaTooNew.hint)
    assert versions(path) == NEXT


async def test_a_newer_memory_leaves_the_buffer_beside_it_alone(tmp_path: Path, newer: Newer) -> None:
    buffer, memory = made(tmp_path / "buffer.db", ["buffer"]), tmp_path / "memory.db"
    newer.run(memory, "memory")
    before = bytes_of(buffer)
    async with AsyncExitStack() as closing:
        with pytest.raises(SchemaTooNew):
            await open_stores(buffer, memory, CountingIds(), closing)
    assert bytes_of(buffer) == before


# Other programs' files


ENDS = [("delete", "closes"), ("wal", "closes"), ("wal", "dies")]
FOREIGN = (
    "import os, sys, sqlite3\n"
    "db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
    "db.execute(f'PRAGMA journal_mode = {sys.argv[2]}')\n"
    "db.execute('CREATE TABLE theirs (x)')\n"
    "db.execute('INSERT INTO theirs VALUES (5)')\n"
    "os._exit(0) if sys.argv[3] == 'dies' else db.close()\n"
)


@pytest.mark.parametrize(
    ("mode", "end", "opened"),
    [
        *((mode, end, opened) for mode, end in ENDS for opened in OPENERS),
    ],
)
async def test_another_programs_database_is_refused(tmp_path: Path, opened: Open, mode: str, end: str) -> None:
    path = tmp_path / "theirs.db"
    command = [sys.executable, "-c", FOREIGN, str(path), mode, end]
    await asyncio.to_thread(lambda: subprocess.run(command, check=True, timeout=HANG_S))
    error = await refused(opened, path, ForeignStore)
    assert error.what == f"{path} is another program's database"
    assert rows(path, "SELECT x FROM theirs") == [(5,)]


@pytest.mark.parametrize("opened", OPENERS)
async def test_what_is_no_database_is_refused(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "notes.txt"
    for content in (b"\0", b"SQLite format 3", b"Dear diary,\n" * 1_000, os.urandom(8_192)):
        path.write_bytes(content)
        error = await refused(opened, path, ForeignStore)
        assert error.what == f"{path} is not a keepsaid database"
        assert error.safe == "The file was not touched."


@pytest.mark.parametrize("opened", OPENERS)
async def test_a_damaged_database_is_refused(tmp_path: Path, opened: Open) -> None:
    path = made(tmp_path / "one.db")
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"\xff" * 8_000 + whole[8_100:])
    error = await refused(opened, path, ForeignStore)
    assert "is not a readable database" in error.what
    assert error.hint == "keepsaid data restore --help"


@pytest.mark.parametrize("opened", WRITERS)
async def test_a_directory_or_a_path_through_a_file_is_refused(tmp_path: Path, opened: Open) -> None:
    (tmp_path / "folder.db").mkdir()
    await refused(opened, tmp_path / "folder.db", StoreError)
    (tmp_path / "file").write_text("not a directory")
    await refused(opened, tmp_path / "file" / "one.db", StoreError)
    await refused(opened, tmp_path / "nowhere" / "one.db", StoreError)


# What is new


@pytest.mark.parametrize("opened", WRITERS)
async def test_an_empty_file_is_taken_as_new(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "one.db"
    path.touch()
    await opened(path)
    parts = {"as_buffer": ["buffer"], "as_memory": ["memory"], "as_both": PARTS}[opened.__name__]
    assert schema(path) == schema(made(tmp_path / "fresh.db", parts))
    assert set(bytes_of(path)) == {"one.db"}


@pytest.mark.parametrize("opened", WRITERS)
async def test_a_new_file_is_for_its_owner_alone(tmp_path: Path, opened: Open) -> None:
    before = os.umask(0)
    try:
        await opened(tmp_path / "one.db")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "one.db").stat().st_mode) == 0o600


async def test_what_is_not_there_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no"):
        await for_reading(tmp_path / "one.db")
    assert not (tmp_path / "one.db").exists()


# Locked


async def test_a_file_that_another_program_holds_is_told(tmp_path: Path) -> None:
    paths = [await with_a_message(tmp_path / f"{mode}.db") for mode in ("wal", "delete")]
    holders = [apsw.Connection(str(path)) for path in paths]
    for path, holder in zip(paths, holders, strict=True):
        holder.pragma("journal_mode", path.stem)
        holder.pragma("locking_mode", "exclusive")
        holder.execute("BEGIN EXCLUSIVE")
        holder.execute("DELETE FROM tombstone")
    for path, error in zip(paths, await asyncio.gather(*(_told(as_buffer, path) for path in paths)), strict=True):
        assert isinstance(error, StoreLocked)
        assert (error.what, error.hint) == (
            f"another program holds {path}",
            "close the other program, then try again",
        )
    for path, holder in zip(paths, holders, strict=True):
        holder.execute("ROLLBACK")
        holder.close()
        await with_a_message(path, 2)
