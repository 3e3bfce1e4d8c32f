"""Subscribers of events: who is added while the dispatcher looks for them."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.waits import HANG_S

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.batch import SURE_MS
from keepsaid.domain.commits import Tell
from keepsaid.domain.event import Event, TakeDeliveries
from keepsaid.engine.subscriptions import Subscriber, Subscribers
from keepsaid.events.dispatcher import EventNotifier, dispatch
from keepsaid.testing.clock import CountingIds, VirtualClock


class Interrupted(InMemoryOperations):
    """A store in which the list of subscribers is read, and before it is returned something else happens."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.go_on = asyncio.Event(), asyncio.Event()
        self._subscribers = self.journal.subscribers
        self.journal.subscribers = self._interrupted  # type: ignore[method-assign]

    async def _interrupted(self) -> Any:
        found = await self._subscribers()
        self.read.set()
        await self.go_on.wait()
        return found


async def test_who_subscribes_during_the_first_look_is_told() -> None:
    store, clock, heard = Interrupted(), VirtualClock(), asyncio.Event()

    async def hear(event: Event) -> None:
        assert event.topic == "a.one"
        heard.set()

    everybody = Subscribers(store, clock)
    looking = asyncio.create_task(everybody.work())
    await store.read.wait()
    await everybody.add(Subscriber("one", hear, store, clock, CountingIds()), ("a.*",))
    store.go_on.set()
    await looking
    await store.apply(Tell("a.one", "{}", clock.now_ms(), ""))
    while await everybody.work() == 0:
        pass
    await asyncio.wait_for(heard.wait(), HANG_S)
    await everybody.stop()


class Frozen(InMemoryOperations):
    """A store whose process is frozen while it waits for what it took, if it is to be."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self.clock, self.frozen_ms = clock, 0

    async def apply(self, commit: Any) -> Any:
        result = await super().apply(commit)
        if isinstance(commit, TakeDeliveries):
            await self.clock.advance(self.frozen_ms)
        return result


async def test_who_was_frozen_with_what_it_took_delivers_none_of_it() -> None:
    """Others have delivered it meanwhile, where processes share a store; where they do not, it is delivered next."""
    clock = VirtualClock()
    store, heard = Frozen(clock), list[str]()

    async def hear(event: Event) -> None:
        heard.append(event.topic)

    subscriber = Subscriber("one", hear, store, clock, CountingIds())
    await subscriber.subscribe(("a.*",), from_start=True)
    await store.apply(Tell("a.one", "{}", clock.now_ms(), ""))
    await dispatch(store, clock, EventNotifier())
    store.frozen_ms = SURE_MS + 1
    await subscriber.work()
    assert heard == []
    store.frozen_ms = SURE_MS
    await subscriber.work()
    assert heard == ["a.one"]
