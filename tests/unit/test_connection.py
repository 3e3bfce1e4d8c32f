"""How the one connection that writes a file syncs, and that a reader cannot write."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import apsw
import pytest

from keepsaid.adapters.sqlite.connection import APPLICATION_ID, open_reader, open_writer
from keepsaid.errors import ForeignStore


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
