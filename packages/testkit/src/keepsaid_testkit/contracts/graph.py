"""What every graph of memories must do: associations and mentions are kept, and a walk reads only what is readable.

Subclass the class in a test module and give the fixture `factory` of `contracts.memories`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import pytest

from keepsaid.domain.graph import MENTIONS, NODES_MAX, Association, Mention, Relation, Seed, WalkStep
from keepsaid.domain.memory import GLOBAL, Found, Listener, NewMemory, conversation_scope
from keepsaid.domain.message import Trust
from keepsaid.ports.memory_store import Graph
from keepsaid_testkit.contracts.memories import AUDIT, HERE, OWNER_HERE, STRAND, THERE, SearchableStore, episode, sample


class GraphStore(SearchableStore, Protocol):
    """A store of memories with their graph."""

    @property
    def graph(self) -> Graph:
        """The graph of its memories."""
        ...


Factory = Callable[[], AbstractAsyncContextManager[GraphStore]]
RELATED = Relation.RELATED_TO


async def kept(store: GraphStore, *memories: NewMemory) -> dict[str, int]:
    """Memories by their keys."""
    ids = await store.keep(memories, 5)
    return {memory.key: id_ for memory, id_ in zip(memories, ids, strict=True)}


async def plain(store: GraphStore, keys: str) -> dict[str, int]:
    """A memory of importance 1 for each letter."""
    return await kept(store, *(sample(key, f"note {key}", importance=1.0) for key in keys))


async def reached(
    store: GraphStore,
    ids: Mapping[str, int],
    start: Sequence[str],
    listener: Listener = AUDIT,
    query: str = "",
) -> dict[str, float]:
    """What a walk from some memories reaches, with its scores."""
    seeds = [Seed(ids[key], 1.0) for key in start]
    found = await store.graph.walk(listener, query, seeds, 99)
    names = {id_: key for key, id_ in ids.items()}
    return {names[one.memory_id]: one.score for one in found}


class GraphContract:
    """Associations, mentions, and the walk over them."""

    async def test_a_walk_goes_two_steps_both_ways(self, factory: Factory) -> None:
        """Weights and relations count, what is two steps away counts half, and the path is returned."""
        async with factory() as store:
            ids = await plain(store, "abcde")
            edges = [("a", "b", Relation.UPDATES, 0.5), ("c", "b", Relation.CONTRADICTS, 1.0), ("c", "d", RELATED, 1.0)]
            told = [Association(ids[one], ids[other], relation, weight) for one, other, relation, weight in edges]
            assert await store.graph.relate(told, [], 6) == 3
            found = await store.graph.walk(AUDIT, "", [Seed(ids["a"], 0.8)], 9)
            assert found == (
                Found(ids["b"], 0.6, (WalkStep("", ids["a"]), WalkStep("updates", ids["b"]))),
                Found(
                    ids["c"],
                    0.15,
                    (WalkStep("", ids["a"]), WalkStep("updates", ids["b"]), WalkStep("contradicts", ids["c"])),
                ),
            )
            assert await store.graph.walk(AUDIT, "", [Seed(ids["a"], 0.8)], 1) == found[:1]
            assert await store.graph.walk(AUDIT, "", [Seed(ids["e"], 1.0)], 9) == ()
            assert await store.graph.walk(AUDIT, "", [], 9) == ()

    async def test_importance_counts_and_the_best_way(self, factory: Factory) -> None:
        """Of several ways to a memory the best counts once; no way leads back to where it began."""
        async with factory() as store:
            ids = await kept(store, *(sample(key, importance=0.5 if key == "d" else 1.0) for key in "abcd"))
            edges = [("a", "b", 0.4), ("a", "c", 0.9), ("b", "d", 0.9), ("c", "d", 0.6)]
            await store.graph.relate([Association(ids[x], ids[y], RELATED, w) for x, y, w in edges], [], 6)
            found = await reached(store, ids, "a")
            assert found == pytest.approx({"c": 0.9, "b": 0.4, "d": 0.9 * 0.6 / 2 * 0.5})
            assert list(found) == ["c", "b", "d"]
            assert (await reached(store, ids, "ab"))["a"] == pytest.approx(0.4)

    async def test_writing_again_changes_the_weight(self, factory: Factory) -> None:
        """The same association is one; another relation between the two is another."""
        async with factory() as store:
            ids = await plain(store, "ab")
            for weight in (0.9, 0.3):
                assert await store.graph.relate([Association(ids["a"], ids["b"], RELATED, weight)], [], 6) == 1
            assert await reached(store, ids, "a") == {"b": 0.3}
            await store.graph.relate([Association(ids["a"], ids["b"], Relation.CAUSED_BY)], [], 6)
            assert await reached(store, ids, "a") == {"b": 1.3}

    async def test_what_cannot_be_related_is_left_out(self, factory: Factory) -> None:
        """A memory that is not there, and a memory with itself; the rest of the call is kept. No weight, no edge."""
        async with factory() as store:
            ids = await plain(store, "ab")
            edges = [Association(ids["a"], other, RELATED) for other in (ids["a"], 17, ids["b"])]
            assert await store.graph.relate(edges, [Mention(17, "place:paris", "Paris")], 6) == 1
            for weight in (0.0, 1.5, float("nan")):
                with pytest.raises(ValueError, match="weight"):
                    Association(1, 2, RELATED, weight)
            with pytest.raises(ValueError, match="name"):
                Mention(1, "place:", " - ")

    async def test_entities_join_what_mentions_them(self, factory: Factory) -> None:
        """Over a person or a place to other memories; the way tells the name that stands in each."""
        async with factory() as store:
            ids = await plain(store, "abc")
            told = [("a", "person:zoe", "Zoë"), ("b", "person:zoe", "Dr. Miller"), ("c", "place:paris", "Paris")]
            assert await store.graph.relate([], [Mention(ids[key], entity, name) for key, entity, name in told], 6) == 3
            assert await store.graph.walk(AUDIT, "", [Seed(ids["a"], 1.0)], 9) == (
                Found(
                    ids["b"],
                    0.5,
                    (WalkStep("", ids["a"]), WalkStep(MENTIONS, name="Zoë"), WalkStep(MENTIONS, ids["b"])),
                ),
            )

    async def test_the_query_names_entities(self, factory: Factory) -> None:
        """By any of their names, of one word or more, however they are written; a stopword names nobody."""
        async with factory() as store:
            ids = await plain(store, "abcd")
            told = [
                ("a", "person:zoe", "Zoë"), ("b", "person:zoe", "Dr. Miller"),
                ("c", "place:nyc", "New York"), ("d", "person:will", "Will"),
            ]  # fmt: skip
            await store.graph.relate([], [Mention(ids[key], entity, name) for key, entity, name in told], 6)
            for query, expected in (
                ("where does zoe live?", "ab"),
                ("DR MILLER", "ab"),
                ("flights to new york", "c"),
                ("york", ""),
                ("what will it be?", ""),
            ):
                assert sorted(await reached(store, ids, "", query=query)) == list(expected), query

    async def test_an_important_memory_that_shares_a_word_is_a_seed(self, factory: Factory) -> None:
        """However low it stands among the seeds; but never by a stopword, and not without importance."""
        texts = {
            "goal": "run a marathon with Zoë",
            "idle": "run a bath",
            "stop": "what is it that you want",
            "far": "x",
        }
        async with factory() as store:
            ids = await kept(
                store,
                *(sample(f"s{n}", "note", importance=0.1) for n in range(10)),
                *(sample(key, text, importance=0.3 if key == "idle" else 0.9) for key, text in texts.items()),
                *(sample(f"near {key}", "note", importance=1.0) for key in texts),
            )
            await store.graph.relate([Association(ids[key], ids[f"near {key}"], RELATED) for key in texts], [], 6)
            order = [*(f"s{n}" for n in range(10)), *texts]
            seeds = [Seed(ids[key], 0.01) for key in order]
            names = {id_: key for key, id_ in ids.items()}

            async def found(query: str) -> list[str]:
                return [names[one.memory_id] for one in await store.graph.walk(AUDIT, query, seeds, 9)]

            assert await found("what about running?") == ["near goal"]
            assert await found("what is it?") == []
            await store.graph.relate([], [Mention(ids["far"], "place:paris", "Paris")], 6)
            assert "near far" in await found("paris")

    async def test_each_step_hears_what_the_listener_hears(self, factory: Factory) -> None:
        """What is not readable is not reached, not started from, and no path leads over it; nor is its name known."""
        async with factory() as store:
            ids = await kept(
                store,
                sample("open", scope=GLOBAL),
                sample("there", scope=conversation_scope(THERE)),
                sample("beyond", scope=GLOBAL),
                episode("strand", "note", STRAND, Trust.OWNER),
                episode("stranger", "note", THERE, Trust.EXTERNAL, scope=GLOBAL),
            )
            pairs = [("open", "there"), ("there", "beyond"), ("open", "strand"), ("open", "stranger")]
            await store.graph.relate(
                [Association(ids[one], ids[other], RELATED) for one, other in pairs],
                [Mention(ids["there"], "person:zoe", "Zoë"), Mention(ids["beyond"], "person:zoe", "Dr. Miller")],
                6,
            )
            assert set(await reached(store, ids, ["open"])) == {"there", "beyond", "strand", "stranger"}
            assert set(await reached(store, ids, ["open"], OWNER_HERE)) == set()
            assert set(await reached(store, ids, ["there"], OWNER_HERE)) == set()
            assert set(await reached(store, ids, ["open"], Listener(STRAND))) == {"strand"}
            assert set(await reached(store, ids, ["open"], Listener(THERE))) == {"there", "beyond", "stranger"}
            assert set(await reached(store, ids, "", OWNER_HERE, "zoe")) == set()
            assert set(await reached(store, ids, "", OWNER_HERE, "miller doctor dr miller")) == {"beyond"}
            assert set(await reached(store, ids, ["open"], Listener(HERE, cross=True))) == {"strand"}

    async def test_a_hub_gives_its_strongest_edges(self, factory: Factory) -> None:
        """20 in the first step and 5 in the second, of those that are readable; of equal ones the newest."""
        async with factory() as store:
            many = [sample(f"m{n}", f"note {n}", importance=1.0) for n in range(30)]
            ids = await kept(store, *many, *(sample(f"s{n}", importance=1.0) for n in range(9)), sample("hub"))
            edges = [Association(ids["hub"], ids[f"m{n}"], RELATED, 0.5) for n in range(30)]
            edges += [Association(ids["m29"], ids[f"s{n}"], RELATED, 0.5 + n / 100) for n in range(9)]
            await store.graph.relate(edges, [], 6)
            walked = await store.graph.walk(AUDIT, "", [Seed(ids["hub"], 1.0)], 999)
            names = {id_: key for key, id_ in ids.items()}
            got = {names[one.memory_id] for one in walked}
            assert got == {f"m{n}" for n in range(10, 30)} | {f"s{n}" for n in range(4, 9)}

    async def test_only_the_strongest_nodes_are_gone_on_from(self, factory: Factory) -> None:
        """However many were reached."""
        async with factory() as store:
            hubs = [f"h{n}" for n in range(4)]
            mids = [f"m{n}" for n in range(20 * len(hubs))]
            ends = [f"e{n}" for n in range(len(mids))]
            ids = await kept(store, *(sample(key, key, importance=1.0) for key in (*hubs, *mids, *ends)))
            edges = [
                Association(ids[hubs[n // 20]], ids[mid], RELATED, 1 - n / 1_000) for n, mid in enumerate(mids)
            ] + [Association(ids[mid], ids[end], RELATED) for mid, end in zip(mids, ends, strict=True)]
            await store.graph.relate(edges, [], 6)
            walked: Sequence[Found] = await store.graph.walk(AUDIT, "", [Seed(ids[hub], 1.0) for hub in hubs], 999)
            got = {one.memory_id for one in walked}
            assert {n for n, end in enumerate(ends) if ids[end] in got} == set(range(NODES_MAX))

    async def test_relations_are_there_after_reopening(self, factory: Factory) -> None:
        """Closing loses nothing."""
        async with factory() as store:
            ids = await plain(store, "ab")
            await store.graph.relate([Association(ids["a"], ids["b"], RELATED)], [], 6)
        async with factory() as store:
            assert await reached(store, ids, "a") == {"b": 1.0}
