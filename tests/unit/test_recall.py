from __future__ import annotations

import asyncio

from tests.unit.memory_cast import LANE, hits, memory

from keepsaid.domain.memory import Hit, Listener
from keepsaid.memory.recall import Recollection, join_ranks
from keepsaid.memory.recall.legs import Leg
from keepsaid.testing.clock import VirtualClock

LISTENER = Listener(LANE)
A, B, C, D = (memory(n, text, said_at=n) for n, text in enumerate("abcd", start=1))


async def found(listener: Listener, query: str, limit: int) -> tuple[Hit, ...]:
    assert (listener, query) == (LISTENER, "cat")
    return hits(A, B, C)[:limit]


async def broken(listener: Listener, query: str, limit: int) -> tuple[Hit, ...]:
    raise ValueError("no such column")


async def silent(listener: Listener, query: str, limit: int) -> tuple[Hit, ...]:
    await asyncio.Event().wait()
    raise AssertionError


async def refused(listener: Listener, query: str, limit: int) -> tuple[Hit, ...]:
    raise TimeoutError("the server gave up")


async def test_one_leg_keeps_its_order_and_hits() -> None:
    recalled = await Recollection((Leg("text", found),), VirtualClock()).recall(LISTENER, "cat", 2)
    assert recalled.hits == hits(A, B)
    assert recalled.missing == ("vector: no embedder",)


async def test_a_leg_that_fails_is_left_out_and_named() -> None:
    legs = (
        Leg("text", found),
        Leg("graph", broken),
        Leg("vector", silent, limit_ms=1),
        Leg("web", refused),
    )
    recalled = await Recollection(legs, VirtualClock(), absent=()).recall(LISTENER, "cat", 9)
    assert recalled.hits == hits(A, B, C)
    assert recalled.missing == (
        "graph: ValueError: no such column",
        "vector: slower than 1 ms",
        "web: TimeoutError: the server gave up",
    )


async def test_no_leg_at_all_finds_nothing() -> None:
    recalled = await Recollection((), VirtualClock()).recall(LISTENER, "cat", 9)
    assert recalled.hits == ()
    assert (await Recollection((Leg("text", found),), VirtualClock()).recall(LISTENER, "cat", -1)).hits == ()


def test_what_two_legs_find_comes_before_what_one_finds() -> None:
    joined = join_ranks([(1.0, hits(A, B)), (1.0, hits(C, B))])
    assert [hit.memory for hit in joined] == [B, C, A]
    assert joined[0].rank == 2


def test_weights_count_and_the_heavier_leg_shows_the_hit() -> None:
    vector = tuple(Hit(hit.memory, "vector", hit.rank, hit.score) for hit in hits(B, A))
    joined = join_ranks([(1.0, hits(A, D)), (2.0, vector)])
    assert [(hit.memory, hit.leg) for hit in joined] == [(A, "vector"), (B, "vector"), (D, "text")]


def test_equals_come_newest_first() -> None:
    twin = memory(9, "twin", said_at=D.new.said_at)
    joined = join_ranks([(1.0, hits(A)), (1.0, hits(D)), (1.0, hits(twin))])
    assert [hit.memory for hit in joined] == [twin, D, A]
