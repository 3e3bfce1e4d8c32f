"""How the one connection that writes a file syncs, and that a reader cannot write."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from keepsaid.adapters.sqlite.connection import open_reader, open_writer


def test_every_commit_is_synced_through_to_the_disk(tmp_path: Path) -> None:
    with closing(open_writer(tmp_path / "one.db")) as db:
        names = ("journal_mode", "synchronous", "fullfsync", "checkpoint_fullfsync", "secure_delete")
        assert [db.pragma(name) for name in names] == ["wal", 2, 1, 1, 1]


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "one.db"
    open_writer(path).close()
    with closing(open_reader(path)) as reader, pytest.raises(apsw.ReadOnlyError):
        reader.execute("CREATE TABLE told (n)")
