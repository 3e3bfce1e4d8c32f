"""Every read there is of memories, each held against what the world of `scope_world` says is heard."""

from __future__ import annotations

import math
from array import array
from collections.abc import Awaitable, Callable, Sequence
from random import Random

from tests.property.scope_world import Ear, Known, World

from keepsaid.adapters.sqlite.stores import SqliteMemories
from keepsaid.domain.attributes import slot_of
from keepsaid.domain.graph import Seed
from keepsaid.domain.memory import Kind, Listener, Memory, Narrowing, VectorSpace

SPACE = VectorSpace("made up", "1", 4, b"w")
FACTS = (Kind.FACT, Kind.PREFERENCE, Kind.TODO)
COLOUR = "colour"
"""What every memory says of a subject of its own, which has the memory's key for a name."""

BOUND = (Kind.EPISODE, Kind.THREAD_SUMMARY)


def direction(chance: Random) -> bytes:
    """A vector of length 1."""
    numbers = [chance.gauss(0, 1) for _ in range(SPACE.dimension)]
    length = math.hypot(*numbers)
    return array("f", (number / length for number in numbers)).tobytes()


class Reads:
    """Asks the store; what it may not tell, and what it must and does not, is a leak."""

    def __init__(self, store: SqliteMemories, world: World, chance: Random) -> None:
        self.store, self.world, self.leaks = store, world, list[str]()
        self.names: dict[str, int] = {}
        self._chance = chance

    def all(self) -> tuple[Callable[[Ear, Listener], Awaitable[None]], ...]:
        """Each way to read."""
        return (
            self._find, self._important, self._get, self._fetch, self._words, self._common, self._near, self._graph,
            self._narrowed, self._filling, self._sources, self._around, self._widened, self._history,
        )  # fmt: skip

    def some(self, count: int) -> list[Known]:
        """Memories by chance, heard or not."""
        known = list(self.world.known.values())
        return self._chance.sample(known, min(count, len(known)))

    async def whole(self, one: Known) -> Memory | None:
        """A memory as it is stored; None once it was forgotten."""
        there = await self.store.get(Listener(None, everything=True), one.id)
        assert (there is not None) is one.there
        return there

    async def _find(self, ear: Ear, listener: Listener) -> None:
        """The newest, of a kind or of all: exactly what is heard, in its order."""
        kind, limit = self._chance.choice((None, *FACTS, *BOUND)), self._chance.choice((5, 20, 10_000))
        found = await self.store.find(listener, () if kind is None else (kind,), limit)
        wanted = [one.id for one in self.world.heard(ear) if kind in (None, one.kind)]
        self._exactly("find", ear, [one.id for one in found], wanted[:limit])

    async def _important(self, ear: Ear, listener: Listener) -> None:
        """The most important of a kind: all that are heard."""
        kind = self._chance.choice(FACTS)
        found = await self.store.important(listener, kind, 10_000)
        wanted = [one.id for one in self.world.heard(ear) if one.kind == kind]
        self._exactly("important", ear, sorted(one.id for one in found), sorted(wanted))

    async def _get(self, ear: Ear, listener: Listener) -> None:
        """One, if it is heard."""
        [one] = self.some(1)
        found = await self.store.get(listener, one.id)
        self._exactly("get", ear, [found.id] if found else [], self._of([one.id], ear))

    async def _fetch(self, ear: Ear, listener: Listener) -> None:
        """Several, those that are heard."""
        ids = [one.id for one in self.some(10)]
        found = await self.store.fetch(listener, ids)
        self._exactly("fetch", ear, [one.id for one in found], self._of(ids, ear))

    async def _narrowed(self, ear: Ear, listener: Listener) -> None:
        """Several, those that are heard."""
        ids = [one.id for one in self.some(10)]
        self._exactly(
            "narrowed", ear, await self.store.library.narrowed(listener, ids, Narrowing()), self._of(ids, ear)
        )

    async def _filling(self, ear: Ear, listener: Listener) -> None:
        """What fills slots, those that may be read."""
        some = {one.key: one for one in self.some(10)}
        slots = [slot for key in some if (slot := slot_of(key, COLOUR, "grey")) is not None]
        found = await self.store.library.filling(listener, slots, 10_000)
        ids = [one.id for one in some.values()]
        self._exactly("filling", ear, sorted(found), sorted(self._of(ids, ear)))

    async def _words(self, ear: Ear, listener: Listener) -> None:
        """The one word of a memory finds nothing where that memory is not heard, and itself where it is."""
        [one] = self.some(1)
        found = [hit.memory_id for hit in await self.store.text(listener, one.word, 10)]
        self._within("words", ear, found)
        if self.world.hears(ear, one) != (one.id in found) or (found and not self.world.hears(ear, one)):
            self.leaks.append(f"words: {ear} asked for the word of {one} and found {found}")

    async def _common(self, ear: Ear, listener: Listener) -> None:
        """A word of all memories finds what is heard."""
        self._within("common", ear, [hit.memory_id for hit in await self.store.text(listener, "cat", 50)])

    async def _near(self, ear: Ear, listener: Listener) -> None:
        """What is near in meaning is heard."""
        found = await self.store.nearest(listener, SPACE, direction(self._chance), 50)
        self._within("near", ear, [hit.memory_id for hit in found])

    async def _graph(self, ear: Ear, listener: Listener) -> None:
        """Every step of every way is heard, and every name stands in what is."""
        seeds = [Seed(one.id, 0.5) for one in self.some(5)]
        found = await self.store.graph.walk(listener, self._chance.choice(list(self.names)), seeds, 50)
        steps = [step for hit in found for step in hit.path]
        named = [self.names[step.name] for step in steps if step.name in self.names]
        ids = [hit.memory_id for hit in found] + [step.memory_id for step in steps if step.memory_id]
        self._within("graph", ear, [*ids, *named])

    async def _sources(self, ear: Ear, listener: Listener) -> None:
        """What something was made from, as far as it is heard."""
        there = await self.whole(self.some(1)[0])
        if there is None:
            return
        self._within("sources", ear, [one.id for one in await self.store.library.sources(listener, there, 9)])

    async def _around(self, ear: Ear, listener: Listener) -> None:
        """What was said beside something, as far as it is heard."""
        there = await self.whole(self.some(1)[0])
        if there is None:
            return
        self._within("around", ear, [one.id for one in await self.store.library.around(listener, there, 3)])

    async def _history(self, ear: Ear, listener: Listener) -> None:
        """What stood before and after something, as far as it is heard."""
        [one] = self.some(1)
        self._within("history", ear, [each.id for each in await self.store.revisions.history(listener, one.id)])

    async def _widened(self, ear: Ear, listener: Listener) -> None:
        """That something was widened is told to who hears it."""
        [one] = self.some(1)
        if await self.store.sharing.list_shares(listener, one.id):
            self._within("widened", ear, [one.id])

    def _of(self, ids: Sequence[int], ear: Ear) -> list[int]:
        return [id_ for id_ in ids if self.world.hears(ear, self.world.known[id_])]

    def _within(self, read: str, ear: Ear, found: Sequence[int]) -> None:
        self._exactly(read, ear, list(found), self._of(found, ear))

    def _exactly(self, read: str, ear: Ear, found: Sequence[int], wanted: Sequence[int]) -> None:
        if list(found) != list(wanted):
            odd = [self.world.known[id_] for id_ in sorted(set(found) ^ set(wanted))]
            self.leaks.append(f"{read}: {ear} found {len(found)} for {len(wanted)}: {odd[:3]}")
