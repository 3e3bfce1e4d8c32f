"""The contract of judges, and of where pairs of memories are found and rulings kept.

Subclass the classes in a test module; give the fixture `judge`, a `Judging`, and the fixture `factory` of
`contracts.memories`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import pairwise
from typing import Protocol

import pytest

from keepsaid.domain.graph import Association, Relation, Seed
from keepsaid.domain.learning import LearnOutcome, Pair, Ruled, Ruling
from keepsaid.domain.memory import Memory, NewMemory, Source
from keepsaid.domain.message import Trust
from keepsaid.errors import ModelError
from keepsaid.ports.memory_maintenance import PairJudge, Pairs
from keepsaid.ports.memory_store import Graph, Learning, MemoryRevisions
from keepsaid_testkit.contracts.memories import AUDIT, HERE, SearchableStore, episode, sample

PAIRS = tuple(Pair(n, n + 100, (f"older {n}", f"newer {n}"), (1, 2)) for n in range(1, 5))


class PairStore(SearchableStore, Learning, Protocol):
    """A store of memories with pairs, a graph and versions."""

    @property
    def pairs(self) -> Pairs:
        """What stands close."""
        ...

    @property
    def graph(self) -> Graph:
        """What belongs together."""
        ...

    @property
    def revisions(self) -> MemoryRevisions:
        """Versions of memories."""
        ...


Factory = Callable[[], AbstractAsyncContextManager[PairStore]]
Scripted = Callable[[Sequence[Ruling | None] | ModelError], PairJudge]
"""A judge of whoever rules as told, or fails."""


class JudgeContract:
    """What every judge does."""

    async def test_each_pair_has_its_ruling_in_order(self, judge: Scripted) -> None:
        """All four differ."""
        rulings = [Ruling.SAME, Ruling.DIFFERENT, Ruling.UPDATES, Ruling.CONTRADICTS]
        one = judge(rulings)
        assert one.name
        assert list(await one.judge(PAIRS)) == rulings

    async def test_no_ruling_is_none(self, judge: Scripted) -> None:
        """A pair that was passed over is not ruled on."""
        assert list(await judge([Ruling.SAME, None]).judge(PAIRS[:2])) == [Ruling.SAME, None]

    async def test_a_judge_that_fails_says_so(self, judge: Scripted) -> None:
        """By an error of a model."""
        with pytest.raises(ModelError):
            await judge(ModelError("not today")).judge(PAIRS)

    async def test_nothing_is_asked_about_nothing(self, judge: Scripted) -> None:
        """No call is made for no pair."""
        assert list(await judge(ModelError("must not be asked")).judge(())) == []


def known(key: str, text: str, **fields: object) -> NewMemory:
    """A fact that was learned from a message of its own."""
    return sample(key, text, sources=(Source("message", key),), **{"trust": Trust.OWNER, **fields})


async def related(store: PairStore, *memories: NewMemory) -> list[int]:
    """Learn memories, each related to the one before; returns their ids."""
    ids = [one.memory_id for one in await store.learn(memories, 5)]
    edges = [Association(new, old, Relation.RELATED_TO, 0.5) for old, new in pairwise(ids)]
    await store.graph.relate(edges, (), 5)
    return ids


async def read(store: PairStore, memory_id: int) -> Memory:
    """One memory, as it stands."""
    found = await store.get(AUDIT, memory_id)
    assert found is not None
    return found


class PairsContract:
    """Which pairs are found, once, and what rulings come to."""

    async def test_a_pair_is_found_until_it_was_ruled_on(self, factory: Factory) -> None:
        """The older first, by since when it holds, whichever was kept first; one of a time at a time."""
        async with factory() as store:
            a, b, c = await related(
                store,
                known("a", "the ferry sails at nine", said_at=20),
                known("b", "the boat leaves at ten", said_at=10),
                known("c", "the ferry goes at eleven", said_at=30),
            )
            found = await store.pairs.undecided(0, 9)
            assert [(one.older, one.newer, one.equal) for one in found.pairs] == [(b, a, False), (b, c, False)]
            assert found.pairs[0].texts == ("the boat leaves at ten", "the ferry sails at nine")
            assert found.pairs[0].since == (10, 20)
            assert len((await store.pairs.undecided(0, 1)).pairs) == 1
            assert await store.pairs.rule([Ruled(b, a, Ruling.DIFFERENT, "m")], 50) == 1
            assert await store.pairs.rule([Ruled(b, a, Ruling.SAME, "m")], 51) == 0
            assert [(one.older, one.newer) for one in (await store.pairs.undecided(0, 9)).pairs] == [(b, c)]
            assert (await store.pairs.count_rulings_since(49), await store.pairs.count_rulings_since(50)) == (1, 0)
            assert not (await store.pairs.undecided(found.upto, 9)).pairs

    async def test_what_a_rule_decides_or_others_hear_is_no_pair(self, factory: Factory) -> None:
        """Two values of a slot, two scopes, an episode; but one value in one slot is equal."""
        async with factory() as store:
            slot: dict[str, object] = {"subject": "Ann", "attribute": "likes"}
            await related(
                store,
                known("a", "Ann likes tea", value="tea", **slot),
                known("b", "Ann likes rum", value="rum", **slot),
                known("c", "rum is what she likes", scope="person:owner"),
            )
            [said] = await store.keep([episode("e", "Ann likes it all", HERE, Trust.OWNER)], 5)
            [tea] = [one for one in await store.find(AUDIT, (), 9) if one.new.value == "tea"]
            await store.graph.relate([Association(said, tea.id, Relation.RELATED_TO, 0.5)], (), 5)
            assert (await store.pairs.undecided(0, 9)).pairs == ()

    async def test_what_is_the_same_becomes_evidence(self, factory: Factory) -> None:
        """With the sources of both; nothing is deleted."""
        async with factory() as store:
            a, b = await related(store, known("a", "the ferry sails at nine"), known("b", "nine it leaves, our boat"))
            assert await store.pairs.rule([Ruled(a, b, Ruling.SAME)], 50) == 1
            kept = await read(store, a)
            assert (kept.state, kept.evidence, len(kept.new.sources)) == ("active", 2, 2)
            assert (await read(store, b)).state == "merged"

    async def test_the_same_of_which_one_fills_a_slot_is_evidence_for_that(self, factory: Factory) -> None:
        """With the sources of both, whichever is older; it holds since the first said so."""
        async with factory() as store:
            for who, times in (("Ann", (10, 20)), ("Bob", (20, 10))):
                slot = {"subject": who, "attribute": "city", "value": "Porto"}
                free = known(f"{who} free", f"Porto is home to {who}", said_at=times[0])
                told = known(f"{who} slot", f"{who} lives in Porto", said_at=times[1], **slot)
                a, b = await related(store, free, told)
                older, newer = (a, b) if times[0] < times[1] else (b, a)
                assert await store.pairs.rule([Ruled(older, newer, Ruling.SAME)], 50) == 1
                kept, gone = await read(store, b), await read(store, a)
                assert (kept.state, kept.evidence, len(kept.new.sources)) == ("active", 2, 2)
                assert (gone.state, gone.superseded_by) == ("merged", b)
                assert [one.id for one in await store.fetch(AUDIT, [a, b], as_of=15)] == [b]
                again = await store.learn([free, told], 60)
                assert [(one.memory_id, one.how) for one in again] == [(b, LearnOutcome.KNOWN)] * 2

    async def test_the_same_before_something_else_held_is_its_past(self, factory: Factory) -> None:
        """What has no slot keeps its own time there; what held between still does."""
        async with factory() as store:
            slot = {"subject": "Ann", "attribute": "city"}
            a, rome, b = await related(
                store,
                known("a", "Porto is home to Ann", said_at=10),
                known("r", "Ann lives in Rome", said_at=20, value="Rome", **slot),
                known("b", "Ann lives in Porto", said_at=30, value="Porto", **slot),
            )
            assert await store.pairs.rule([Ruled(a, b, Ruling.SAME)], 50) == 1
            assert ((await read(store, b)).state, (await read(store, a)).superseded_by) == ("active", b)
            assert [one.id for one in await store.fetch(AUDIT, [a, rome, b], as_of=25)] == [a, rome]

    async def test_what_updates_closes_the_older(self, factory: Factory) -> None:
        """From when the newer holds; what held then is still returned."""
        async with factory() as store:
            a, b = await related(
                store,
                known("a", "the ferry sails at nine", said_at=10),
                known("b", "the ferry sails at ten now", said_at=20),
            )
            await store.pairs.rule([Ruled(a, b, Ruling.UPDATES, "m")], 50)
            old = await read(store, a)
            assert (old.state, old.superseded_by, old.valid_to) == ("superseded", b, 20)
            assert [one.id for one in await store.revisions.history(AUDIT, b)] == [a, b]
            assert [one.id for one in await store.fetch(AUDIT, [a, b], as_of=15)] == [a]

    async def test_nobodys_word_takes_the_place_of_the_owners(self, factory: Factory) -> None:
        """It contradicts it, as what cannot be true with it does."""
        async with factory() as store:
            for ruling, trust in ((Ruling.UPDATES, Trust.KNOWN), (Ruling.CONTRADICTS, Trust.OWNER)):
                told = known(f"{ruling} a", f"{ruling}: ferries sail at nine"), f"{ruling}: boats leave at ten"
                a, b = [
                    one.memory_id for one in await store.learn([told[0], known(f"{ruling} b", told[1], trust=trust)], 5)
                ]
                await store.pairs.rule([Ruled(a, b, ruling, "m")], 50)
                assert [(await read(store, one)).state for one in (a, b)] == ["active", "active"]
                walked = await store.graph.walk(AUDIT, "", [Seed(b, 1.0)], 9)
                assert [one.path[-1].relation for one in walked if one.memory_id == a] == [Relation.CONTRADICTS]

    async def test_what_changed_meanwhile_is_not_ruled_on(self, factory: Factory) -> None:
        """A ruling on what holds no more does nothing and is not kept."""
        async with factory() as store:
            a, b, c = await related(
                store,
                known("a", "the ferry sails at nine"),
                known("b", "our ferry leaves at nine"),
                known("c", "our ferry leaves at ten"),
            )
            await store.pairs.rule([Ruled(a, b, Ruling.UPDATES, "m")], 50)
            assert await store.pairs.rule([Ruled(a, c, Ruling.UPDATES, "m")], 51) == 0
            assert (await read(store, a)).superseded_by == b
