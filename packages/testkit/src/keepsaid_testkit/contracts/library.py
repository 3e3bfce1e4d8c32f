"""The contract of the library: memories read closely, and nothing that the listener may not hear."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Protocol

from keepsaid.domain.attributes import slot_of
from keepsaid.domain.memory import Kind, Listener, Narrowing, Source, conversation_scope, person_scope
from keepsaid.domain.message import Trust
from keepsaid.ports.memory_store import Library, Memories
from keepsaid.testing.builders import lane_of
from keepsaid_testkit.contracts.memories import AUDIT, episode, sample

HERE, THERE = lane_of("here"), lane_of("there")
HEARS_HERE = Listener(HERE, cross=True)


class LibraryStore(Memories, Protocol):
    """A memory store with its library."""

    @property
    def library(self) -> Library:
        """What is read closely."""
        ...


LibraryFactory = Callable[[], AbstractAsyncContextManager[LibraryStore]]


class LibraryContract:
    """Scopes hold for whatever is read, and neighbours are of the same lane."""

    async def test_a_search_is_narrowed_in_its_order(self, factory: LibraryFactory) -> None:
        """By kind, by when it was said, by what held true; never to what is not readable."""
        async with factory() as store:
            fact = sample("fact", kind=Kind.FACT, said_at=10)
            todo, late = sample("todo", kind=Kind.TODO, said_at=20), sample("late", kind=Kind.FACT, said_at=30)
            secret = sample("secret", kind=Kind.FACT, scope=person_scope("eve"), said_at=10)
            ids = await store.keep([late, fact, todo, secret], 40)

            async def kept(to: Narrowing, listener: Listener = AUDIT) -> list[str]:
                named = dict(zip(ids, ("late", "fact", "todo", "secret"), strict=True))
                return [named[one] for one in await store.library.narrowed(listener, ids, to)]

            assert await kept(Narrowing()) == ["late", "fact", "todo", "secret"]
            assert await kept(Narrowing(kind=Kind.FACT)) == ["late", "fact", "secret"]
            assert await kept(Narrowing(since=20)) == ["late", "todo"]
            assert await kept(Narrowing(since=10, until=20)) == ["fact", "todo", "secret"]
            assert await kept(Narrowing(as_of=20)) == ["fact", "todo", "secret"]
            assert await kept(Narrowing(), HEARS_HERE) == ["late", "fact", "todo"]

    async def test_what_fills_a_slot_is_found_by_it(self, factory: LibraryFactory) -> None:
        """The newest first, as far as it is readable."""
        async with factory() as store:
            slots = [slot for slot in (slot_of("ann", "city", "any"), slot_of("ann", "hobby", "any")) if slot]
            rome = sample("new", kind=Kind.FACT, said_at=200, subject="Ann", attribute="lives in", value="Rome")
            chess = replace(rome, key="old", said_at=100, attribute="hobby", value="chess", text="Ann plays chess")
            golf = replace(chess, key="far", said_at=150, value="golf", scope=person_scope("eve"))
            await store.keep([chess, rome, golf], 300)

            async def found(listener: Listener, limit: int = 9) -> list[str]:
                ids = await store.library.filling(listener, slots, limit)
                return [one.new.value for one in await store.fetch(listener, ids)]

            assert await found(AUDIT) == ["Rome", "golf", "chess"]
            assert await found(HEARS_HERE) == ["Rome", "chess"]
            assert await found(AUDIT, 1) == ["Rome"]
            assert await store.library.filling(AUDIT, [], 9) == []

    async def test_sources_are_the_episodes_it_was_made_from_as_far_as_they_are_heard(
        self, factory: LibraryFactory
    ) -> None:
        """An episode is its own source."""
        async with factory() as store:
            here = episode("message:1", "the cat moved in", HERE, Trust.KNOWN, said_at=1)
            there = episode("message:2", "the cat is grey", THERE, Trust.KNOWN, said_at=2)
            made = sample("finding:1:1", sources=(Source("message", "1"), Source("message", "2"), Source("note", "x")))
            one, _, fact = await store.keep([here, there, made], 9)
            memory, said = await store.get(AUDIT, fact), await store.get(AUDIT, one)
            assert memory is not None
            assert said is not None
            assert [found.new.key for found in await store.library.sources(AUDIT, memory, 9)] == [
                "message:1",
                "message:2",
            ]
            assert [found.new.key for found in await store.library.sources(HEARS_HERE, memory, 9)] == ["message:1"]
            assert [found.new.key for found in await store.library.sources(AUDIT, memory, 1)] == ["message:1"]
            assert [found.new.key for found in await store.library.sources(HEARS_HERE, said, 9)] == ["message:1"]

    async def test_a_memory_is_found_by_its_key(self, factory: LibraryFactory) -> None:
        """By the whole key, and only by who may read it."""
        async with factory() as store:
            here = episode("message:1", "my cat is Misha", HERE, Trust.KNOWN, said_at=1)
            there = episode("message:2", "the cat is grey", THERE, Trust.KNOWN, said_at=2)
            await store.keep([here, there], 9)
            assert [found.new.text for found in await store.library.keyed(AUDIT, "message:2")] == ["the cat is grey"]
            assert [found.new.text for found in await store.library.keyed(HEARS_HERE, "message:1")] == [here.text]
            assert list(await store.library.keyed(HEARS_HERE, "message:2")) == []
            assert list(await store.library.keyed(AUDIT, "message:")) == []

    async def test_around_an_episode_stands_what_was_said_in_its_lane(self, factory: LibraryFactory) -> None:
        """In order, whatever its scope as long as it is readable; the given number on each side, and it itself."""
        async with factory() as store:
            said = [episode(f"message:{n}", f"number {n}", HERE, Trust.KNOWN, said_at=n) for n in range(1, 8)]
            said[2] = replace(said[2], scope=person_scope("owner"))
            elsewhere = episode("message:9", "elsewhere", THERE, Trust.KNOWN, said_at=4)
            ids = await store.keep([*said, elsewhere], 9)
            memory = await store.get(AUDIT, ids[3])
            assert memory is not None

            async def around(each: int, listener: Listener = AUDIT) -> list[int]:
                return [one.new.said_at for one in await store.library.around(listener, memory, each)]

            assert await around(2) == [2, 3, 4, 5, 6]
            assert await around(0) == [4]
            assert await around(99) == [1, 2, 3, 4, 5, 6, 7]
            assert await around(99, HEARS_HERE) == [1, 2, 4, 5, 6, 7]
            assert await around(99, Listener(THERE, cross=True)) == []
            assert conversation_scope(HERE) == said[0].scope

    async def test_what_was_never_said_has_nothing_around_it(self, factory: LibraryFactory) -> None:
        """A fact stands in no lane."""
        async with factory() as store:
            [fact] = await store.keep([sample("fact")], 9)
            memory = await store.get(AUDIT, fact)
            assert memory is not None
            assert list(await store.library.around(AUDIT, memory, 3)) == []
