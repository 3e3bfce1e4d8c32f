"""Associations: what is near in meaning is related, what was learned leads back to where it was said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.contract.test_memories import Counting

from keepsaid.adapters.embedders.hashed import Hashed
from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories
from keepsaid.domain.graph import Relation, Seed
from keepsaid.domain.memory import Kind, NewMemory, Source, conversation_scope
from keepsaid.domain.message import Trust
from keepsaid.memory.indexing import AssociationFinder, Embedding
from keepsaid.testing.clock import VirtualClock
from keepsaid_testkit.contracts.memories import AUDIT, HERE, OWNER_HERE, THERE, episode, sample

NEAR = ("the red boat lies in Rome", "the red boat lies in Rome now", "the red boat lies in Rome today")
FAR = "bread is baked at dawn"
ELSE = tuple(sample(f"else{n}", f"thing{n} stands beside other{n} and more{n}") for n in range(30))


class Library:
    """A store with its vectors, and the pass over it."""

    def __init__(self, store: SqliteMemories) -> None:
        self.store = store
        self.clock = VirtualClock()
        self.embedding = Embedding(Hashed(), store, self.clock)
        self.associating = self.anew()

    def anew(self) -> AssociationFinder:
        return AssociationFinder(self.store.relating, self.store, self.store.graph, self.clock)

    async def keep(self, *memories: NewMemory) -> dict[str, int]:
        ids = await self.store.keep(memories, 5)
        await self.embedding.finish()
        return {memory.key: id_ for memory, id_ in zip(memories, ids, strict=True)}

    async def run(self, most: int = 1_000) -> int:
        return await self.associating.run(await self.embedding.space(), most)

    async def beside(self, memory_id: int) -> set[tuple[str, int]]:
        found = await self.store.graph.walk(AUDIT, "", [Seed(memory_id, 1.0)], 99)
        return {(one.path[1].relation, one.memory_id) for one in found if len(one.path) == 2}


@asynccontextmanager
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    store = await open_memories(tmp_path / "memory.db", Counting())
    await store.keep(ELSE, 5)
    try:
        yield Library(store)
    finally:
        await store.close()


async def test_what_is_near_is_related_to_what_is_older(tmp_path: Path) -> None:
    async with library(tmp_path) as one:
        ids = await one.keep(*(sample(f"n{n}", text) for n, text in enumerate(NEAR)), sample("far", FAR))
        assert await one.run() == 3
        assert await one.beside(ids["n2"]) >= {(Relation.RELATED_TO, ids["n0"]), (Relation.RELATED_TO, ids["n1"])}
        assert await one.beside(ids["far"]) == set()


async def test_what_was_said_is_related_to_nothing_and_what_was_learned_of_it_leads_back(tmp_path: Path) -> None:
    async with library(tmp_path) as one:
        said = [episode(f"message:{n}", text, HERE, Trust.OWNER) for n, text in enumerate(NEAR)]
        sources = (Source("message", "1"), Source("finding", "7:1"))
        ids = await one.keep(*said, sample("fact", FAR, sources=sources))
        assert await one.run() == 1
        assert await one.beside(ids["fact"]) == {(Relation.RESULT_OF, ids["message:1"])}


async def test_a_pass_is_bounded_and_the_next_goes_on_from_there(tmp_path: Path) -> None:
    async with library(tmp_path) as one:
        await one.keep(*(sample(f"n{n}", f"the red boat number {n} lies in Rome") for n in range(40)))
        first = await one.run(16)
        assert first == 0, "these are like nothing else"
        second, third = await one.run(32), await one.run(16)
        assert 0 < second <= 18 * 5
        assert 0 < third <= 16 * 5
        one.associating = one.anew()
        assert 0 < await one.run() <= 8 * 5
        assert await one.run() == 0


async def test_a_memory_waits_for_its_vector(tmp_path: Path) -> None:
    async with library(tmp_path) as one:
        await one.keep(sample("a", NEAR[0]))
        await one.store.keep([sample("b", NEAR[1])], 5)
        assert await one.run() == 0
        await one.embedding.finish()
        assert await one.run() == 1


@pytest.mark.parametrize("kind", [Kind.THREAD_SUMMARY, Kind.BULLETIN])
async def test_summaries_are_left_out(tmp_path: Path, kind: Kind) -> None:
    async with library(tmp_path) as one:
        await one.keep(sample("a", NEAR[0]), sample("s", NEAR[1], kind=kind))
        assert await one.run() == 0


async def test_no_walk_leads_to_what_its_listener_may_not_hear(tmp_path: Path) -> None:
    async with library(tmp_path) as one:
        mine, theirs = conversation_scope(HERE), conversation_scope(THERE)
        ids = await one.keep(sample("mine", NEAR[0], scope=mine), sample("theirs", NEAR[1], scope=theirs))
        assert await one.run() == 1
        assert await one.store.graph.walk(OWNER_HERE, "", [Seed(ids["mine"], 1.0)], 9) == ()
