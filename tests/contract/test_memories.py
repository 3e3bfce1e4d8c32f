from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest
from tests.postgres.server import empty

from keepsaid.adapters.postgres import stores as postgres_stores
from keepsaid.adapters.postgres.connection import PostgresPlace
from keepsaid.adapters.sql.search.memories import SearchedMemories
from keepsaid.adapters.sql.tombstones import open_keyring
from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories
from keepsaid_testkit.contracts.bulletins import BulletinContract
from keepsaid_testkit.contracts.bundles import BundleContract, BundleFactory, LiftedTombstoneContract
from keepsaid_testkit.contracts.entities import EntityContract
from keepsaid_testkit.contracts.graph import GraphContract
from keepsaid_testkit.contracts.learning import CorrectingContract, LearningContract, TruthContract
from keepsaid_testkit.contracts.library import LibraryContract
from keepsaid_testkit.contracts.memories import Factory, KeepingContract, TextContract, VisibilityContract
from keepsaid_testkit.contracts.people import PeopleContract, SharingContract
from keepsaid_testkit.contracts.recall import PieceContract, VectorContract
from keepsaid_testkit.contracts.revising import RevisionContract
from keepsaid_testkit.contracts.undoing import UndoContract
from keepsaid_testkit.contracts.upkeep import UpkeepContract
from keepsaid_testkit.contracts.uses import UsesContract


class Counting:
    """Ids that count up over all stores of a test run."""

    _numbers = count(1 << 60)

    def next(self) -> int:
        return next(self._numbers)

    def follow(self, number: int) -> None:
        raise AssertionError("nothing was made before")


@pytest.fixture(params=["sqlite", "postgres"])
def factory(request: pytest.FixtureRequest, tmp_path: Path) -> Factory:
    place: PostgresPlace | None = None
    if request.param == "postgres":
        place = request.getfixturevalue("place")
        empty(place)

    @asynccontextmanager
    async def opened() -> AsyncIterator[SearchedMemories]:
        if place is None:
            store: SearchedMemories = await open_memories(tmp_path / "memory.db", Counting())
        else:
            store = await postgres_stores.open_memories(place, Counting(), open_keyring(tmp_path / "memory.db"))
        try:
            yield store
        finally:
            await store.close()

    return opened


@pytest.fixture
def another(tmp_path: Path) -> BundleFactory:
    @asynccontextmanager
    async def opened() -> AsyncIterator[SqliteMemories]:
        home = tmp_path / "another"
        home.mkdir(exist_ok=True)
        store = await open_memories(home / "memory.db", Counting())
        try:
            yield store
        finally:
            await store.close()

    return opened


class TestBulletins(BulletinContract):
    pass


class TestBundles(BundleContract, LiftedTombstoneContract):
    pass


class TestKeeping(KeepingContract):
    pass


class TestHearing(VisibilityContract):
    pass


class TestText(TextContract):
    pass


class TestLibrary(LibraryContract):
    pass


class TestUpkeep(UpkeepContract):
    pass


class TestUses(UsesContract):
    pass


class TestPieces(PieceContract):
    pass


class TestVectors(VectorContract):
    pass


class TestPeople(PeopleContract):
    pass


class TestWidening(SharingContract):
    pass


class TestEntities(EntityContract):
    pass


class TestGraph(GraphContract):
    pass


class TestLearning(LearningContract):
    pass


class TestUndo(UndoContract):
    pass


class TestTruth(TruthContract):
    pass


class TestCorrecting(CorrectingContract):
    pass


class TestRevising(RevisionContract):
    pass
