"""The supervisor: recovers, then keeps every stage going until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from keepsaid.domain.commits import Relinquish
from keepsaid.engine.loops import Stage, keep_going
from keepsaid.engine.rescuer import Rescuer
from keepsaid.engine.workers import Workers
from keepsaid.errors import StoreBroken
from keepsaid.pipeline.flow import Flow
from keepsaid.pipeline.outbox import Post
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import Operations

_log = logging.getLogger("keepsaid.engine")
_RESCUE_MS = 10_000


@dataclass(frozen=True, slots=True)
class Crew:
    """Who does the work; without workers, batches wait for somebody else to claim them."""

    flow: Flow
    rescuer: Rescuer
    post: Post
    workers: Workers | None = None


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a start found: replies in doubt and batches that died."""

    doubted: int
    dead: tuple[int, ...]


class Supervisor:
    """Starts, watches and stops the stages."""

    def __init__(self, crew: Crew, operations: Operations, clock: Clock, owner: str) -> None:
        self.broken: asyncio.Future[StoreBroken] = asyncio.get_running_loop().create_future()
        self._crew = crew
        self._operations = operations
        self._clock = clock
        self._owner = owner
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, also: Sequence[Stage] = ()) -> Recovered:
        """Recover what a former process left, then start the stages and those given."""
        crew, hints = self._crew, self._crew.flow.hints
        recovered = Recovered(await crew.post.recover(), await crew.rescuer.recover())
        if crew.workers is not None:
            also = (Stage("work", crew.workers.claim, hints.work), *also)
        stages = (
            Stage("route", crew.flow.route, hints.route),
            Stage("deliver", lambda: crew.flow.deliver(crew.post), hints.deliver),
            Stage("rescue", self._rescue, asyncio.Event(), poll_ms=_RESCUE_MS),
            *also,
        )
        self._tasks = [
            asyncio.create_task(keep_going(stage, self._clock, self._on_broken), name=f"stage-{stage.name}")
            for stage in stages
        ]
        return recovered

    async def _rescue(self) -> None:
        if await self._crew.rescuer.rescue():
            self._crew.flow.hints.work.set()

    def _on_broken(self, error: StoreBroken) -> None:
        _log.critical("the store is broken: %s", error.what, extra={"code": error.code})
        if not self.broken.done():
            self.broken.set_result(error)

    async def stop(self, patience_s: float) -> None:
        """No new claims; running turns end or return to the queue; the outbox stays as it is on disk."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        crew = self._crew
        ends = [crew.post.stop(patience_s), *([crew.workers.stop(patience_s)] if crew.workers is not None else [])]
        await asyncio.gather(*ends)
        if not self.broken.done():
            await self._operations.apply(Relinquish(self._owner, self._clock.now_ms()))
