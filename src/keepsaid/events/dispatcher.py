"""The dispatcher: turns lines of the journal into deliveries, and wakes whoever waits for one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from keepsaid.domain.event import Distribute, Event, TellNews
from keepsaid.ports import memory_maintenance, runtime, store_views
from keepsaid.ports.runtime import Clock


class EventNotifier:
    """Wakes coroutines that wait for an event: each listener has its own `asyncio.Event`."""

    def __init__(self) -> None:
        self._listeners: set[asyncio.Event] = set()

    @contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """An event that `notify_all` sets while the block runs."""
        listener = asyncio.Event()
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    def notify_all(self) -> None:
        """Set the events of all listeners."""
        for listener in self._listeners:
            listener.set()


_LOOK_MS = 5_000
"""Milliseconds after which a waiting coroutine reads the journal, in case a notification was missed."""


async def wait_for(
    journal: store_views.JournalView, clock: Clock, bell: EventNotifier, wanted: tuple[str, str, int], timeout_ms: float
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


async def dispatch(operations: store_views.Operations, clock: Clock, bell: EventNotifier) -> int | None:
    """Make deliveries of the next lines, and ring for those who wait for them; at once again while there are more."""
    if await operations.apply(Distribute(clock.now_ms())):
        bell.notify_all()
        return 0
    return None


_AT_ONCE = 256


class NewsPublisher:
    """Publishes changes of the memory store as events."""

    def __init__(self, news: memory_maintenance.MemoryNews, operations: store_views.Operations, clock: Clock) -> None:
        self._news = news
        self._operations = operations
        self._clock = clock

    async def work(self) -> int | None:
        """Tell what waits; at once again while there is more."""
        if not (waiting := await self._news.waiting(_AT_ONCE)):
            return None
        await self._operations.apply(TellNews(waiting, self._clock.now_ms()))
        runtime.point("news.told")
        await self._news.drop_news(waiting[-1].n)
        return 0
