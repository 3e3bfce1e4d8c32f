"""The notifier: wakes coroutines that wait for an event, also for one that happened before a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from keepsaid.domain.event import Event
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store_views import JournalView


class Bell:
    """Whoever listens has an event of his own, which every ring sets."""

    def __init__(self) -> None:
        self._ears: set[asyncio.Event] = set()

    @contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """An event that is set by each ring while somebody listens."""
        ear = asyncio.Event()
        self._ears.add(ear)
        try:
            yield ear
        finally:
            self._ears.discard(ear)

    def ring(self) -> None:
        """Wake them all."""
        for ear in self._ears:
            ear.set()


_LOOK_MS = 5_000
"""Should a ring be missed."""


async def wait_for(
    journal: JournalView, clock: Clock, bell: Bell, wanted: tuple[str, str, int], timeout_ms: float
) -> Event | None:
    """The first event of a topic about something after an event (`wanted`), as soon as there is one.

    None when there is none in time. Whoever asks again after a restart with the same `wanted` misses nothing.
    """
    topic, correlation_id, after = wanted
    until = clock.monotonic_ms() + timeout_ms
    with bell.listening() as rung:
        while True:
            found = await journal.happened(topic, correlation_id, after)
            left = until - clock.monotonic_ms()
            if found is not None or left <= 0:
                return found
            await clock.wait(rung, min(left, _LOOK_MS))
