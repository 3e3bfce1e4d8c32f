"""A new, empty operational store, in memory and on SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeVar

import pytest
from tests.contract.kept import Kept

from keepsaid.adapters.ram.operations import RamOperations
from keepsaid.adapters.sqlite.operations import open_operations
from keepsaid.domain.commits import Commit
from keepsaid.domain.event import events_of
from keepsaid.events.topics import CORE
from keepsaid.testing.contracts.operations import Store

R = TypeVar("R")


class Overheard(RamOperations):
    """A store in memory of which nothing is told that nobody is woken for."""

    async def apply(self, commit: Commit[R]) -> R:
        """Apply a commit."""
        before, hint = len(self.state.journal), self.journal.hint
        hint.clear()
        result = await super().apply(commit)
        told = len(self.state.journal) - before
        assert hint.is_set() or told <= 0, f"{type(commit).__name__} is not quiet"
        return result


@pytest.fixture(params=["ram", "sqlite"])
async def kept(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kept]:
    """A new, empty store, and a look inside."""
    file = tmp_path / "buffer.db"
    operations = Overheard() if request.param == "ram" else await open_operations(file)
    made = Kept(operations, file)
    yield made
    await operations.close()
    assert amiss(made) == []


def amiss(kept: Kept) -> list[str]:
    """Lines of the journal that are not what the schema of their topic says."""
    events = (event for line in kept.lines() for event in events_of(line))
    return [
        f"{one.topic}: {wrong}" for one in events if one.topic in CORE for wrong in CORE[one.topic].amiss(one.payload)
    ]


@pytest.fixture
def store(kept: Kept) -> Store:
    """A new, empty store."""
    return kept.store
