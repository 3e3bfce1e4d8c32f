"""The house: one machine on which the runtime is started, dies, is started again, and sometimes runs twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from keepsaid.adapters.sqlite.stores import SqliteMemories
from keepsaid.adapters.system.machine import SystemIds
from keepsaid.app.instance import Instance, Outside
from keepsaid.config import Config, Home
from keepsaid.config.conversations import CompactionConfig, MaintenanceConfig, SessionsConfig
from keepsaid.config.settings import TurnsConfig
from keepsaid.domain.commits import Received
from keepsaid.domain.message import Inbound
from keepsaid.domain.reply import StoredReply
from keepsaid.domain.task import TaskFilter
from keepsaid.domain.views import MessageFilter, Story
from keepsaid.errors import KeepsaidError
from keepsaid.ports.store import Store
from keepsaid.values import frozen
from keepsaid_testkit.simulator.channels import HOOKS, POST, TALK, WEB, Provider, SimChannel
from keepsaid_testkit.simulator.clock import SimClock
from keepsaid_testkit.simulator.disk import Disk, MemoryStoreDisk, Roomy
from keepsaid_testkit.simulator.ears import UnreliableSubscriber, delivery_violations
from keepsaid_testkit.simulator.ledger import RunRecord
from keepsaid_testkit.simulator.loop import Reset, SimulatedLife
from keepsaid_testkit.simulator.making import undone
from keepsaid_testkit.simulator.model import SimModel, tools
from keepsaid_testkit.simulator.net import Net
from keepsaid_testkit.simulator.past import gaps
from keepsaid_testkit.simulator.strands import command_violations, question_violations, questions
from keepsaid_testkit.simulator.watch import Watched

T = TypeVar("T")
_HOME = Home.at(Path("simulated-home"))
_STOP_S = 5.0
BY_HAND = "a person wants it"
"""Why a batch is tried again: its verdict says so, and that of whatever had been parked with it."""

_COMPACTION = CompactionConfig(
    messages=2,
    keep=1,
    retry_s=1.0,
    timeout_s=10.0,
    window_tokens=1_000,
    background=0.27,
    aggressive=0.29,
    emergency=0.31,
)
"""Lanes are summarised after a few messages, and a prompt with more than a few of them meets the guard."""

_SESSIONS = SessionsConfig(inactive_s=20.0, sleep_s=5.0, end_s=30.0)
"""Lanes are soon quiet, so that all sessions have ended before nothing more may happen."""

_MAINTENANCE = MaintenanceConfig(step_ms=0)
"""How far a step comes is not to depend on how fast this machine is: a seed plays the same everywhere."""

_RULES = (
    {"name": "deploys", "match": {"event": "deploy"}, "action": "spawn", "task": "look at {{word}}"},
    {"name": "noise", "match": {"event": "noise"}, "action": "drop"},
)


@cache
def settings(turns_max: int) -> Config:
    """The configuration of a simulated home."""
    hooks = {"priority": 50, "window_ms": 1_000, "quiet_ms": 1_000, "max_wait_ms": 5_000}
    return Config(
        channels={TALK: {"busy": "steer"}, POST: {"window_ms": 0}, WEB: {"busy": "interrupt"}, HOOKS: hooks},
        routes={"rules": _RULES},
        compaction=_COMPACTION,
        maintenance=_MAINTENANCE,
        sessions=_SESSIONS,
        turns=TurnsConfig(concurrent_max=turns_max, stop_s=_STOP_S),
    )


@frozen
class Runtime:
    """One process and what it works with."""

    number: int
    life: SimulatedLife
    instance: Instance
    store: Store


class SimulatedMachine:
    """A machine that starts runtimes over one disk and forwards requests to the newest of them."""

    def __init__(self, net: Net, seen: RunRecord, disk: Disk, way: type[Watched]) -> None:
        self._net = net
        self._seen = seen
        self._disk = disk
        self._way = way
        self._memory = MemoryStoreDisk()
        self._started = 0
        self.providers = {name: Provider(net, seen, name) for name in (TALK, POST, WEB, HOOKS)}
        self.newest: Runtime | None = None

    def boot(self) -> Runtime:
        """A new process; it recovers and starts its stages by itself, and may die while it does."""
        net = self._net
        self._started += 1
        life = SimulatedLife(net.loop, f"p{self._started}")
        mean = net.weather.points_mean
        if mean is not None and not net.calm:
            life.points_left = 1 + int(net.chance.expovariate(1 / mean))
        net.trace.add(f"{life.name} starts")
        clock = SimClock(net.wall)
        ids = SystemIds(net.wall.now_ms, net.chance.getrandbits)
        store = self._disk.open()
        watched = self._way(store, net, self._seen, life)
        channels = {name: SimChannel(net, provider) for name, provider in self.providers.items()}
        outside = Outside(clock, ids, channels, tools(net, self._seen), Roomy())
        stores = watched, self._memory.open(ids)
        model = SimModel(net, self._seen, life)
        instance = Instance(_HOME, settings(net.weather.turns_max), stores, model, outside)
        runtime = Runtime(self._started, life, instance, store)
        life.run(self._begin(runtime))
        return runtime

    async def _begin(self, runtime: Runtime) -> None:
        try:
            await runtime.instance.start()
        except KeepsaidError as error:
            self.kill_process(runtime, f"it cannot start: {error.what}")
            return
        if self._net.weather.hearing is not None:
            await UnreliableSubscriber(self._net, self._seen, runtime.life.name, runtime.number).subscribe(
                runtime.instance
            )
        self._net.trace.add(f"{runtime.life.name} is up")
        if self.newest is None or self.newest.number < runtime.number:
            self.newest = runtime

    def kill_process(self, runtime: Runtime, why: str) -> None:
        """End a process now."""
        if not runtime.life.dead:
            self._net.trace.add(f"{runtime.life.name} dies: {why}")
        runtime.life.die()

    def clear(self, runtime: Runtime) -> None:
        """What a dead process had open is closed, as the system does."""
        self._disk.drop(runtime.store)
        if self.newest is runtime:
            self.newest = None

    async def stop(self, runtime: Runtime) -> None:
        """A graceful stop; a process that does not end in time is killed."""
        self._net.trace.add(f"{runtime.life.name} is stopping")
        done = runtime.life.ask(runtime.instance.stop())
        await asyncio.wait((done,), timeout=4 * _STOP_S)
        if not done.done():
            self._seen.broken.append(f"{runtime.life.name} does not stop")
            done.cancel()
        elif not done.cancelled():
            done.exception()
        self.kill_process(runtime, "stopped")

    async def stories(self) -> Sequence[Story]:
        """All messages and their outcomes, for an observer from outside."""
        store = self._disk.open()
        stories = await store.find(MessageFilter(limit=100_000))
        self._disk.drop(store)
        return stories

    async def gaps(self, stories: Sequence[Story]) -> list[str]:
        """What is wrong with the contexts, commands and questions of all lanes, for whoever looks from outside."""
        store = self._disk.open()
        found = await gaps(store, (story.message.lane for story in stories))
        found += await delivery_violations(store, self._seen) if self._net.weather.hearing is not None else []
        found += await undone(store, self._seen)
        found += [*command_violations(await self._disk.executed(), stories), *await question_violations(store, stories)]
        for told in await questions(store, (story.message.lane for story in stories)):
            self._net.trace.add(told)
        self._disk.drop(store)
        return found

    async def results(self) -> int:
        """How many tasks came to something, for whoever looks from outside."""
        store = self._disk.open()
        found = await store.tasks.find(TaskFilter(state="completed", limit=100_000))
        self._disk.drop(store)
        return sum(bool(task.result) for task in found)

    def memories(self) -> SqliteMemories:
        """What is remembered, for whoever looks from outside."""
        return self._memory.open(SystemIds(self._net.wall.now_ms, lambda _: 0))

    async def receive(self, inbound: Inbound) -> Received:
        """Hand a message over."""
        return await self._ask(lambda one: one.receive(inbound))

    async def unseen(self, conversation: str) -> tuple[StoredReply, ...]:
        """Replies that wait to be pulled."""

        async def ask(one: Instance) -> tuple[StoredReply, ...]:
            return tuple(await one.operations.unseen(WEB, conversation))

        return await self._ask(ask)

    async def shown(self, reply_id: int) -> bool:
        """A reply was pulled."""
        return await self._ask(lambda one: one.services.inbox.mark_seen(reply_id))

    async def requeue(self, batch_id: int) -> bool:
        """A person wants a batch tried again."""
        return await self._ask(lambda one: one.services.inbox.requeue(batch_id, BY_HAND))

    async def _ask(self, work: Callable[[Instance], Coroutine[Any, Any, T]]) -> T:
        runtime = self.newest
        if runtime is None or runtime.life.dead:
            raise Reset
        return await runtime.life.ask(work(runtime.instance))
