"""Whatever memory came to know, a bundle of it that an empty home takes over gives the same bundle and recall."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.bundle_cast import Place, bundle, home, outcomes, records_of, take_in

from keepsaid.adapters.sqlite.stores import SqliteMemories
from keepsaid.domain.graph import Association, Mention, Relation
from keepsaid.domain.memory import OWNER, Kind, NewMemory, Source, Used, person_scope
from keepsaid.domain.message import Trust
from keepsaid_testkit.contracts.learning import lives, said
from keepsaid_testkit.contracts.memories import AUDIT, HERE, episode
from keepsaid_testkit.contracts.people import ANN, BEN, CAT

_PLACES = st.sampled_from(["Porto", "Lisbon", "Rome"])
_TIMES = st.integers(1, 9).map(lambda n: n * 100)
_WORDS = st.sampled_from(
    [
        "the bridge was painted red last year",
        "the boat has a new sail",
        "tea is better than coffee",
        "blå bär & \u4e16\u754c",
    ]
)
_SCOPES = st.sampled_from(["global", person_scope(ANN), person_scope(OWNER)])
_ANY = st.integers(0, 20)
_STEPS = st.one_of(
    st.tuples(st.just("lives"), _PLACES, _TIMES, _SCOPES),
    st.tuples(st.just("fact"), _WORDS, _TIMES, _SCOPES),
    st.tuples(st.just("says"), _WORDS, _TIMES, st.sampled_from(list(Trust))),
    st.tuples(st.just("sums up"), _WORDS, _TIMES, st.integers(1, 5)),
    st.tuples(st.just("correct"), _ANY, _PLACES, _TIMES),
    st.tuples(st.just("merge"), _ANY, _ANY),
    st.tuples(st.just("pin"), _ANY, st.booleans()),
    st.tuples(st.just("confirm"), _ANY, _TIMES),
    st.tuples(st.just("relate"), _ANY, _ANY, st.sampled_from(list(Relation))),
    st.tuples(st.just("join"), st.sampled_from([(ANN, BEN), (BEN, CAT), (OWNER, CAT)])),
    st.tuples(st.just("forget"), _ANY),
)


class World:
    """A store to which things happen; each is named by the place it has among all."""

    def __init__(self, store: SqliteMemories) -> None:
        self._store = store
        self._n = 0

    async def happen(self, step: tuple[Any, ...]) -> None:
        self._n += 1
        match step:
            case ("lives", place, at, scope):
                await self._store.learn([lives(self._key, place, at, scope=scope)], 1_000 + self._n)
            case ("fact", words, at, scope):
                await self._store.learn([said(self._key, words, at, scope=scope)], 1_000 + self._n)
            case ("says", words, at, trust):
                spoken = episode(self._key, words, HERE, trust, said_at=at, speaker="Me", speaker_id=OWNER)
                await self._store.keep([spoken], 1_000 + self._n, [Used(self._n, await self._all(), 2_000)])
            case ("sums up", words, at, version):
                kept = episode(
                    "summary", words, HERE, Trust.KNOWN, said_at=at, kind=Kind.THREAD_SUMMARY, version=version
                )
                await self._store.keep([kept], 1_000 + self._n)
            case ("join", names):
                await self._store.people.join(names, OWNER, 1_000 + self._n)
            case (verb, first, *rest):
                await self._to(verb, await self._one(first), rest)

    async def _to(self, verb: str, memory: int, rest: list[Any]) -> None:
        store, at = self._store, 1_000 + self._n
        match verb, rest:
            case "correct", [place, when]:
                await store.revisions.correct(memory, self._word(place, when), at)
            case "merge", [other]:
                await store.revisions.merge(memory, [await self._one(other)], at)
            case "pin", [pinned]:
                await store.revisions.pin(memory, at, pinned=pinned)
            case "confirm", [when]:
                await store.revisions.confirm(memory, when)
            case "relate", [other, relation]:
                edges = [Association(memory, await self._one(other), relation, 0.5)]
                await store.graph.relate(edges, [Mention(memory, "thing:boat", "boat", 0.5)], at)
            case "forget", []:
                traced = await store.forgetful.lineage([memory], [])
                await store.forgetful.hide([], [digest for one in traced for digest in one.digests], at)
                gone = await store.forgetful.revived(await store.forgetful.tombstones())
                await store.forgetful.hide(gone, [], at)
                await store.forgetful.erase(gone)

    @property
    def _key(self) -> str:
        return f"k{self._n}"

    def _word(self, place: str, at: int) -> NewMemory:
        sources = (Source("person", self._key),)
        return lives(self._key, place, at, trust=Trust.OWNER, corrects=True, sources=sources)

    async def _all(self) -> tuple[int, ...]:
        return tuple(sorted(one.id for one in await self._store.find(AUDIT, (), 99)))

    async def _one(self, n: int) -> int:
        there = await self._all()
        return there[n % len(there)] if there else 0


async def _round_trip(folder: Path, steps: list[tuple[Any, ...]]) -> None:
    async with home(folder, "one") as store, home(folder, "other") as other:
        world = World(store)
        for step in steps:
            await world.happen(step)
        before = await bundle(store, folder / "all.jsonl")
        key = folder / "one" / "forgotten.key"
        if key.exists():
            shutil.copy(key, folder)
        dry = await take_in(other, folder / "all.jsonl", dry_run=True)
        assert await records_of(other) == []
        told = await take_in(other, folder / "all.jsonl")
        assert told["counts"] == dry["counts"]
        assert sum(outcomes(told)[1:]) == 0, told["told"]
        assert await bundle(other, folder / "again.jsonl") == before
        assert sorted(await _found(other)) == sorted(await _found(store))
        again = Place(other)
        assert sum(outcomes(await take_in(again, folder / "all.jsonl"))[2:]) == 0
        assert await records_of(other) == before


async def _found(store: SqliteMemories) -> list[tuple[str, int]]:
    asked = ("where does Ann live", "boat sail", "tea or coffee")
    return [(query, one.memory_id) for query in asked for one in await store.text(AUDIT, query, 50)]


@settings(max_examples=4, derandomize=True)
@given(st.lists(_STEPS, min_size=4, max_size=14))
def test_a_bundle_taken_over_by_an_empty_home_gives_the_same_bundle(steps: list[tuple[Any, ...]]) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(_round_trip(Path(folder), steps))
