"""The dispatcher: turns lines of the journal into deliveries, and changes of memory into lines of the journal."""

from __future__ import annotations

from keepsaid.domain.event import Distribute, TellNews
from keepsaid.events.notifier import Bell
from keepsaid.ports.failpoints import point
from keepsaid.ports.memory_maintenance import MemoryNews
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store_views import Operations


class Dispatcher:
    """Makes deliveries, a piece at a time, and rings for those who wait for them."""

    def __init__(self, operations: Operations, clock: Clock, bell: Bell) -> None:
        self._operations = operations
        self._clock = clock
        self._bell = bell

    async def work(self) -> int | None:
        """Read the next lines; at once again while there are more."""
        if await self._operations.apply(Distribute(self._clock.now_ms())):
            self._bell.ring()
            return 0
        return None


_AT_ONCE = 256


class Newsteller:
    """Follows the memory store."""

    def __init__(self, news: MemoryNews, operations: Operations, clock: Clock) -> None:
        self._news = news
        self._operations = operations
        self._clock = clock

    async def work(self) -> int | None:
        """Tell what waits; at once again while there is more."""
        waiting = await self._news.waiting(_AT_ONCE)
        if not waiting:
            return None
        await self._operations.apply(TellNews(waiting, self._clock.now_ms()))
        point("news.told")
        await self._news.told(waiting[-1].n)
        return 0
