"""The net: what lies between the processes and the world. It has the seed's chance, the time, and the weather."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from contextvars import Context
from typing import Any, TypeVar

from keepsaid_testkit.simulator.clock import Wall
from keepsaid_testkit.simulator.fault_profile import FaultProfile, draw_profile
from keepsaid_testkit.simulator.ledger import Trace
from keepsaid_testkit.simulator.loop import VirtualLoop

T = TypeVar("T")


class Net:
    """What everything outside shares. `calm` says that nothing goes wrong any more."""

    def __init__(self, loop: VirtualLoop, seed: int) -> None:
        self.loop = loop
        self.chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self.wall = Wall(loop.time)
        self.trace = Trace(self.wall.passed_ms)
        self.weather: FaultProfile = draw_profile(self.chance, random.Random(-1 - seed))  # noqa: S311 - the same
        self.calm = False

    def happens(self, share: float) -> bool:
        """Whether something that goes wrong with this share goes wrong now."""
        return not self.calm and share > 0 and self.chance.random() < share

    async def pause(self, least_s: float, most_s: float) -> None:
        """Wait for some time."""
        await asyncio.sleep(self.chance.uniform(least_s, most_s))

    def outside(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine that no process owns: it goes on when its caller dies."""
        task = self.loop.create_task(work, context=Context())
        task.add_done_callback(_retrieve_exception, context=Context())
        return task

    async def remote(self, work: Coroutine[Any, Any, T]) -> T:
        """Ask somebody outside; who gives up or dies does not stop them."""
        return await asyncio.shield(self.outside(work))


def _retrieve_exception(done: asyncio.Task[Any]) -> None:
    if not done.cancelled():
        done.exception()
