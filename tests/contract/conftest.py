"""A new, empty operational store: in memory, and once for each file of tests in a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeVar

import pytest
from tests.contract.kept import Kept
from tests.postgres.server import empty

from keepsaid.adapters.postgres import stores as postgres_stores
from keepsaid.adapters.postgres.connection import PostgresPlace
from keepsaid.adapters.sql.operations.store import SqlOperations
from keepsaid.adapters.sql.tombstones import open_keyring
from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.sqlite.stores import open_operations
from keepsaid.domain.commits import Commit
from keepsaid.domain.event import events_of
from keepsaid.events.catalog import CORE
from keepsaid_testkit.contracts.operations import ContractStore

R = TypeVar("R")
_HERE = Path(__file__).parent


class Overheard(InMemoryOperations):
    """A store in memory of which nothing is told that nobody is woken for."""

    async def apply(self, commit: Commit[R]) -> R:
        """Apply a commit."""
        before, hint = self._told_until(), self.journal.hint
        hint.clear()
        result = await super().apply(commit)
        assert hint.is_set() or self._told_until() <= before, f"{type(commit).__name__} is not quiet"
        return result

    def _told_until(self) -> int:
        [(last,)] = self.database.rows("SELECT coalesce(max(id), 0) FROM journal")
        return int(last)


@pytest.fixture(params=["memory", "file", "postgres"])
async def kept(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kept]:
    """A new, empty store, and a look inside."""
    file = tmp_path / "buffer.db"
    if request.param == "postgres":
        place: PostgresPlace = request.getfixturevalue("place")
        empty(place)
        operations: SqlOperations = await postgres_stores.open_operations(place, open_keyring(file))
        made = Kept(operations, place)
    else:
        operations = Overheard() if request.param == "memory" else await open_operations(file)
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
def store(kept: Kept) -> ContractStore:
    """A new, empty store."""
    return kept.store


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the first test of each module on a file too, and of each class on PostgreSQL.

    The others do so in `make soak PART=file` and `PART=postgres`.
    """
    seen: set[tuple[str, str]] = set()
    for item in items:
        of_class = item.nodeid.rpartition("::")[0]
        for kind, part in (("file", str(item.path)), ("postgres", of_class)):
            if item.path.parent == _HERE and f"[{kind}" in item.name:
                if (kind, part) in seen:
                    item.add_marker(pytest.mark.soak)
                seen.add((kind, part))
