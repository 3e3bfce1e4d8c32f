"""A random walk: people speak, are joined and split, let more hear what they said; between all that, they listen.

Every read is held against the world of `scope_world`: what comes back and may not be heard is a leak.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

from tests.property.scope_reads import BOUND, COLOUR, FACTS, SPACE, Reads, direction
from tests.property.scope_world import ALL, DIRECT, LANES, OWNER, PEOPLE, Ear, Known, Reach, World

from keepsaid.adapters.sqlite.stores import SqliteMemories
from keepsaid.domain.graph import Association, Mention, Relation
from keepsaid.domain.memory import (
    GLOBAL,
    Kind,
    Listener,
    NewMemory,
    NewVector,
    Source,
    conversation_scope,
    episode_scope,
    lane_scope,
    person_scope,
)
from keepsaid.domain.message import Lane, Origin, Trust
from keepsaid.domain.visibility import MemoryShared, ShareMemory, identity_in
from keepsaid.domain.visibility import ShareReach as To

BEGINNING, READS_EACH = 120, 40
"""Memories before the first read, and reads between two changes."""


class Subject:
    """The store that is tried, as the walk speaks to it."""

    def __init__(self, store: SqliteMemories) -> None:
        self.store = store

    def listener(self, ear: Ear) -> Listener:
        """Who listens, as the store is told."""
        return Listener(ear.lane, ear.person, direct=ear.direct, cross=ear.cross, chats=ear.chats)

    async def split(self, name: str) -> bool:
        """Take somebody out of a person."""
        return await self.store.people.split(name)

    async def widen(self, commit: ShareMemory) -> bool:
        """Let more hear something; whether it was done."""
        return isinstance(await self.store.sharing.share(commit), MemoryShared)


class Walk:
    """One walk on one store."""

    def __init__(self, subject: Subject, seed: int) -> None:
        self.subject, self.store, self.world = subject, subject.store, World()
        self.counted: Counter[str] = Counter()
        self._chance = Random(seed)
        self.reads = Reads(self.store, self.world, self._chance)
        self._n = 0

    async def run(self, reads: int) -> None:
        """Change and read; stops at the first leaks."""
        for _ in range(BEGINNING):
            await self._say()
        await self._embed()
        ways = self.reads.all()
        for n in range(reads):
            if n % READS_EACH == 0:
                await self._change()
            ear = self._ear()
            read = ways[n % len(ways)]
            await read(ear, self.subject.listener(ear))
            self.counted[read.__name__.strip("_")] += 1
            if self.leaks:
                return

    def _ear(self) -> Ear:
        chance = self._chance
        lane = chance.choice((None, *LANES))
        direct = lane is None or lane[:3] in DIRECT
        person = DIRECT[lane[:3]] if lane is not None and direct else chance.choice((OWNER, *PEOPLE))
        return Ear(lane, person, direct, chance.random() < 0.5, chance.random() < 0.7)

    async def _change(self) -> None:
        await self._chance.choice(
            (self._say, self._say, self._join, self._split, self._widen, self._widen, self._renew, self._forget)
        )()
        await self._embed()

    async def _say(self) -> None:
        self._n += 1
        new, reach = self._said() if self._chance.random() < 0.6 else self._fact()
        [id_] = await self.store.keep([new], self._n)
        bound, outside = new.kind in BOUND, new.trust is Trust.EXTERNAL
        self.world.known[id_] = Known(
            id_, new.key, reach, new.lane, outside, bound, new.speaker_id, new.said_at, new.kind, f"unique{self._n}"
        )
        self.reads.names[f"Entity{self._n}"] = id_
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
        reach = Reach("person", who) if alone else Reach("conversation", lane[:3])
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
        kind = chance.choice((*FACTS, Kind.THREAD_SUMMARY))
        return self._new(kind, scope, trust, lane, chance.choice(("", person))), reach

    def _new(self, kind: Kind, scope: str, trust: Trust, lane: Lane | None, speaker: str) -> NewMemory:
        sources = [one.key for one in self.reads.some(2)]
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
            subject=f"message:{self._n}",
            attribute=COLOUR,
            value="grey",
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
        [one] = self.reads.some(1)
        to, by = self._chance.choice(list(To)), self._chance.choice((OWNER, one.speaker, *PEOPLE))
        done = await self.subject.widen(ShareMemory(one.id, to, by, "it may be heard", self._n))
        assert done == self.world.widen(one, str(to), by)

    async def _renew(self) -> None:
        """A newer text of what is there is heard as its own scope says, however the older one was widened."""
        [one] = self.reads.some(1)
        there = await self.reads.whole(one)
        if there is None:
            return
        self._n += 1
        text = f"the cat says unique{self._n}"
        scope, reach = (lane_scope(one.lane), Reach("lane", one.lane)) if one.lane else (there.new.scope, one.reach)
        newer = NewMemory(
            one.key,
            there.new.kind,
            text,
            scope,
            there.new.trust,
            one.lane,
            "Ann",
            said_at=self._n,
            version=self._n,
            subject=one.key,
            attribute=COLOUR,
            value="grey",
        )
        await self.store.keep([newer], self._n)
        known = self.world.known
        known[one.id] = Known(
            one.id, one.key, reach, one.lane, one.outside, one.bound, one.speaker, self._n, one.kind, f"unique{self._n}"
        )

    async def _forget(self) -> None:
        """What is forgotten is heard by nobody, from the moment it is hidden and when it is gone."""
        [one] = self.reads.some(1)
        await self.store.forgetful.hide([one.id], [], self._n)
        self.world.known[one.id] = replace(one, there=False)
        if self._chance.random() < 0.5:
            await self.store.forgetful.erase([one.id])

    async def _embed(self) -> None:
        waiting = await self.store.unembedded(SPACE, 0, 999)
        made = [NewVector(one.piece_id, direction(self._chance)) for one in waiting]
        await self.store.keep_vectors(SPACE, made, self._n)

    @property
    def leaks(self) -> list[str]:
        """What was told to whom it is not for."""
        return self.reads.leaks
