"""Subscribers: the dispatcher, and a loop for each who is told, so that one that hangs holds up nobody else."""

from __future__ import annotations

import asyncio
import logging

from keepsaid.domain.event import Unsubscribe
from keepsaid.engine.loops import Stage, keep_going
from keepsaid.engine.subscriber import Subscriber
from keepsaid.errors import StoreBroken
from keepsaid.events.bell import Bell
from keepsaid.events.dispatcher import Dispatcher
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import Operations
from keepsaid.ports.store_views import JournalView

_log = logging.getLogger("keepsaid.events")
_LOOK_MS = 1_000


class Subscribers:
    """All who are told here. With nobody to tell, nothing is done.

    `happened` rings when something may have been told, `bell` when somebody who subscribed has deliveries.
    """

    def __init__(self, operations: Operations, journal: JournalView, clock: Clock) -> None:
        self.bell = Bell()
        self.happened = Bell()
        self._hint = journal.hint
        self._operations = operations
        self._journal = journal
        self._clock = clock
        self._dispatcher = Dispatcher(operations, clock, self.bell)
        self._loops: dict[str, tuple[Subscriber, asyncio.Task[None]]] = {}
        self._anybody: bool | None = None

    async def add(self, subscriber: Subscriber, topics: tuple[str, ...], *, from_start: bool = False) -> None:
        """Tell somebody of these topics from now on; who has the same name is told no more by this process."""
        await self._end(subscriber.name)
        await subscriber.subscribe(topics, from_start=from_start)
        self._anybody = True
        loop = asyncio.create_task(self._tell(subscriber), name=f"tell-{subscriber.name}")
        self._loops[subscriber.name] = subscriber, loop
        self._hint.set()

    async def remove(self, name: str) -> bool:
        """Tell somebody of nothing any more, and drop what was on its way; False when nobody has this name."""
        await self._end(name)
        return await self._operations.apply(Unsubscribe(name))

    async def work(self) -> int | None:
        """Make deliveries of what was told, for those who are here and those who may come back.

        Those who wait for something to happen are woken first, whoever subscribed.
        """
        self.happened.ring()
        if self._anybody is None:
            self._anybody = bool(await self._journal.subscribers())
        return await self._dispatcher.work() if self._anybody else None

    async def stop(self) -> None:
        """Tell nobody any more; what was not told to its end is told again by the next start."""
        await asyncio.gather(*(self._end(name) for name in list(self._loops)))

    async def _tell(self, subscriber: Subscriber) -> None:
        with self.bell.listening() as rung:
            stage = Stage(f"tell {subscriber.name}", subscriber.work, rung, poll_ms=_LOOK_MS, vital=False)
            await keep_going(stage, self._clock, self._broken)

    def _broken(self, error: StoreBroken) -> None:
        _log.error("nobody is told any more: %s", error.what, extra={"code": error.code})

    async def _end(self, name: str) -> None:
        ended = self._loops.pop(name, None)
        if ended is not None:
            subscriber, loop = ended
            await subscriber.stop()
            loop.cancel()
            await asyncio.gather(loop, return_exceptions=True)
