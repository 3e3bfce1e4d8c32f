"""Sessions of quiet lanes sleep and end by themselves, by the steady clock, a little at a time."""

from __future__ import annotations

from keepsaid.adapters.sql.operations.sessions import invalidate
from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.session import SessionTerms
from keepsaid.engine.caretakers import LOOKED_MAX, SessionExpirer
from keepsaid.testing.builders import lane_of, said
from keepsaid.testing.clock import VirtualClock
from keepsaid_testkit.contracts.store_driver import StoreDriver

START = 1_795_000_000_000
HOUR = 3_600_000


async def quiet(rooms: int) -> tuple[InMemoryOperations, VirtualClock, SessionExpirer]:
    """So many lanes whose last turn was at the start."""
    store, clock = InMemoryOperations(), VirtualClock(START)
    road = StoreDriver(store)
    for n in range(rooms):
        await road.settle(said(room=f"r{n}"), at=START)
    return store, clock, SessionExpirer(store, clock, SessionTerms())


async def state(store: InMemoryOperations, n: int = 0) -> str:
    return (await store.sessions(lane_of(f"r{n}"), 1))[0].state


async def test_it_comes_again_when_the_first_is_due_and_takes_it_then() -> None:
    store, clock, sleepers = await quiet(1)
    assert await sleepers.work() == START + 60_000
    await clock.advance(59_999)
    assert await sleepers.work() == START + 60_000
    assert await state(store) == "active"
    await clock.advance(1)
    await sleepers.work()
    assert await state(store) == "sleeping"
    assert await sleepers.work() == START + HOUR
    await clock.advance(HOUR)
    await sleepers.work()
    assert await state(store) == "ended"
    assert await sleepers.work() is None


async def test_many_are_taken_a_few_at_a_time() -> None:
    store, clock, sleepers = await quiet(LOOKED_MAX + 5)
    await clock.advance(60_000)
    await sleepers.work()
    states = [await state(store, n) for n in range(LOOKED_MAX + 5)]
    assert (states.count("sleeping"), states.count("active")) == (LOOKED_MAX, 5)
    await sleepers.work()
    assert {await state(store, n) for n in range(LOOKED_MAX + 5)} == {"sleeping"}


async def test_a_wall_clock_that_was_set_ends_nothing() -> None:
    store, clock, sleepers = await quiet(1)
    clock.jump(9_000 * HOUR)
    await sleepers.work()
    assert await state(store) == "active"
    clock.jump(-18_000 * HOUR)
    await clock.advance(60_000)
    await sleepers.work()
    assert await state(store) == "sleeping"


async def test_a_mark_is_set_once_the_larger_wins_and_nothing_collected_is_marked() -> None:
    store, _, _ = await quiet(1)
    database = store.database
    [(number,)] = database.rows("SELECT id FROM session")

    def mark() -> list[tuple[object, ...]]:
        return database.rows("SELECT invalidated_at, invalidated_reason FROM session")

    for record, reason, marked in ((5, "sleep", 5), (5, "reset", 5), (4, "reset", 5), (7, "records", 7)):
        invalidate(database.db, number, record, reason, 0)
        assert mark()[0][0] == marked
    assert mark() == [(7, "records")]
    database.rows("UPDATE session SET invalidated_at = NULL, processed_until = 7, collection = 'clean'")
    invalidate(database.db, number, 7, "sleep", 0)
    assert mark() == [(None, "records")]
    invalidate(database.db, number, 8, "sleep", 0)
    assert mark() == [(8, "sleep")]
