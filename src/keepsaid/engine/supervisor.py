"""The supervisor: recovers, keeps every service running until the stop, and warns of a growing backlog."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence

from keepsaid.domain.commits import Tell
from keepsaid.domain.process import Relinquish
from keepsaid.engine.caretakers import Rescuer
from keepsaid.engine.workers import Workers
from keepsaid.errors import KeepsaidError, StoreBroken
from keepsaid.pipeline import leasing, outbox, runner
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import Store
from keepsaid.ports.store_views import Operations
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.engine")
_FAILED_WAIT_MS = 1_000
_BROKEN_WAIT_MS = 60_000


@frozen
class ServiceLoop:
    """A stage as a loop sees it.

    `work` does what there is to do and returns when to come again, wall milliseconds: 0 at once, None when
    only a hint or the poll interval can tell. `vital` says that nothing is kept any more when its store is
    broken; the others go on without what it does.
    """

    name: str
    work: Callable[[], Awaitable[int | None]]
    hint: asyncio.Event
    poll_ms: int = 5_000
    vital: bool = True


async def keep_going(stage: ServiceLoop, clock: Clock, broken: Callable[[StoreBroken], None]) -> None:
    """Run a stage until cancelled; an error is logged and waited out, a broken disk ends it."""
    while True:
        try:
            due = await stage.work()
            wait_ms = stage.poll_ms if due is None else max(0, min(stage.poll_ms, due - clock.due_ms()))
        except StoreBroken as error:
            if stage.vital:
                broken(error)
                return
            _log.error("stage %s: %s", stage.name, error.what, extra={"code": error.code})
            wait_ms = _BROKEN_WAIT_MS
        except KeepsaidError as error:
            _log.warning("stage %s: %s", stage.name, error.what, extra={"code": error.code})
            wait_ms = _FAILED_WAIT_MS
        except Exception as error:  # noqa: BLE001  # guard: engine loop - one bad item must not stop a stage
            _log.error("stage %s failed", stage.name, exc_info=error)
            wait_ms = _FAILED_WAIT_MS
        if _cancelled():
            return
        await clock.wait(stage.hint, wait_ms)


def _cancelled() -> bool:
    """Whether the loop was cancelled, although another exception arrived: a gather may raise a failure instead."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


_backlog_log = logging.getLogger("keepsaid.buffer")
CODE = "KS-BACKLOG"
TOPIC = "buffer.backlog"
_CALM = 0.8
"""A warning is given again only after what it is about fell below this part of its limit."""


@frozen
class BacklogLimits:
    """How many messages may wait, and how long the oldest of them, in milliseconds."""

    count: int = 10_000
    age_ms: int = 600_000


class BacklogMonitor:
    """Measures what waits; each limit is warned of in the log and the journal when it is crossed."""

    def __init__(self, store: Store, clock: Clock, marks: BacklogLimits) -> None:
        self._store = store
        self._clock = clock
        self._limits = {"count": marks.count, "age": marks.age_ms}
        self._above: set[str] = set()

    async def work(self) -> None:
        """Measure once."""
        backlog, now = await self._store.backlog(), self._clock.now_ms()
        age = 0 if backlog.oldest_at is None else max(0, now - backlog.oldest_at)
        for what, found in (("count", backlog.waiting), ("age", age)):
            limit = self._limits[what]
            if found < _CALM * limit:
                self._above.discard(what)
            elif found >= limit and what not in self._above:
                payload = {"what": what, "waiting": backlog.waiting, "oldest_age_ms": age, "limit": limit}
                await self._store.apply(Tell(TOPIC, json.dumps(payload), now))
                self._above.add(what)
                counts = (backlog.waiting, age / 1_000)
                _backlog_log.warning("%d messages wait, the oldest for %d s", *counts, extra={"code": CODE})


_RESCUE_MS = 10_000


@frozen
class SupervisedServices:
    """The services that the supervisor runs; without `workers`, batches wait for another process to claim them.

    `life` is that of this process, and says when another one died that shares the store.
    """

    flow: runner.MessagePipeline
    rescuer: Rescuer
    post: outbox.OutboxSender
    life: leasing.ProcessAge
    workers: Workers | None = None


@frozen
class Recovered:
    """What a start found: replies in doubt and batches that died."""

    doubted: int
    dead: tuple[int, ...]


class Supervisor:
    """Starts, watches and stops the stages."""

    def __init__(self, crew: SupervisedServices, operations: Operations, clock: Clock, owner: str) -> None:
        self.broken: asyncio.Future[StoreBroken] = asyncio.get_running_loop().create_future()
        self._crew = crew
        self._operations = operations
        self._clock = clock
        self._owner = owner
        self._tasks: list[asyncio.Task[None]] = []
        self.leads = False

    async def start(self, also: Sequence[ServiceLoop] = ()) -> Recovered:
        """Recover what a dead process left, then start the stages that every process has, and those given."""
        crew, hints = self._crew, self._crew.flow.hints
        recovered = await self._recover()
        if crew.workers is not None:
            also = (ServiceLoop("work", crew.workers.claim, hints.work), *also)
        self._begin(
            ServiceLoop("route", crew.flow.route, hints.route),
            ServiceLoop("rescue", self._rescue, crew.life.lapsed, poll_ms=_RESCUE_MS),
            *also,
        )
        return recovered

    async def _recover(self) -> Recovered:
        dead = await self._crew.rescuer.recover()
        return Recovered(await self._crew.post.recover(), dead)

    def lead(self, stages: Sequence[ServiceLoop]) -> None:
        """Start the stages that one process has: what sends replies, and those given."""
        crew, self.leads = self._crew, True
        self._begin(ServiceLoop("deliver", lambda: crew.flow.deliver(crew.post), crew.flow.hints.deliver), *stages)

    def _begin(self, *stages: ServiceLoop) -> None:
        self._tasks += [
            asyncio.create_task(keep_going(stage, self._clock, self._on_broken), name=f"stage-{stage.name}")
            for stage in stages
        ]

    async def _rescue(self) -> None:
        """Queue again what nobody works on: of processes that died since, and of leases that ran out."""
        crew, hints = self._crew, self._crew.flow.hints
        if crew.life.take_lapsed():
            await self._recover()
            for hint in (hints.work, hints.deliver, *hints.of_tasks.values(), crew.life.hint):
                hint.set()
        if await crew.rescuer.rescue():
            hints.work.set()

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
