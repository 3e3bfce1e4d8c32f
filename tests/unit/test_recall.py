from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.unit.memory_cast import LANE, memory

from keepsaid.domain.graph import Seed, WalkStep
from keepsaid.domain.memory import Found, Listener, Memory
from keepsaid.domain.receipt import Place
from keepsaid.memory.recall.ranking import GraphLeg, Leg, LegShare, coverage, fuse, places, spread, steady
from keepsaid.memory.recall.recollection import Recollection
from keepsaid.testing.clock import VirtualClock

LISTENER = Listener(LANE)
A, B, C, D = (memory(n, text, said_at=n) for n, text in enumerate("abcd", start=1))
TWIN = memory(9, "twin", said_at=D.new.said_at)
ASKING = memory(10, "a cat?", said_at=10)
NAMED = memory(11, "purrs", said_at=0, speaker="Cat Stevens")
WEIGHTY = memory(12, "b", said_at=0, importance=0.9)


class Shelf:
    """Memories that can be read, whoever listens."""

    def __init__(self, *stored: Memory) -> None:
        self._stored = {one.id: one for one in stored}

    async def fetch(self, listener: Listener, ids: Sequence[int], as_of: int | None = None) -> Sequence[Memory]:
        assert listener == LISTENER
        return [self._stored[id_] for id_ in ids if id_ in self._stored]


SHELF = Shelf(A, B, C, D, TWIN, ASKING, NAMED, WEIGHTY)


