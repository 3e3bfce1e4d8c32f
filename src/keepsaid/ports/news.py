"""News of memory, as whoever tells of it needs it."""

from __future__ import annotations

import asyncio
from typing import Protocol

from keepsaid.domain.news import News


class MemoryNews(Protocol):
    """What happened to memories and was not told yet."""

    @property
    def hint(self) -> asyncio.Event:
        """Set when there may be more."""
        ...

    async def waiting(self, limit: int) -> tuple[News, ...]:
        """The oldest news that is kept; of what is forgotten there is none, but in its place."""
        ...

    async def told(self, until: int) -> None:
        """Keep news up to this number no longer."""
        ...
