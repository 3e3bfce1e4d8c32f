"""A random walk: people speak, are joined and split, let more hear what they said; between all that, they listen.

Every read is held against the world of `scope_world`: what comes back and may not be heard is a leak.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from random import Random

from tests.property.scope_world import ALL, DIRECT, LANES, OWNER, PEOPLE, Ear, Known, Reach, World

from keepsaid.adapters.sqlite.memory_store import SqliteMemories
from keepsaid.domain.graph import Association, Mention, Relation, Seed
from keepsaid.domain.lane import Lane
from keepsaid.domain.memory import (
    GLOBAL,
    Kind,
    Listener,
    NewMemory,
    Source,
    conversation_scope,
    episode_scope,
    lane_scope,
    person_scope,
)
from keepsaid.domain.message import Origin, Trust
from keepsaid.domain.narrowing import Narrowing
from keepsaid.domain.people import identity_in
from keepsaid.domain.space import NewVector, VectorSpace
from keepsaid.domain.widening import Reach as To
from keepsaid.domain.widening import Widened, WidenMemory

SPACE = VectorSpace("made up", "1", 4, b"w")
BEGINNING, READS_EACH = 120, 40
"""Memories before the first read, and reads between two changes."""

_FACTS = (Kind.FACT, Kind.PREFERENCE, Kind.TODO)
_BOUND = (Kind.EPISODE, Kind.THREAD_SUMMARY)


class Subject:
    """The store that is tried, as the walk speaks to it."""

    def __init__(self, store: SqliteMemories) -> None:
        self.store = store

    def listener(self, ear: Ear) -> Listener:
        """Who listens, as the store is told."""
        return Listener(ear.lane, ear.person, direct=ear.direct, cross=ear.cross)

    async def split(self, name: str) -> bool:
        """Take somebody out of a person."""
        return await self.store.people.split(name)

    async def widen(self, commit: WidenMemory) -> bool:
        """Let more hear something; whether it was done."""
        return isinstance(await self.store.hearing.widen(commit), Widened)


class Walk:
    """One walk on one store."""

    def __init__(self, subject: Subject, seed: int) -> None:
        self.subject, self.store, self.world = subject, subject.store, World()
        self.leaks: list[str] = []
        self.counted: Counter[str] = Counter()
        self._chance = Random(seed)
        self._names: dict[str, int] = {}
        self._n = 0
        self._reads: tuple[Callable[[Ear, Listener], Awaitable[None]], ...] = (
            self.find, self.important, self.get, self.fetch, self.words, self.common, self.near, self.graph,
            self.narrowed, self.sources, self.around, self.widened,
        )  # fmt: skip

    async def run(self, reads: int) -> None:
        """Change and read; stops at the first leaks."""
        for _ in range(BEGINNING):
            await self._say()
        await self._embed()
        for n in range(reads):
            if n % READS_EACH == 0:
                await self._change()
            ear = self._ear()
            read = self._reads[n % len(self._reads)]
            await read(ear, self.subject.listener(ear))
            self.counted[read.__name__] += 1
            if self.leaks:
                return

    def _ear(self) -> Ear:
        chance = self._chance
        lane = chance.choice((None, *LANES))
        direct = lane is None or lane[:3] in DIRECT
        person = DIRECT[lane[:3]] if lane is not None and direct else chance.choice((OWNER, *PEOPLE))
        return Ear(lane, person, direct, chance.random() < 0.5)

    # What happens

    async def _change(self) -> None:
        await self._chance.choice(
            (self._say, self._say, self._join, self._split, self._widen, self._widen, self._renew)
        )()
        await self._embed()

    async def _say(self) -> None:
        self._n += 1
        new, reach = self._said() if self._chance.random() < 0.6 else self._fact()
        [id_] = await self.store.keep([new], self._n)
        bound, outside = new.kind in _BOUND, new.trust is Trust.EXTERNAL
        self.world.known[id_] = Known(
            id_, new.key, reach, new.lane, outside, bound, new.speaker_id, new.said_at, new.kind, f"unique{self._n}"
        )
        self._names[f"Entity{self._n}"] = id_
        others = self._chance.sample(list(self.world.known), min(3, len(self.world.known)))
        related = [Association(id_, other, Relation.RELATED_TO) for other in others if other != id_]
        entity = f"thing:{self._chance.randrange(12)}"
        await self.store.graph.relate(related, [Mention(id_, entity, f"Entity{self._n}")], self._n)

    def _said(self) -> tuple[NewMemory, Reach]:
        chance, lane = self._chance, self._chance.choice(LANES)
        alone = DIRECT.get(lane[:3], "")
        who = alone or chance.choice((OWNER, *PEOPLE))
        identity = identity_in(who)
        trust = Trust.OWNER if who == OWNER else chance.choice((Trust.KNOWN, Trust.KNOWN, Trust.EXTERNAL))
        sender = identity.sender if identity else "me"
        origin = Origin(lane.channel, lane.account, lane.conversation, sender, direct=bool(alone), trust=trust)
        reach = Reach("person", OWNER) if who == OWNER and alone else Reach("conversation", lane[:3])
        return self._new(Kind.EPISODE, episode_scope(origin, lane), trust, lane, who), reach

    def _fact(self) -> tuple[NewMemory, Reach]:
        chance = self._chance
        lane = chance.choice((None, *LANES))
        person = chance.choice((OWNER, *PEOPLE))
        choices: list[tuple[str, Reach]] = [(GLOBAL, ALL), (person_scope(person), Reach("person", person))]
        if lane is not None:
            choices += [
                (conversation_scope(lane), Reach("conversation", lane[:3])),
                (lane_scope(lane), Reach("lane", lane)),
            ] * 2
        scope, reach = chance.choice(choices)
        trust = chance.choice((Trust.OWNER, Trust.KNOWN, Trust.KNOWN, Trust.EXTERNAL))
        kind = chance.choice((*_FACTS, Kind.THREAD_SUMMARY))
        return self._new(kind, scope, trust, lane, chance.choice(("", person))), reach

    def _new(self, kind: Kind, scope: str, trust: Trust, lane: Lane | None, speaker: str) -> NewMemory:
        sources = [one.key for one in self._some(2)]
        return NewMemory(
            f"message:{self._n}",
            kind,
            f"the cat says unique{self._n}",
            scope,
            trust,
            lane,
            speaker="Ann",
            said_at=self._n,
            importance=self._chance.random(),
            sources=tuple(Source("message", key.partition(":")[2]) for key in sources),
            version=1,
            speaker_id=speaker,
            chat_of="" if lane is None else DIRECT.get(lane[:3], ""),
        )

    async def _join(self) -> None:
        names = tuple(self._chance.sample((OWNER, *PEOPLE), self._chance.choice((2, 2, 3))))
        by = self._chance.choice((OWNER, names[0]))
        done = await self.store.people.join(names, by, self._n)
        assert (done is not None) == self.world.join(names, by)

    async def _split(self) -> None:
        name = self._chance.choice((OWNER, *PEOPLE))
        assert await self.subject.split(name) == self.world.split(name)

    async def _widen(self) -> None:
        [one] = self._some(1)
        to, by = self._chance.choice(list(To)), self._chance.choice((OWNER, one.speaker, *PEOPLE))
        done = await self.subject.widen(WidenMemory(one.id, to, by, "it may be heard", self._n))
        assert done == self.world.widen(one, str(to), by)

    async def _renew(self) -> None:
        """A newer text of what is there is heard as its own scope says, however the older one was widened."""
        [one] = self._some(1)
        there = await self.store.get(Listener(None, everything=True), one.id)
        assert there is not None
        self._n += 1
        text = f"the cat says unique{self._n}"
        scope, reach = (lane_scope(one.lane), Reach("lane", one.lane)) if one.lane else (there.new.scope, one.reach)
        newer = NewMemory(
            one.key, there.new.kind, text, scope, there.new.trust, one.lane, "Ann", said_at=self._n, version=self._n
        )
        await self.store.keep([newer], self._n)
        known = self.world.known
        known[one.id] = Known(
            one.id, one.key, reach, one.lane, one.outside, one.bound, one.speaker, self._n, one.kind, f"unique{self._n}"
        )

    async def _embed(self) -> None:
        waiting = await self.store.unembedded(SPACE, 0, 999)
        made = [NewVector(one.piece_id, self._vector()) for one in waiting]
        await self.store.keep_vectors(SPACE, made, self._n)

    def _vector(self) -> bytes:
        numbers = [self._chance.gauss(0, 1) for _ in range(SPACE.dimension)]
        length = math.hypot(*numbers)
        return array("f", (number / length for number in numbers)).tobytes()

    def _some(self, count: int) -> list[Known]:
        known = list(self.world.known.values())
        return self._chance.sample(known, min(count, len(known)))

    # What is read

    async def find(self, ear: Ear, listener: Listener) -> None:
        """The newest, of a kind or of all: exactly what is heard, in its order."""
        kind, limit = self._chance.choice((None, *_FACTS, *_BOUND)), self._chance.choice((5, 20, 10_000))
        found = await self.store.find(listener, () if kind is None else (kind,), limit)
        wanted = [one.id for one in self.world.heard(ear) if kind in (None, one.kind)]
        self._exactly("find", ear, [one.id for one in found], wanted[:limit])

    async def important(self, ear: Ear, listener: Listener) -> None:
        """The most important of a kind: all that are heard."""
        kind = self._chance.choice(_FACTS)
        found = await self.store.important(listener, kind, 10_000)
        wanted = [one.id for one in self.world.heard(ear) if one.kind == kind]
        self._exactly("important", ear, sorted(one.id for one in found), sorted(wanted))

    async def get(self, ear: Ear, listener: Listener) -> None:
        """One, if it is heard."""
        [one] = self._some(1)
        found = await self.store.get(listener, one.id)
        self._exactly("get", ear, [found.id] if found else [], self._of([one.id], ear))

    async def fetch(self, ear: Ear, listener: Listener) -> None:
        """Several, those that are heard."""
        ids = [one.id for one in self._some(10)]
        found = await self.store.fetch(listener, ids)
        self._exactly("fetch", ear, [one.id for one in found], self._of(ids, ear))

    async def narrowed(self, ear: Ear, listener: Listener) -> None:
        """Several, those that are heard."""
        ids = [one.id for one in self._some(10)]
        self._exactly(
            "narrowed", ear, await self.store.library.narrowed(listener, ids, Narrowing()), self._of(ids, ear)
        )

    async def words(self, ear: Ear, listener: Listener) -> None:
        """The one word of a memory finds nothing where that memory is not heard, and itself where it is."""
        [one] = self._some(1)
        found = [hit.memory_id for hit in await self.store.text(listener, one.word, 10)]
        self._within("words", ear, found)
        if self.world.hears(ear, one) != (one.id in found) or (found and not self.world.hears(ear, one)):
            self.leaks.append(f"words: {ear} asked for the word of {one} and found {found}")

    async def common(self, ear: Ear, listener: Listener) -> None:
        """A word of all memories finds what is heard."""
        self._within("common", ear, [hit.memory_id for hit in await self.store.text(listener, "cat", 50)])

    async def near(self, ear: Ear, listener: Listener) -> None:
        """What is near in meaning is heard."""
        found = await self.store.nearest(listener, SPACE, self._vector(), 50)
        self._within("near", ear, [hit.memory_id for hit in found])

    async def graph(self, ear: Ear, listener: Listener) -> None:
        """Every step of every way is heard, and every name stands in what is."""
        seeds = [Seed(one.id, 0.5) for one in self._some(5)]
        found = await self.store.graph.walk(listener, self._chance.choice(list(self._names)), seeds, 50)
        steps = [step for hit in found for step in hit.path]
        named = [self._names[step.name] for step in steps if step.name in self._names]
        ids = [hit.memory_id for hit in found] + [step.memory_id for step in steps if step.memory_id]
        self._within("graph", ear, [*ids, *named])

    async def sources(self, ear: Ear, listener: Listener) -> None:
        """What something was made from, as far as it is heard."""
        there = await self.store.get(Listener(None, everything=True), self._some(1)[0].id)
        assert there is not None
        self._within("sources", ear, [one.id for one in await self.store.library.sources(listener, there, 9)])

    async def around(self, ear: Ear, listener: Listener) -> None:
        """What was said beside something, as far as it is heard."""
        there = await self.store.get(Listener(None, everything=True), self._some(1)[0].id)
        assert there is not None
        self._within("around", ear, [one.id for one in await self.store.library.around(listener, there, 3)])

    async def widened(self, ear: Ear, listener: Listener) -> None:
        """That something was widened is told to who hears it."""
        [one] = self._some(1)
        if await self.store.hearing.widened(listener, one.id):
            self._within("widened", ear, [one.id])

    def _of(self, ids: Sequence[int], ear: Ear) -> list[int]:
        return [id_ for id_ in ids if self.world.hears(ear, self.world.known[id_])]

    def _within(self, read: str, ear: Ear, found: Sequence[int]) -> None:
        self._exactly(read, ear, list(found), self._of(found, ear))

    def _exactly(self, read: str, ear: Ear, found: Sequence[int], wanted: Sequence[int]) -> None:
        if list(found) != list(wanted):
            odd = [self.world.known[id_] for id_ in sorted(set(found) ^ set(wanted))]
            self.leaks.append(f"{read}: {ear} found {len(found)} for {len(wanted)}: {odd[:3]}")
