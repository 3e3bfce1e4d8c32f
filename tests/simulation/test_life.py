"""Virtual time and death: what the simulator itself rests on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from itertools import count
from typing import Any

import pytest

from keepsaid.adapters.system.machine import SystemIds
from keepsaid_testkit.simulator.clock import SimClock, Wall
from keepsaid_testkit.simulator.fault_profile import YEAR_MS
from keepsaid_testkit.simulator.loop import Reset, SimulatedLife, Stuck, VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    one = VirtualLoop()
    asyncio.set_event_loop(one)
    yield one
    asyncio.set_event_loop(None)
    one.close()


def run(loop: VirtualLoop, work: Coroutine[Any, Any, None]) -> None:
    loop.run_until_complete(work)


def test_an_hour_passes_at_once(loop: VirtualLoop) -> None:
    async def wait() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3_600):
                await asyncio.sleep(4_000)

    run(loop, wait())
    assert loop.time() == 3_600


def test_nothing_left_to_happen_is_said(loop: VirtualLoop) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck, match="nothing is left"):
        run(loop, wait())


def test_a_loop_that_spins_is_said(loop: VirtualLoop) -> None:
    async def spin() -> None:
        for _ in count():
            await asyncio.sleep(0)

    with pytest.raises(Stuck, match="spins"):
        run(loop, spin())


def test_after_its_death_nothing_of_a_life_runs(loop: VirtualLoop) -> None:
    ticks: list[float] = []

    async def tick() -> None:
        for _ in count():
            await asyncio.sleep(1)
            ticks.append(loop.time())

    async def watch() -> None:
        life = SimulatedLife(loop, "one")
        life.run(tick())
        question = life.ask(asyncio.sleep(100))
        await asyncio.sleep(2.5)
        life.die()
        with pytest.raises(Reset):
            await question
        await asyncio.sleep(10)

    run(loop, watch())
    assert ticks == [1, 2]


def test_a_suspended_life_goes_on_when_it_is_woken(loop: VirtualLoop) -> None:
    ticks: list[float] = []

    async def tick() -> None:
        for _ in range(3):
            await asyncio.sleep(1)
            ticks.append(loop.time())

    async def watch() -> None:
        life = SimulatedLife(loop, "one")
        life.run(tick())
        await asyncio.sleep(1.5)
        life.suspend()
        await asyncio.sleep(10)
        life.wake()
        await asyncio.sleep(10)

    run(loop, watch())
    assert ticks == [1, 11.5, 12.5]


def test_a_wall_clock_that_is_set_leaves_steady_time(loop: VirtualLoop) -> None:
    wall = Wall(loop.time)
    clock = SimClock(wall)
    began = clock.now_ms(), clock.steady_ms()
    wall.jump(-3_600_000)
    assert (clock.now_ms(), clock.steady_ms()) == (began[0] - 3_600_000, began[1])


def test_what_waits_goes_by_the_latest_time_there_was(loop: VirtualLoop) -> None:
    wall = Wall(loop.time)
    clock = SimClock(wall)
    wall.jump(10 * YEAR_MS)
    due = clock.due_ms()
    wall.jump(-10 * YEAR_MS)
    run(loop, asyncio.sleep(1))
    assert clock.due_ms() == due + 1_000


def test_ids_go_on_after_those_of_a_former_process(loop: VirtualLoop) -> None:
    wall = Wall(loop.time)
    last = SystemIds(wall.now_ms, lambda _: 511).next()
    wall.jump(-3_600_000)
    ids = SystemIds(wall.now_ms, lambda _: 0)
    assert ids.next() < last
    ids.follow(last)
    numbers = [ids.next() for _ in range(10_000)]
    assert numbers[0] > last
    assert numbers == sorted(set(numbers))
