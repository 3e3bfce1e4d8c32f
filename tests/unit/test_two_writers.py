"""Two processes at one file: one that was taken for dead knows what its successor stored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from keepsaid.adapters.sqlite.inline import InMemoryDatabase, InMemoryOperations
from keepsaid.adapters.sqlite.stores import SqliteOperations, open_operations
from keepsaid.domain.commits import IntakeResult
from keepsaid.domain.message import ProviderMarks
from keepsaid.testing.builders import said
from keepsaid_testkit.contracts.store_driver import StoreDriver


async def two(kind: str, root: Path) -> Sequence[SqliteOperations]:
    """One store, opened twice."""
    if kind == "file":
        return [await open_operations(root / "buffer.db") for _ in range(2)]
    database = InMemoryDatabase()
    return [InMemoryOperations(database) for _ in range(2)]


@pytest.mark.parametrize("kind", ["file", "memory"])
async def test_a_key_that_another_process_stored_is_known(kind: str, tmp_path: Path) -> None:
    former, successor = await two(kind, tmp_path)
    keyed = said("hello", marks=ProviderMarks("k"))
    first = await StoreDriver(successor).receive(keyed)
    again = await StoreDriver(former, 100).receive(keyed)
    assert (again.intake, again.id, again.number) == (IntakeResult.DUPLICATE, first.id, first.number)
    assert (await StoreDriver(former, 200).receive(said("more"))).number == 2
    await former.close()
    await successor.close()
