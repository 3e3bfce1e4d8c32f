"""Pacing: how a caretaker leaves the store to others between its steps, by how long they took (design: section 4.3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from keepsaid.ports.runtime import Clock

_LEAST_MS, _SHARE = 2.0, 1.5
"""So long at least others go first after a step, and so many times as long as it took."""


class Pacing:
    """Measures steps, and rests after each of them in proportion."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.took_ms = 0.0

    @contextmanager
    def step(self) -> Iterator[None]:
        """Measure what stands in the block; how long it took is `took_ms` then."""
        began = self._clock.monotonic_ms()
        try:
            yield
        finally:
            self.took_ms = self._clock.monotonic_ms() - began

    async def rest(self) -> None:
        """Leave everything to others, for as long as the last step asks."""
        await self._clock.wait(asyncio.Event(), max(_LEAST_MS, _SHARE * self.took_ms))


@asynccontextmanager
async def paced(pacing: Pacing | None) -> AsyncIterator[None]:
    """A step, and a rest after it; without one the step alone."""
    if pacing is None:
        yield
        return
    with pacing.step():
        yield
    await pacing.rest()


Enough = Callable[[], bool]
"""Whether to leave off, asked between two steps."""
