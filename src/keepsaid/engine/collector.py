"""The collector: every half minute the sessions that are marked, oldest first; and at night those nobody has read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import tzinfo

from keepsaid.domain import session, timing
from keepsaid.errors import KeepsaidError, StoreError
from keepsaid.memory.extraction import Collection
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import Store
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.collector")
_DAY_MS = 86_400_000


@frozen
class ExtractionPace:
    """How many passages a tick reads, and how many calls and tokens of a model a day may cost."""

    passages: int = 10
    calls_a_day: int = 2_000
    tokens_a_day: int = 4_000_000


class Collector:
    """Reads what is due, a few passages at a tick. A session that fails waits by itself; an outage ends the tick.

    The budget is one of each day (UTC), however often it is started: a model that costs more is asked the day after.
    """

    def __init__(self, collection: Collection, pace: ExtractionPace | None = None) -> None:
        self.hint = asyncio.Event()
        self._collection = collection
        self._pace = pace or ExtractionPace()
        self._warned = False

    async def work(self) -> int | None:
        """One tick."""
        await self.tick()
        return None

    async def tick(self) -> int:
        """Read up to ten passages; returns how many were read to their end."""
        read = 0
        for _ in range(self._pace.passages):
            if not await self._within_budget():
                break
            if (claimed := await self._collection.claim()) is None:
                break
            try:
                left = await self._collection.read(claimed)
            except StoreError:
                raise
            except KeepsaidError as error:
                _log.warning("session not collected: %s", error.what, extra={"code": error.code})
                if await self._collection.failed(claimed, error):
                    break
            except Exception as error:  # noqa: BLE001  # guard: engine loop - one session must not stop the others
                _log.error("session not collected", exc_info=error)
                await self._collection.failed(claimed, error)
            else:
                read += left is not session.Left.REFUSED
        return read

    async def _within_budget(self) -> bool:
        pace, spent = self._pace, self._collection.spending
        if await spent.look():
            self._warned = False
        if spent.calls < pace.calls_a_day and spent.tokens < pace.tokens_a_day:
            return True
        if not self._warned:
            _log.warning("nothing is collected until tomorrow: %d calls, %d tokens", spent.calls, spent.tokens)
            self._warned = True
        return False


@frozen
class UnreadSessions:
    """At night, every session with unread records is marked, whatever it waits for."""

    store: Store
    collector: Collector
    clock: Clock
    thorough: bool = field(kw_only=True)

    async def night(self) -> None:
        """Mark them, a hundred at a time, and wake the collector."""
        after: int | None = 0
        while after is not None:
            unread = session.MarkUnprocessed(self.clock.due_ms(), after=after, thorough=self.thorough)
            _, after = await self.store.apply(unread)
        self.collector.hint.set()


@dataclass(slots=True, eq=False)
class Nightly:
    """Once a day, at an hour of the place it is set to; at once where the last time is more than a day ago.

    What `do` raises is raised; then it is done at the next occasion.
    """

    store: Store
    clock: Clock
    do: Callable[[], Awaitable[None]]
    hour: int
    zone: tzinfo
    _next_ms: int | None = field(default=None, init=False)

    async def work(self) -> int | None:
        """Do the night's work when its time has come; returns when that is."""
        now = self.clock.due_ms()
        if self._next_ms is None:
            last = await self.store.marked_at()
            self._next_ms = now if last is None or now - last >= _DAY_MS else self._after(max(last, now - _DAY_MS))
        if now >= self._next_ms:
            await self.do()
            self._next_ms = self._after(now)
        return self._next_ms

    def _after(self, ms: int) -> int:
        return timing.next_daily(ms, self.hour, self.zone)
