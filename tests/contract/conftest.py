"""A new, empty operational store, in memory and on SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contract.kept import Kept

from keepsaid.adapters.ram.operations import RamOperations
from keepsaid.adapters.sqlite.operations import open_operations
from keepsaid.testing.contracts.operations import Store


@pytest.fixture(params=["ram", "sqlite"])
async def kept(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kept]:
    """A new, empty store, and a look inside."""
    file = tmp_path / "buffer.db"
    operations = RamOperations() if request.param == "ram" else await open_operations(file)
    yield Kept(operations, file)
    await operations.close()


@pytest.fixture
def store(kept: Kept) -> Store:
    """A new, empty store."""
    return kept.store
