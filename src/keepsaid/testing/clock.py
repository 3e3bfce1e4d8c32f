"""Clocks for tests: one on which time passes when the test says so, and only then, and one that runs fast."""

from __future__ import annotations

import asyncio
import heapq
import time
from contextlib import suppress
from itertools import count

_SETTLE_ROUNDS = 50


class VirtualClock:
    """A clock for tests. Starts at `start_ms` (milliseconds UTC) and stands still until `advance`."""

    def __init__(self, start_ms: int = 1_750_000_000_000) -> None:
        self._now = start_ms
        self._off = self._ahead = 0
        self._order = count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        """The virtual wall time."""
        return self._now + self._off

    def steady_ms(self) -> int:
        """The virtual time without the jumps of the wall clock."""
        return self._now

    def due_ms(self) -> int:
        """The latest virtual wall time, and what has passed since."""
        self._ahead = max(self._ahead, self._off)
        return self._now + self._ahead

    def monotonic_ms(self) -> float:
        """The steady time, as a float."""
        return float(self._now)

    def jump(self, ms: int) -> None:
        """Set the wall clock off by `ms`, waking nobody: a user changed it."""
        self._off += ms

    async def wait(self, hint: asyncio.Event, timeout_ms: float) -> None:
        """Return when the hint is set, and clear it, or once time has been advanced by the timeout."""
        if hint.is_set() or timeout_ms <= 0:
            hint.clear()
            await asyncio.sleep(0)
            return
        due: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self._now + int(timeout_ms), next(self._order), due))
        hinted = asyncio.ensure_future(hint.wait())
        try:
            await asyncio.wait((due, hinted), return_when=asyncio.FIRST_COMPLETED)
        finally:
            hinted.cancel()
            due.cancel()
        hint.clear()

    async def advance(self, ms: int) -> None:
        """Let `ms` pass: every waiter whose time comes runs, in order, and all that follows from it."""
        await settle()
        end = self._now + ms
        while self._waiting and self._waiting[0][0] <= end:
            at, _, due = heapq.heappop(self._waiting)
            if due.done():
                continue
            self._now = max(self._now, at)
            due.set_result(None)
            await settle()
        self._now = max(self._now, end)
        await settle()


class FastClock:
    """A clock on which `speed` seconds pass in one."""

    def __init__(self, speed: float = 50.0) -> None:
        self._speed = speed
        self._began = time.monotonic()
        self._ahead = 0

    def monotonic_ms(self) -> float:
        """The steady time."""
        return (time.monotonic() - self._began) * 1_000 * self._speed

    def now_ms(self) -> int:
        """The wall time."""
        return 1_750_000_000_000 + self._ahead + int(self.monotonic_ms())

    def steady_ms(self) -> int:
        """As `now_ms`."""
        return self.now_ms()

    def due_ms(self) -> int:
        """As `now_ms`."""
        return self.now_ms()

    def jump(self, ms: int) -> None:
        """Move the wall time on by `ms`; wakes nobody."""
        self._ahead += ms

    async def wait(self, hint: asyncio.Event, timeout_ms: float) -> None:
        """Return when the hint is set, and clear it, or after the timeout."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1_000 / self._speed):
                await hint.wait()
        hint.clear()


class CountingIds:
    """Identifiers 1, 2, 3, ..."""

    def __init__(self, first: int = 1) -> None:
        self._numbers = count(first)

    def next(self) -> int:
        """The next number."""
        return next(self._numbers)

    def follow(self, number: int) -> None:
        """Go on after this number, unless it is past already."""
        self._numbers = count(max(next(self._numbers), number + 1))


async def settle() -> None:
    """Let every coroutine that can run, run."""
    for _ in range(_SETTLE_ROUNDS):
        await asyncio.sleep(0)
