"""News of memory becomes lines of the journal: told first, removed after, so that a crash between repeats nothing."""

from __future__ import annotations

from keepsaid.domain.news import TellNews
from keepsaid.ports.failpoints import point
from keepsaid.ports.memory_maintenance import MemoryNews
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import Operations

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
