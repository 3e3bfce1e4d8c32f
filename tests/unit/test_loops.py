"""Loops: a stage goes on after errors, and ends when it is cancelled, whatever else happens just then."""

from __future__ import annotations

import asyncio

from tests.waits import HANG_S

from keepsaid.engine.supervisor import ServiceLoop, keep_going
from keepsaid.errors import StoreBroken, StoreFull
from keepsaid.testing.clock import VirtualClock


def _broken(error: StoreBroken) -> None:
    raise AssertionError(error.what)


async def test_a_stage_whose_part_fails_while_it_is_cancelled_ends() -> None:
    """A gathering that is cancelled while a part of it fails raises what the part raised."""
    begun, rounds = asyncio.Event(), 0

    async def part() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise StoreFull("no space left") from None

    async def work() -> None:
        nonlocal rounds
        rounds += 1
        await asyncio.gather(part(), part())

    stage = ServiceLoop("route", work, asyncio.Event())
    loop = asyncio.create_task(keep_going(stage, VirtualClock(), _broken))
    await begun.wait()
    loop.cancel()
    async with asyncio.timeout(HANG_S):
        await asyncio.gather(loop, return_exceptions=True)
    assert rounds == 1


async def test_an_error_is_waited_out_and_the_stage_goes_on() -> None:
    clock, again = VirtualClock(), asyncio.Event()
    rounds = 0

    async def work() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            raise StoreFull("no space left")
        again.set()

    loop = asyncio.create_task(keep_going(ServiceLoop("route", work, asyncio.Event()), clock, _broken))
    await clock.advance(2_000)
    async with asyncio.timeout(HANG_S):
        await again.wait()
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)
    assert rounds == 2
