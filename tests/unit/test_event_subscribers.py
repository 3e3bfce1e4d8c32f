"""Subscribers of events: who is added while the dispatcher looks for them."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.waits import HANG_S

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.commits import Tell
from keepsaid.domain.event import Event
from keepsaid.engine.subscriptions import Subscriber, Subscribers
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
