"""Nearest vectors by pgvector: as many of the nearest as an exact search finds, whoever asks; nothing of it stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import numpy as np
import psycopg
import pytest
from tests.contract.test_memories import Counting
from tests.postgres.server import empty
from tests.waits import HANG_S

from keepsaid.adapters.postgres.connection import PostgresPlace
from keepsaid.adapters.postgres.near import NearVectors
from keepsaid.adapters.postgres.stores import open_memories
from keepsaid.adapters.sql.search.memories import SearchedMemories
from keepsaid.adapters.sql.search.vector_index import VectorIndex
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.domain.memory import Listener, NewVector, VectorSpace, person_scope
from keepsaid.domain.visibility import ShareMemory, ShareReach, ShareRefusal
from keepsaid_testkit.contracts.memories import sample

SPACE = VectorSpace("model", "1", 64, b"weights")
COUNT, LEAST, SCOPES, SMALL = 1_300, 1_000, 4, 400
"""Vectors; a store is large from so many on; persons, and a listener with so many is compared in full."""


@pytest.fixture(autouse=True)
def _near(place: PostgresPlace) -> None:
    empty(place)
    with psycopg.connect(place.url, autocommit=True) as db:
        db.execute("DROP SCHEMA IF EXISTS keepsaid_near CASCADE")
        db.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")


def made_up(count: int, seed: int = 1) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Vectors of length one around some centres."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(40, SPACE.dimension))
    vectors = centres[random.integers(40, size=count)] + random.normal(size=(count, SPACE.dimension))
    length: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / length, np.float32)


def who(person: int) -> Listener:
    """A direct chat with one of the persons."""
    return Listener(None, f"p{person}", direct=True)


@asynccontextmanager
async def filled(place: PostgresPlace) -> AsyncIterator[SearchedMemories]:
    """A store of memories of some persons, with vectors, in the index of the server."""
    store = await open_memories(place, Counting(), TombstoneKeyring(None), None, LEAST)
    try:
        scopes = [person_scope(f"p{n % SCOPES}") for n in range(COUNT)]
        await store.keep([sample(f"k{n}", f"thing {n}", scope=scopes[n]) for n in range(COUNT)], 5)
        pieces = [one.piece_id for one in await store.unembedded(SPACE, 0, COUNT)]
        vectors = [NewVector(piece, one.tobytes()) for piece, one in zip(pieces, made_up(COUNT), strict=True)]
        await store.keep_vectors(SPACE, vectors, 6, pieces[-1])
        async with asyncio.timeout(HANG_S):
            while (there := counted(place)) < COUNT:
                await store.keep([sample("again", "again", version=there)], 7)
        yield store
    finally:
        await store.close()


def counted(place: PostgresPlace, memory: int = 0) -> int:
    """The vectors in the index, or those of one memory."""
    with psycopg.connect(place.url) as db:
        [there] = db.execute("SELECT to_regclass('keepsaid_near.near_vector')").fetchone() or (None,)
        if there is None:
            return 0
        counting = "SELECT count(*) FROM keepsaid_near.near_vector WHERE %(memory)s IN (0, memory_id)"
        [count] = db.execute(counting, {"memory": memory}).fetchone() or (0,)
        return int(count)


async def test_as_many_of_the_nearest_are_found_as_by_an_exact_search(place: PostgresPlace) -> None:
    """By the index, by comparing all that a person can read, and by signs: the same ten, with the same scores."""
    async with filled(place) as store:
        asked = [one.tobytes() for one in made_up(20, 2)]
        for listener in (Listener(None, everything=True), who(1)):
            for small in (0, SMALL):
                near, exact = NearVectors(place.schema, small), VectorIndex(COUNT)
                shares = []
                for query in asked:
                    one = await store._readers.run(near.search, listener, SPACE, query, 10)
                    other = await store._readers.run(exact.search, listener, SPACE, query, 10)
                    assert len(one) == len(other) == 10
                    shares.append(len({found.memory_id for found in one} & {found.memory_id for found in other}) / 10)
                    assert abs(one[0].score - other[0].score) < 0.02
                assert float(np.mean(shares)) >= 0.95, (listener, small)


async def test_what_the_index_lacks_is_found_and_what_was_forgotten_is_not(place: PostgresPlace) -> None:
    """A memory that is shared more widely is found where it is shared."""
    async with filled(place) as store:
        [new] = await store.keep([sample("new", "brand new", scope=person_scope("p1"))], 8)
        [piece] = [one.piece_id for one in await store.unembedded(SPACE, 0, 9) if one.text == "brand new"]
        query = made_up(1, 9)[0].tobytes()
        await store.keep_vectors(SPACE, [NewVector(piece, query)], 9)
        assert await nearest(store, place, who(1), query) == new
        assert await nearest(store, place, who(2), query) != new
        row = made_up(COUNT)[5].tobytes()
        old = await nearest(store, place, Listener(None, everything=True), row)
        assert [await nearest(store, place, who(n), row) == old for n in range(SCOPES)].count(True) == 1
        assert counted(place, old) == 1
        shared = ShareMemory(old, ShareReach.GLOBAL, "owner", "for all", 10)
        assert not isinstance(await store.sharing.share(shared), ShareRefusal)
        for one in await store.unembedded(SPACE, 0, 9):
            if one.text != "again":
                await store.keep_vectors(SPACE, [NewVector(one.piece_id, row)], 10)
        assert all([await nearest(store, place, who(n), row) == old for n in range(SCOPES)])
        await store.forgetful.hide([old], [], 11)
        await store.forgetful.erase([old])
        assert await nearest(store, place, who(2), row) != old
        assert counted(place, old) == 0, "nothing of it stays in the index"


async def nearest(store: SearchedMemories, place: PostgresPlace, listener: Listener, query: bytes) -> int:
    """The memory that is found first."""
    found: Sequence[int] = [
        one.memory_id
        for one in await store._readers.run(NearVectors(place.schema, 0).search, listener, SPACE, query, 5)
    ]
    return found[0] if found else 0