def leg(name: str, *found: tuple[Memory, float], weight: float = 1.0) -> Leg:
    async def search(listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
        assert (listener, query) == (LISTENER, "cat")
        return tuple(Found(one.id, score) for one, score in found)[:limit]

    return Leg(name, search, weight)


def recollection(*legs: Leg, shelf: Shelf = SHELF) -> Recollection:
    return Recollection(legs, shelf, VirtualClock(), absent=())


async def order(*legs: Leg, limit: int = 9) -> list[Memory]:
    return [hit.memory for hit in (await recollection(*legs).recall(LISTENER, "cat", limit)).hits]


async def broken(listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
    raise ValueError("no such column")


async def silent(listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
    await asyncio.Event().wait()
    raise AssertionError


async def refused(listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
    raise TimeoutError("the server gave up")


async def test_one_leg_keeps_its_order_and_hits() -> None:
    found = Recollection((leg("text", (A, 3.0), (B, 2.0), (C, 1.0)),), SHELF, VirtualClock())
    recalled = await found.recall(LISTENER, "cat", 2)
    assert [(hit.memory, hit.leg, hit.rank, hit.score) for hit in recalled.hits] == [
        (A, "text", 1, 3.0),
        (B, "text", 2, 2.0),
    ]
    assert recalled.missing == ("vector: no embedder",)
    assert not recalled.by_meaning
    assert (await recollection(leg("text"), leg("vector")).recall(LISTENER, "cat", 2)).by_meaning


async def test_a_leg_that_fails_is_left_out_and_named() -> None:
    legs = (
        leg("text", (A, 3.0), (B, 2.0)),
        Leg("graph", broken),
        Leg("vector", silent, limit_ms=1),
        Leg("web", refused),
    )
    recalled = await recollection(*legs).recall(LISTENER, "cat", 9)
    assert [hit.memory for hit in recalled.hits] == [A, B]
    assert recalled.missing == (
        "graph: ValueError: no such column",
        "vector: slower than 1 ms",
        "web: TimeoutError: the server gave up",
    )


async def test_no_leg_at_all_finds_nothing() -> None:
    recalled = await recollection().recall(LISTENER, "cat", 9)
    assert (recalled.hits, recalled.answered) == ((), False)
    assert await order(leg("text", (A, 1.0)), limit=-1) == []


async def test_what_cannot_be_read_is_said_and_is_no_answer() -> None:
    class Torn(Shelf):
        async def fetch(self, listener: Listener, ids: Sequence[int], as_of: int | None = None) -> Sequence[Memory]:
            raise OSError("torn")

    recalled = await recollection(leg("text", (A, 1.0)), shelf=Torn()).recall(LISTENER, "cat", 9)
    assert (recalled.hits, recalled.answered) == ((), False)
    assert recalled.missing == ("memories: OSError: torn",)


async def test_what_the_store_no_longer_gives_is_left_out() -> None:
    gone = memory(99, "gone")
    assert await order(leg("text", (gone, 2.0), (A, 1.0))) == [A]


async def test_what_two_legs_find_comes_before_what_one_finds() -> None:
    text, vector = leg("text", (A, 3.0), (B, 2.5)), leg("vector", (C, 0.5), (B, 0.4))
    assert await order(text, vector) == [B, C, A]


def test_weights_count_and_the_heavier_leg_shows_the_hit() -> None:
    text = LegShare("text", 1.0, (Found(A.id, 2.0), Found(D.id, 1.0)))
    vector = LegShare("vector", 2.0, (Found(B.id, 0.9), Found(A.id, 0.8)))
    assert [one.memory_id for one in fuse([text, vector])] == [A.id, B.id, D.id]
    there = places([text, vector], [D.id, A.id, B.id])
    assert there == {
        D.id: (Place("text", 2, 1.0),),
        A.id: (Place("vector", 2, 0.8), Place("text", 1, 2.0)),
        B.id: (Place("vector", 1, 0.9),),
    }


async def test_equals_come_newest_first_and_then_by_id() -> None:
    assert await order(leg("text", (A, 1.0), (D, 1.0), (TWIN, 1.0))) == [TWIN, D, A]


async def test_importance_decides_between_equals_only() -> None:
    assert await order(leg("text", (A, 1.0), (WEIGHTY, 1.0))) == [WEIGHTY, A]
    assert await order(leg("text", (A, 1.0), (WEIGHTY, 0.99))) == [A, WEIGHTY]


async def test_who_is_named_in_the_query_is_looked_for_and_questions_less() -> None:
    assert await order(leg("text", (A, 1.0), (NAMED, 0.9))) == [NAMED, A]
    assert await order(leg("text", (ASKING, 1.0), (A, 0.95))) == [A, ASKING]
    assert await order(leg("text", (A, 1.0), (NAMED, 0.5))) == [A, NAMED]


async def test_every_hit_tells_its_place_in_each_leg_and_the_rest_where_it_ended() -> None:
    text, vector = leg("text", (A, 3.0), (B, 2.5), (D, 0.5)), leg("vector", (C, 0.5), (B, 0.4))
    recalled = await recollection(text, vector, Leg("web", refused)).recall(LISTENER, "cat", 1)
    [best] = recalled.hits
    assert sorted(best.places, key=lambda place: place.leg) == [Place("text", 2, 2.5), Place("vector", 2, 0.4)]
    assert [(one.memory_id, one.rank) for one in recalled.beyond] == [(C.id, 2), (A.id, 3), (D.id, 4)]
    assert [(one.leg, one.found, one.why) for one in recalled.searched] == [
        ("text", 3, ""),
        ("vector", 2, ""),
        ("web", 0, "web: TimeoutError: the server gave up"),
    ]


async def test_a_leg_counts_as_much_as_it_is_sure_of_its_answer() -> None:
    async def words(listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
        return (Found(A.id, 0.1),)

    async def nearest(listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
        return (Found(B.id, 0.5), *(Found(n, 0.1) for n in range(100, 110)))

    for text, vector, first in ((steady, steady, A), (coverage, steady, A), (coverage, spread, B)):
        legs = Leg("text", words, 0.6, confidence=text), Leg("vector", nearest, 0.25, confidence=vector)
        assert (await order(*legs))[0] == first


async def test_the_graph_leg_goes_on_from_what_the_others_found() -> None:
    asked: list[tuple[str, tuple[Seed, ...]]] = []
    path = (WalkStep("", A.id), WalkStep("updates", C.id))

    async def walk(listener: Listener, query: str, seeds: Sequence[Seed], limit: int) -> tuple[Found, ...]:
        asked.append((query, tuple(seeds)))
        return (Found(C.id, 0.8, path), Found(B.id, 0.2))

    legs = [leg("text", (A, 4.0), (B, 1.0))]
    recalled = await Recollection(legs, SHELF, VirtualClock(), (), GraphLeg(walk, 0.5)).recall(LISTENER, "cat", 9)
    assert asked == [("cat", (Seed(A.id, 1.0), Seed(B.id, 0.25)))]
    assert [hit.memory for hit in recalled.hits] == [A, C, B]
    assert recalled.hits[1].places == (Place("graph", 1, 0.8, path),)
    assert [place.leg for place in recalled.hits[2].places] == ["text", "graph"]
    assert [how.leg for how in recalled.searched] == ["text", "graph"]


async def test_a_broken_graph_leg_is_named_and_costs_nothing_else() -> None:
    async def walk(listener: Listener, query: str, seeds: Sequence[Seed], limit: int) -> tuple[Found, ...]:
        raise ValueError("no such table")

    legs = [leg("text", (A, 4.0))]
    recalled = await Recollection(legs, SHELF, VirtualClock(), (), GraphLeg(walk)).recall(LISTENER, "cat", 9)
    assert [hit.memory for hit in recalled.hits] == [A]
    assert (recalled.missing, recalled.answered) == (("graph: ValueError: no such table",), True)


async def test_what_was_said_in_the_time_asked_for_comes_first_and_nothing_is_left_out() -> None:
    day = 86_400_000
    old, may, near = (memory(n, "x", said_at=at) for n, at in ((1, 1), (2, 125 * day), (3, 160 * day)))

    async def search(listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
        return Found(old.id, 1.0), Found(near.id, 0.98), Found(may.id, 0.97)

    recall = Recollection([Leg("text", search)], Shelf(old, may, near), VirtualClock(), ())

    async def found(query: str) -> list[int]:
        return [hit.memory.id for hit in (await recall.recall(LISTENER, query, 9)).hits]

    assert await found("what happened?") == [old.id, near.id, may.id]
    assert await found("what happened in May 1970?") == [may.id, near.id, old.id]
    assert await found("what happened before 1971?") == [old.id, near.id, may.id]


async def test_before_something_is_before_the_memory_of_it() -> None:
    day = 86_400_000
    told = ((1, "our trip!", 200), (2, "x", 100), (3, "x", 300), (4, "a trip, once", 400))
    trip, earlier, later, other = (memory(n, text, said_at=at * day) for n, text, at in told)

    async def search(listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
        return Found(trip.id, 1.0), Found(other.id, 0.5), Found(earlier.id, 0.4), Found(later.id, 0.4)

    recall = Recollection([Leg("text", search)], Shelf(trip, earlier, later, other), VirtualClock(), ())
    for query, nearer, further in (("who rang before the trip?", 2, 3), ("who rang after the trip?", 3, 2)):
        ids = [hit.memory.id for hit in (await recall.recall(LISTENER, query, 9)).hits]
        assert ids == [trip.id, other.id, nearer, further]


async def test_days_are_looked_for_by_name_where_little_else_is_asked() -> None:
    asked: list[str] = []

    async def search(listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
        asked.append(query)
        return ()

    recall = Recollection([Leg("text", search)], SHELF, VirtualClock(), ())
    for query in ("what did Ana say on 2023-05-08?", "who sold the old boat with a green sail on 2023-05-08?"):
        await recall.recall(LISTENER, query, 9)
    assert asked[0] == "what did Ana say on 2023-05-08? 8 May 2023 Monday"
    assert asked[1].endswith("2023-05-08?")


async def test_of_a_long_query_the_ends_are_searched_for_and_that_is_said() -> None:
    asked: list[str] = []

    async def search(listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
        asked.append(query)
        return ()

    text = "in May 2025 before the trip on 2025-06-01 last week " * 19_000
    recalled = await recollection(Leg("text", search)).recall(LISTENER, text, 9)
    assert [len(query) for query in asked] == [3_999]
    assert recalled.missing == (f"query: 4,000 of {len(text):,} characters were searched for",)
