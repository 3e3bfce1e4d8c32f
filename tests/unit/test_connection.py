"""How the one connection that writes a file syncs, and that a reader cannot write."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import apsw
import pytest

from keepsaid.adapters.sqlite.connection import (
    APPLICATION_ID,
    open_reader,
    open_without_shared_memory,
    open_writer,
    translated,
)
from keepsaid.errors import ForeignStore, StoreBroken, StoreError, StoreFull


def test_every_commit_is_synced_through_to_the_disk(tmp_path: Path) -> None:
    with closing(open_writer(tmp_path / "one.db")) as db:
        names = ("journal_mode", "synchronous", "fullfsync", "checkpoint_fullfsync", "secure_delete")
        assert [db.pragma(name) for name in names] == ["wal", 2, 1, 1, 1]


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "one.db"
    open_writer(path).close()
    with closing(open_reader(path)) as reader, pytest.raises(apsw.ReadOnlyError):
        reader.execute("CREATE TABLE told (n)")


ANOTHER_PROGRAM = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
print(db.execute("SELECT count(*) FROM told").fetchone()[0])
db.close()
"""


def test_another_program_that_looks_leaves_the_log_of_a_writer_that_has_readers(tmp_path: Path) -> None:
    path = tmp_path / "one.db"
    open_writer(path).close()
    with closing(open_writer(path)) as writer:
        writer.pragma("application_id", APPLICATION_ID)
        writer.execute("CREATE TABLE told (n)")
        with closing(open_reader(path)):
            command = [sys.executable, "-c", ANOTHER_PROGRAM, str(path)]
            assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "0\n"
        log = path.with_name("one.db-wal")
        assert log.exists(), "the other program was the last to close the file, or so it seemed to it"
        writer.execute("INSERT INTO told VALUES (1)")
        assert log.exists()


def test_readers_may_be_opened_and_closed_in_many_threads_at_once(tmp_path: Path) -> None:
    path, before = tmp_path / "one.db", sys.getswitchinterval()
    open_writer(path).close()

    def often(_: int) -> None:
        for _ in range(100):
            open_reader(path).close()

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads, ExitStack() as kept:
            for _ in range(200):
                kept.enter_context(closing(open_reader(path)))
            assert list(threads.map(often, range(4))) == [None] * 4
    finally:
        sys.setswitchinterval(before)


def test_a_plan_is_kept_whatever_is_bound(tmp_path: Path) -> None:
    path = tmp_path / "one.db"
    with closing(open_writer(path)) as writer, closing(open_reader(path)) as reader:
        assert [db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) for db in (writer, reader)] == [1, 1]


def test_a_closed_connection_is_not_taken_for_one_that_has_a_file_of_the_same_inode_open(tmp_path: Path) -> None:
    path = tmp_path / "one.db"
    closed = open_writer(path)
    closed.close()
    path.write_bytes(b"Dear diary,\n" * 1_000)
    with pytest.raises(ForeignStore, match="is not a keepsaid database"):
        open_reader(path)
    assert path.read_bytes() == b"Dear diary,\n" * 1_000
    del closed


CRASHED_WRITER = """
import os, sys
from pathlib import Path
from keepsaid.adapters.sqlite.connection import APPLICATION_ID, open_writer
db = open_writer(Path(sys.argv[1]))
db.pragma("application_id", APPLICATION_ID)
db.execute("CREATE TABLE told (n)")
db.execute("INSERT INTO told VALUES (7)")
os._exit(0)
"""


@pytest.mark.parametrize("lost", ["", "-shm"])
def test_a_log_is_read_without_shared_memory_and_left_as_it_is(tmp_path: Path, lost: str) -> None:
    path = tmp_path / "one.db"
    subprocess.run([sys.executable, "-c", CRASHED_WRITER, str(path)], check=True)
    if lost:
        path.with_name(f"one.db{lost}").unlink()
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with closing(open_without_shared_memory(path)) as reader:
        assert reader.execute("SELECT n FROM told").fetchall() == [(7,)]
        with pytest.raises(apsw.ReadOnlyError):
            reader.execute("DELETE FROM told")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_file_without_a_log_is_read_without_making_one(tmp_path: Path) -> None:
    path = tmp_path / "on%e ?.db"
    open_writer(path).close()
    with closing(open_without_shared_memory(path)) as reader:
        assert reader.execute("SELECT count(*) FROM sqlite_schema").fetchall() == [(0,)]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("code", "kind", "what"),
    [
        (apsw.SQLITE_FULL, StoreFull, "the disk is full: no space left for"),
        (apsw.SQLITE_IOERR_SHMSIZE, StoreFull, "the disk is full: no space left for"),
        (apsw.SQLITE_IOERR_FSYNC, StoreBroken, "the disk refused"),
        (apsw.SQLITE_READONLY, StoreError, "cannot be opened for writing"),
        (apsw.SQLITE_CANTOPEN, StoreError, "cannot be opened for writing"),
    ],
)
def test_errors_of_the_disk_are_named(tmp_path: Path, code: int, kind: type[StoreError], what: str) -> None:
    with pytest.raises(StoreError, match=what) as caught, translated(tmp_path / "one.db"):
        raise apsw.exception_for(code)
    assert type(caught.value) is kind
    assert "keepsaid doctor" not in caught.value.hint
