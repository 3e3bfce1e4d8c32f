"""A home on virtual time in which nothing goes wrong: days pass in moments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Protocol, TypeVar

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.sqlite.stores import SqliteMemories
from keepsaid.adapters.system.machine import SystemIds
from keepsaid.app.instance import Instance, Outside
from keepsaid.config import Config, Home
from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks, Trust
from keepsaid.domain.reply import Delivered, Sending, SendResult, StoredReply
from keepsaid.ports.model import Model
from keepsaid.ports.store import Store
from keepsaid_testkit.simulator.clock import SimClock, Wall
from keepsaid_testkit.simulator.disk import MemoryStoreDisk
from keepsaid_testkit.simulator.loop import VirtualLoop

TALK, HOOKS = "talk", "hooks"
Stores = tuple[Store, SqliteMemories]
_MOMENTS_MAX = 36_000
_HOME = Home.at(Path("simulated-home"))


class Mouth:
    """A channel that always arrives; `said` are the replies in order."""

    sending = Sending.PUSH

    def __init__(self, name: str) -> None:
        self.name = name
        self.said: list[StoredReply] = []

    async def send(self, reply: StoredReply) -> SendResult:
        """Take a reply."""
        self.said.append(reply)
        return SendResult(Delivered.CONFIRMED, provider_id=f"{self.name}-{reply.id}")

    async def close(self) -> None:
        """Nothing to give back."""


class VirtualHome:
    """One instance and its stores, with people who talk on one channel and webhooks on another.

    `heard` is how many messages of people it was told.
    """

    def __init__(self, loop: VirtualLoop, model: Model, config: Config, stores: Callable[[SystemIds], Stores]) -> None:
        self._loop = loop
        self.wall = Wall(loop.time)
        ids = SystemIds(self.wall.now_ms, Random(1).getrandbits)
        self.mouths = {name: Mouth(name) for name in (TALK, HOOKS)}
        self.store, self.memories = stores(ids)
        outside = Outside(SimClock(self.wall), ids, dict(self.mouths))
        self.instance = Instance(_HOME, config, (self.store, self.memories), model, outside)
        self._numbers = count(1)
        self.heard = 0

    async def say(self, sender: str, text: str, *, conversation: str = "", trust: Trust = Trust.OWNER) -> None:
        """A person says something in a direct chat, or in a room."""
        self.heard += 1
        origin = Origin(TALK, "default", conversation or sender, sender, sender, not conversation, trust)
        await self._send(Inbound(origin, Content(text.encode(), text), self._marks()))

    async def hook(self, event: str, text: str) -> None:
        """A program outside tells of something."""
        origin = Origin(HOOKS, "default", f"repo-{event}", "hook", "hook")
        await self._send(Inbound(origin, Content(text.encode(), text, event), self._marks(), 50))

    def _marks(self) -> ProviderMarks:
        number = next(self._numbers)
        return ProviderMarks(f"event-{number}", f"event-{number}")

    async def _send(self, inbound: Inbound) -> None:
        await self.instance.receive(inbound)
        await self.answered()

    async def answered(self) -> None:
        """Wait until nothing waits to be answered, told or recorded."""
        for _ in range(_MOMENTS_MAX):
            if not await self._busy():
                return
            await asyncio.sleep(0.1)
        raise AssertionError("it does not come to rest")

    async def _busy(self) -> bool:
        seen = await self.store.overview()
        waiting = sum(channel.unrouted for channel in seen.channels) + seen.episodes_due
        waiting += sum(seen.batches.get(state, 0) for state in ("queued", "leased"))
        return bool(waiting + sum(seen.replies.get(state, 0) for state in ("pending", "sending")))

    def jump(self, seconds: float) -> None:
        """Let time pass in which nobody looked: whatever is due by then comes once."""
        self._loop.pass_by(seconds)


def in_memory(ids: SystemIds) -> Stores:
    """Both stores in memory."""
    return InMemoryOperations(), MemoryStoreDisk().open(ids)


def lived(model: Model, config: Config, life: Callable[[VirtualHome], Coroutine[Any, Any, None]]) -> None:
    """Start a home in memory, live in it, and stop it."""
    played(lambda loop: VirtualHome(loop, model, config, in_memory), life)


class Housed(Protocol):
    """Whatever has an instance to start and stop."""

    @property
    def instance(self) -> Instance:
        """It."""
        ...


H = TypeVar("H", bound=Housed)


def played(make: Callable[[VirtualLoop], H], life: Callable[[H], Coroutine[Any, Any, None]]) -> None:
    """Make something on virtual time, start its instance, live, and stop it."""
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)

    async def whole() -> None:
        home = make(loop)
        await home.instance.start()
        try:
            await life(home)
        finally:
            await home.instance.stop()

    try:
        loop.run_until_complete(whole())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
