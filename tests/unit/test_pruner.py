"""The pruner: daily, in small pieces, and never by a clock that was set."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.sqlite.stores import open_operations
from keepsaid.domain.commits import BeginPruning, EpisodesKept, IntakeResult, MarkReplyShown, Receive
from keepsaid.domain.message import ProviderMarks
from keepsaid.domain.retention import DAY_MS, HOUR_MS, RetentionTerms
from keepsaid.domain.views import MessageFilter
from keepsaid.engine.caretakers import Pruner
from keepsaid.testing.builders import AT_ONCE, arrival, said
from keepsaid.testing.clock import VirtualClock
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

START = 1_750_000_000_000
TERMS = RetentionTerms(7 * DAY_MS, 30 * DAY_MS)
YEAR_MS = 365 * DAY_MS


@pytest.fixture(params=["memory", "file"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ContractStore]:
    """A new, empty store."""
    kept = InMemoryOperations() if request.param == "memory" else await open_operations(tmp_path / "buffer.db")
    yield kept
    await kept.close()


async def settled(road: StoreDriver, at: int, text: str = "hello", key: str | None = None) -> None:
    """A message whose road is at its end."""
    queued = await road.queue(said(text, marks=ProviderMarks(key)), at)
    await road.store.apply(MarkReplyShown(await road.answer(await road.claim_one(at), at=at), at))
    await road.store.apply(EpisodesKept((queued.batch_id,)))


async def kept(store: ContractStore) -> int:
    return len(await store.find(MessageFilter(limit=1_000)))


async def a_day_of(pruner: Pruner, clock: VirtualClock, ms: int = DAY_MS) -> None:
    """Let time pass, and the stage do what is due."""
    await clock.advance(ms)
    for _ in range(100):
        if await pruner.work() is None:
            return
    raise AssertionError("the run does not end")


async def test_the_first_run_is_an_hour_after_the_start_and_then_daily(store: ContractStore) -> None:
    clock, road = VirtualClock(START), StoreDriver(store)
    pruner = Pruner(store, clock, TERMS)
    for age in (8, 6):
        await settled(road, START - age * DAY_MS)
    await a_day_of(pruner, clock, HOUR_MS - 1)
    assert await kept(store) == 2
    await a_day_of(pruner, clock, 1)
    assert await kept(store) == 1
    await a_day_of(pruner, clock, DAY_MS - 1)
    assert await kept(store) == 1
    await a_day_of(pruner, clock, 1)
    assert await kept(store) == 0
    assert [run.messages for run in (await store.prune_history()).runs] == [1, 1]


async def test_records_go_after_their_own_time(store: ContractStore) -> None:
    clock, road = VirtualClock(START), StoreDriver(store)
    pruner = Pruner(store, clock, TERMS)
    await settled(road, START - 29 * DAY_MS)
    turn_id = await store.last_turn(None)
    assert turn_id is not None
    await a_day_of(pruner, clock, HOUR_MS)
    assert await kept(store) == 0
    assert await store.turn(turn_id) is not None
    await a_day_of(pruner, clock)
    assert await store.turn(turn_id) is None


@pytest.mark.parametrize("jump", [-HOUR_MS, DAY_MS, 10 * YEAR_MS, -10 * YEAR_MS])
async def test_after_a_jump_in_this_process_nothing_is_pruned(store: ContractStore, jump: int) -> None:
    clock, road = VirtualClock(START), StoreDriver(store)
    pruner = Pruner(store, clock, TERMS)
    await settled(road, START - 8 * DAY_MS)
    clock.jump(jump)
    for _ in range(3):
        await a_day_of(pruner, clock)
    assert await kept(store) == 1
    assert (await store.prune_history()).runs == ()
    clock.jump(-jump)
    await a_day_of(pruner, clock)
    assert await kept(store) == 0


async def test_a_small_correction_harms_nothing(store: ContractStore) -> None:
    clock, road = VirtualClock(START), StoreDriver(store)
    pruner = Pruner(store, clock, TERMS)
    await settled(road, START - 8 * DAY_MS)
    clock.jump(-HOUR_MS + 1)
    await a_day_of(pruner, clock)
    assert await kept(store) == 0


@pytest.mark.parametrize("jump", [10 * YEAR_MS, 31 * DAY_MS, -10 * YEAR_MS, -2 * HOUR_MS])
async def test_a_start_with_another_clock_only_records_the_run(store: ContractStore, jump: int) -> None:
    road = StoreDriver(store)
    await settled(road, START - 8 * DAY_MS)
    await store.apply(BeginPruning(START))
    clock = VirtualClock(START + jump)
    pruner = Pruner(store, clock, TERMS)
    await a_day_of(pruner, clock, HOUR_MS)
    assert await kept(store) == 1
    assert len((await store.prune_history()).runs) == 2
    await a_day_of(pruner, clock)
    assert await kept(store) == (jump < -DAY_MS)


async def test_a_clock_far_ahead_of_the_oldest_message_is_doubted_without_a_run(store: ContractStore) -> None:
    await settled(StoreDriver(store), START)
    pruner = Pruner(store, VirtualClock(START + 10 * YEAR_MS), TERMS)
    run = await pruner.begin()
    assert run.over
    assert run.refusal is not None
    assert "30 days after the oldest message" in run.refusal


async def test_keys_go_when_they_have_a_limit(store: ContractStore) -> None:
    clock, road = VirtualClock(START), StoreDriver(store)
    pruner = Pruner(store, clock, RetentionTerms(DAY_MS, DAY_MS, 10 * DAY_MS))
    await settled(road, START, key="k")
    for _ in range(10):
        await a_day_of(pruner, clock)
        assert (await road.receive(said(marks=ProviderMarks("k")))).intake is IntakeResult.DUPLICATE
    for _ in range(2):
        await a_day_of(pruner, clock)
    assert (await road.receive(said(marks=ProviderMarks("k")))).intake is IntakeResult.STORED


async def test_after_a_jump_of_the_clock_keys_count_anew(store: ContractStore) -> None:
    road = StoreDriver(store)
    terms = RetentionTerms(DAY_MS, DAY_MS, 10 * DAY_MS)
    await store.apply(BeginPruning(START - 10 * YEAR_MS))
    await settled(road, START, key="k")
    await store.apply(BeginPruning(START - 10 * YEAR_MS + DAY_MS))
    clock = VirtualClock(START + 2 * DAY_MS)
    pruner = Pruner(store, clock, terms)
    for _ in range(5):
        await a_day_of(pruner, clock)
    assert await kept(store) == 0
    assert (await road.receive(said(marks=ProviderMarks("k")))).intake is IntakeResult.DUPLICATE


async def test_a_hundred_copies_make_one_turn_also_after_pruning_and_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "buffer.db"
    copies = 100
    numbers = iter(range(1_000_000, 2_000_000))

    async def send(to: ContractStore, left: list[int]) -> list[IntakeResult]:
        told = []
        while left:
            left.pop()
            told.append(
                (
                    await to.apply(Receive(arrival(next(numbers), said("once", marks=ProviderMarks("k"))), AT_ONCE))
                ).intake
            )
        return told

    async def all_at_once(to: ContractStore) -> list[IntakeResult]:
        left = list(range(copies))
        return [intake for told in await asyncio.gather(*(send(to, left) for _ in range(16))) for intake in told]

    first = await open_operations(file)
    assert sorted(await all_at_once(first)) == [IntakeResult.DUPLICATE] * (copies - 1) + [IntakeResult.STORED]
    road = StoreDriver(first)
    batch_id = await road.route(said().lane)
    await first.apply(MarkReplyShown(await road.answer(await road.claim_one()), 0))
    await first.apply(EpisodesKept((batch_id,)))
    clock = VirtualClock(8 * DAY_MS)
    pruner = Pruner(first, clock, TERMS)
    await a_day_of(pruner, clock)
    assert await kept(first) == 0
    assert await all_at_once(first) == [IntakeResult.DUPLICATE] * copies
    await first.close()
    again = await open_operations(file)
    assert await all_at_once(again) == [IntakeResult.DUPLICATE] * copies
    assert (await again.overview()).turns == {"committed": 1}
    await again.close()
