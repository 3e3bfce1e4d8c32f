"""A file that a lying disk left half written: opening it says so in one sentence, whatever page is rubbish."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.unit.disk import opened

from keepsaid.adapters.sqlite.stores import open_operations
from keepsaid.errors import ForeignStore


def spoiled(path: Path, table: str) -> None:
    """A store whose table begins with rubbish."""
    ledger, _ = opened(path)
    ledger.close()
    with closing(apsw.Connection(str(path))) as db:
        size = int(db.pragma("page_size"))
        root = int(str(db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchall()[0][0]))
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)


@pytest.mark.parametrize("table", ["keepsaid_schema", "message_keyed"])
async def test_a_file_with_a_rubbish_page_is_refused(tmp_path: Path, table: str) -> None:
    path = tmp_path / "buffer.db"
    spoiled(path, table)
    with pytest.raises(ForeignStore, match="malformed"):
        await open_operations(path)
