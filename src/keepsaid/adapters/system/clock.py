"""The machine's clock, identifiers made from it, and random codes that a person types."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable

from keepsaid.domain.ids import MAX_ID

_COUNTER_BITS = 12
_NODE_BITS = 9
_TIME_MASK = MAX_ID >> (_COUNTER_BITS + _NODE_BITS)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class SystemClock:
    """Wall time and waiting."""

    def __init__(self) -> None:
        self._began = self._ahead = (time.time_ns() - time.monotonic_ns()) // 1_000_000

    def now_ms(self) -> int:
        return _wall_ms()

    def steady_ms(self) -> int:
        return self._began + time.monotonic_ns() // 1_000_000

    def due_ms(self) -> int:
        self._ahead = max(self._ahead, self.now_ms() - int(self.monotonic_ms()))
        return self._ahead + int(self.monotonic_ms())

    def monotonic_ms(self) -> float:
        return time.monotonic_ns() / 1_000_000

    async def wait(self, hint: asyncio.Event, timeout_ms: float) -> None:
        if timeout_ms <= 0:
            await asyncio.sleep(0)
        elif not hint.is_set():
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    await hint.wait()
            except TimeoutError:
                return
        hint.clear()


class SystemIds:
    """63-bit numbers from milliseconds, a random node and a counter; they grow even when the clock goes back.

    `now_ms` tells the wall time, `chance` a number of so many random bits: the machine's, unless a test says otherwise.
    """

    def __init__(self, now_ms: Callable[[], int] = _wall_ms, chance: Callable[[int], int] = secrets.randbits) -> None:
        self._now_ms = now_ms
        self._node = chance(_NODE_BITS)
        self._last_ms = 0
        self._counter = 0

    def next(self) -> int:
        now = self._now_ms()
        if now > self._last_ms:
            self._last_ms, self._counter = now, 0
        else:
            self._counter += 1
            if self._counter >> _COUNTER_BITS:
                self._last_ms, self._counter = self._last_ms + 1, 0
        stamp = self._last_ms & _TIME_MASK
        return ((stamp << _COUNTER_BITS | self._counter) << _NODE_BITS) | self._node

    def follow(self, number: int) -> None:
        stamp, counter = divmod(number >> _NODE_BITS, 1 << _COUNTER_BITS)
        self._last_ms, self._counter = max((self._last_ms, self._counter), (stamp, counter))


_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
LENGTH = 8


def one_time_code() -> str:
    """A new code: 40 bits, in letters that are not mistaken for one another."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(LENGTH))
