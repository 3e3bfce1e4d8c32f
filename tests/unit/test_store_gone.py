"""A store whose files are deleted while it is open refuses every later commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from keepsaid.adapters.sqlite.stores import open_operations
from keepsaid.domain.commits import Receive
from keepsaid.errors import StoreGone
from keepsaid.testing.builders import AT_ONCE, arrival, said


def receive(number: int) -> Receive:
    return Receive(arrival(number, said("hello", "room")), AT_ONCE)


@pytest.mark.parametrize("lost", ["buffer.db", "buffer.db-wal"])
async def test_a_store_that_is_deleted_acknowledges_nothing_more(tmp_path: Path, lost: str) -> None:
    operations = await open_operations(tmp_path / "buffer.db")
    try:
        await operations.apply(receive(1))
        (tmp_path / lost).unlink()
        for number in (2, 3):
            with pytest.raises(StoreGone, match=f"{lost} was deleted, moved or replaced"):
                await operations.apply(receive(number))
    finally:
        await operations.close()
    assert not (tmp_path / lost).exists(), "nothing is written in its place"
