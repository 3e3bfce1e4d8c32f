"""Subscriptions: a loop for each subscriber of events; a failed delivery of an event is retried, then dead-lettered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from keepsaid.domain import event
from keepsaid.domain.batch import SURE_MS
from keepsaid.engine.supervisor import ServiceLoop, keep_going
from keepsaid.errors import StoreBroken
from keepsaid.events.dispatcher import EventNotifier, dispatch
from keepsaid.ports.runtime import Clock, Ids, StopToken, point
from keepsaid.ports.store import Store
from keepsaid.text.normal import cut, normalise
from keepsaid.values import frozen

Tell = Callable[[event.Event], Awaitable[object]]
"""Handles an event; raises when it fails."""

_log = logging.getLogger("keepsaid.events")
_TAKEN_MAX = 128
_SETTLE_MS = 100
"""What is done is written down at least so often."""

_QUICK_MS = 20
"""A slower subscriber receives fewer events at a time, so that few are left half done when the process ends."""

_HELD_MS = 2_000
"""A claimed delivery that has not begun after this time is released: the process may end during a slow delivery."""

_STOP_S = 1.0
_ERROR_CHARS_MAX = 500
_SPREAD = 1_000


@frozen
class DeliveryTerms:
    """How long one event may take, how often it is tried, and how long after a failure: doubled from one to the next.

    A quarter is added or taken away, so that what failed together is not tried together.
    """

    limit_ms: int = 60_000
    attempts_max: int = 8
    again_ms: int = 1_000
    again_ms_max: int = 600_000

    @property
    def lease_ms(self) -> int:
        """How long what was taken may be held before another process may take it: longer than two of them can take."""
        return 2 * self.limit_ms + 60_000

    def retry_delay_ms(self, attempt: int, delivery_id: int) -> int | None:
        """Return the milliseconds until the next attempt; None if this was the last."""
        if attempt >= self.attempts_max:
            return None
        wait_ms = min(self.again_ms * 2 ** (attempt - 1), self.again_ms_max)
        share = delivery_id * 7_919 % _SPREAD / _SPREAD
        return int(wait_ms * (0.75 + share / 2))


class Subscriber:
    """A subscriber; its own loop calls `work`, so that it delays only itself."""

    def __init__(
        self, name: str, tell: Tell, store: Store, clock: Clock, ids: Ids, terms: DeliveryTerms | None = None
    ) -> None:
        self.name = name
        self._tell = tell
        self._store = store
        self._clock = clock
        self._ids = ids
        self._terms = terms or DeliveryTerms()
        self._at_once = 1
        self._fence = 0
        self._settled: list[event.DeliveryResult] = []
        self._halt = StopToken()
        self._idle = asyncio.Event()
        self._idle.set()

    async def subscribe(self, topics: tuple[str, ...], *, from_start: bool) -> None:
        """Be known, and take up what a former process left."""
        await self._store.apply(event.Subscribe(self.name, topics, self._clock.now_ms(), from_start))

    async def work(self) -> int | None:
        """Deliver the due events; returns when to call again: at once while there is more."""
        if self._halt.is_set:
            return None
        self._idle.clear()
        try:
            return await self._deliver_due()
        finally:
            self._idle.set()

    async def stop(self) -> None:
        """Stop deliveries; a running delivery gets a moment to end."""
        self._halt.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                await self._idle.wait()

    async def _deliver_due(self) -> int | None:
        clock, terms = self._clock, self._terms
        times, asked_at = (clock.due_ms(), clock.steady_ms()), clock.monotonic_ms()
        asked = event.TakeDeliveries(
            self.name, self._ids.next(), *times, terms.lease_ms, terms.attempts_max, self._at_once
        )
        await self._settle()
        if not (taken := await self._store.apply(asked)):
            # what is due already waits for something before it
            return await self._store.journal.next_delivery(self.name, clock.due_ms())
        self._fence = taken[0].fence
        began = since = clock.monotonic_ms()
        # Who was frozen for so long while it waited has been taken for dead, and others deliver what it took.
        is_late = began - asked_at > SURE_MS
        count = 0
        try:
            for delivery in taken:
                if is_late or self._halt.is_set or clock.monotonic_ms() - began > _HELD_MS:
                    break
                self._settled.append(await self._deliver(delivery))
                count += 1
                if clock.monotonic_ms() - since > _SETTLE_MS:
                    await self._settle()
                    since = clock.monotonic_ms()
        finally:
            self._settled += [event.DeliveryResult(one.id, tried=False) for one in taken[count:]]
        await self._settle()
        each_ms = (clock.monotonic_ms() - began) / max(1, count)
        self._at_once = min(2 * self._at_once, _TAKEN_MAX) if each_ms <= _QUICK_MS else 1
        return 0

    async def _settle(self) -> None:
        """Record the outcomes of claimed deliveries; after a disk error, they are recorded before the next claim."""
        if self._settled:
            settled = event.SettleDeliveries(self.name, self._fence, tuple(self._settled), self._clock.now_ms())
            await self._store.apply(settled)
            self._settled.clear()

    async def _deliver(self, delivery: event.EventDelivery) -> event.DeliveryResult:
        point("tell.before")
        try:
            async with asyncio.timeout(self._terms.limit_ms / 1_000):
                await self._tell(delivery.event)
        except TimeoutError:
            return self._failed(delivery, f"it took longer than {self._terms.limit_ms / 1_000:g} s")
        except Exception as error:  # noqa: BLE001  # guard: engine loop - what one does with an event is its own
            return self._failed(delivery, cut(normalise(f"{type(error).__name__}: {error}"), _ERROR_CHARS_MAX))
        point("tell.after")
        return event.DeliveryResult(delivery.id)

    def _failed(self, delivery: event.EventDelivery, error: str) -> event.DeliveryResult:
        wait_ms = self._terms.retry_delay_ms(delivery.attempt, delivery.id)
        again_at = None if wait_ms is None else self._clock.due_ms() + wait_ms
        details = self.name, delivery.event.topic, delivery.attempt, "" if wait_ms is not None else ", given up"
        _log.warning("delivery to %s failed: %s, attempt %d%s", *details)
        return event.DeliveryResult(delivery.id, error or "it failed", again_at)


_LOOK_MS = 1_000


class Subscribers:
    """The subscribers of this process. Without subscribers, nothing is done.

    `happened` is set when the journal may have grown, `bell` when a subscriber has deliveries. `dispatches` says that
    this process makes the deliveries: of those that share a store one does.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self.bell = EventNotifier()
        self.happened = EventNotifier()
        self.dispatches = True
        self._store = store
        self._clock = clock
        self._loops: dict[str, tuple[Subscriber, asyncio.Task[None]]] = {}
        self._anybody: bool | None = None

    async def add(self, subscriber: Subscriber, topics: tuple[str, ...], *, from_start: bool = False) -> None:
        """Subscribe to these topics from now on; replaces the subscriber of the same name in this process."""
        await self._end(subscriber.name)
        await subscriber.subscribe(topics, from_start=from_start)
        self._anybody = True
        loop = asyncio.create_task(self._tell(subscriber), name=f"tell-{subscriber.name}")
        self._loops[subscriber.name] = subscriber, loop
        self._store.journal.hint.set()

    async def remove(self, name: str) -> bool:
        """Remove a subscriber and drop its pending deliveries; False when there is none of this name."""
        await self._end(name)
        return await self._store.apply(event.Unsubscribe(name))

    async def work(self) -> int | None:
        """Make deliveries of new events, for subscribers that are here and those that may return.

        Those who wait for something to happen are woken first, whoever subscribed.
        """
        self.happened.notify_all()
        if not self.dispatches:
            return None
        if self._anybody is None:
            found = bool(await self._store.journal.subscribers())
            self._anybody = self._anybody or found  # somebody may have subscribed during the read
        return await dispatch(self._store, self._clock, self.bell) if self._anybody else None

    async def stop(self) -> None:
        """Stop all deliveries; those that did not finish are repeated after the next start."""
        await asyncio.gather(*(self._end(name) for name in list(self._loops)))

    async def _tell(self, subscriber: Subscriber) -> None:
        with self.bell.listening() as rung:
            stage = ServiceLoop(f"tell {subscriber.name}", subscriber.work, rung, poll_ms=_LOOK_MS, vital=False)
            await keep_going(stage, self._clock, self._broken)

    def _broken(self, error: StoreBroken) -> None:
        _log.error("event deliveries stopped: %s", error.what, extra={"code": error.code})

    async def _end(self, name: str) -> None:
        if (ended := self._loops.pop(name, None)) is not None:
            subscriber, loop = ended
            await subscriber.stop()
            loop.cancel()
            await asyncio.gather(loop, return_exceptions=True)
