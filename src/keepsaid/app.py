"""The composition root: joins ports, adapters and stages. The only file that knows adapters."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from keepsaid.adapters.sqlite.memory_store import SqliteMemories
from keepsaid.adapters.sqlite.operations import SqliteLanes, SqliteOperations
from keepsaid.adapters.sqlite.stores import open_stores, read_stores
from keepsaid.adapters.system.clock import SystemClock, SystemIds
from keepsaid.adapters.system.identity import IdentityFiles
from keepsaid.adapters.system.lock import FileLock
from keepsaid.config import Config, Home
from keepsaid.domain.commits import Received, Requeue, Shown
from keepsaid.domain.memory import Injection, Listener, person_of
from keepsaid.domain.message import Inbound
from keepsaid.domain.prompt import Prompt
from keepsaid.domain.turn import Claimed, Recent
from keepsaid.engine.attempt import Attempt, Patience
from keepsaid.engine.loops import Stage
from keepsaid.engine.progress import ProgressHub
from keepsaid.engine.rescuer import Rescuer
from keepsaid.engine.supervisor import Crew, Recovered, Supervisor
from keepsaid.engine.workers import Workers
from keepsaid.errors import KeepsaidError, ModelMalformed, StoreBroken, StoreError
from keepsaid.memory.gates import InjectionSettings
from keepsaid.memory.inject import Injector
from keepsaid.memory.recall import Recollection
from keepsaid.memory.recall.legs import Leg
from keepsaid.memory.record import Recorder
from keepsaid.memory.tools import memory_search
from keepsaid.pipeline.buffer.receive import Door, Limits
from keepsaid.pipeline.context.assemble import Budget
from keepsaid.pipeline.deliver.send import Post
from keepsaid.pipeline.flow import Course, Flow, Mind, Stores
from keepsaid.pipeline.lane.lease import Leases, LeaseTerms
from keepsaid.pipeline.turn.notices import DIED
from keepsaid.pipeline.turn.run import TurnLimits
from keepsaid.ports.channel import Channel, Hook
from keepsaid.ports.clock import Clock
from keepsaid.ports.model import Model, ModelRequest, Tool

if TYPE_CHECKING:
    from keepsaid.adapters.models.choose import Found
    from keepsaid.adapters.sqlite.care import Checkup

_PATIENT_MS = 10_000
"""Milliseconds a search may take that a person or a model asked for."""

_TRIAL_S_MAX = 30.0
"""Seconds a model gets to answer when it is tried."""

_RECORDED_MAX = 50
"""Batches whose episodes are recorded in one go."""


class NoReminder:
    """Recalls nothing, where injection is not wanted."""

    def __init__(self, setting: str) -> None:
        self._setting = setting

    async def remind(self, claimed: Claimed, recent: Recent) -> Injection:  # noqa: ARG002 - the port's signature
        """Nothing, and why."""
        return Injection(skipped=f"memory.injection is {self._setting}")


@dataclass(frozen=True, slots=True)
class Reading:
    """Both stores, for reading."""

    views: SqliteLanes
    memories: SqliteMemories
    recall: Recollection


@asynccontextmanager
async def reading(home: Home, config: Config) -> AsyncIterator[Reading]:
    """The stores of a home, read only, whether or not a runtime is working on them."""
    async with AsyncExitStack() as closing:
        paths = home.store(config.buffer.path), home.store(config.memory.path)
        views, memories = await read_stores(*paths, SystemIds(), closing)
        yield Reading(views, memories, _recollection(memories, SystemClock(), _PATIENT_MS))


class Instance:
    """One home, opened for work under its lock. `start` makes it the runtime; without, it only takes commands."""

    def __init__(
        self, home: Home, config: Config, stores: tuple[SqliteOperations, SqliteMemories], model: Model
    ) -> None:
        self.home = home
        self.config = config
        self.operations, self.memories = stores
        self.model = model
        self.clock = SystemClock()
        self.ids = SystemIds()
        self.hub = ProgressHub()
        self.channels, self.hooks = _channels(config)
        self.recall = _recollection(self.memories, self.clock, config.memory.deadline_ms)
        self.search = _recollection(self.memories, self.clock, _PATIENT_MS)
        self.recorder = Recorder(self.operations, self.memories, self.operations, self.clock)
        self.flow = self._flow()
        self.owner = f"{os.getpid()}-{self.ids.next():x}"
        operations, clock, ids = self.operations, self.clock, self.ids
        self.leases = Leases(operations, clock, ids, self.owner, LeaseTerms())
        patience = Patience(outage_ms_max=int(config.models.outage_s * 1000))
        self.attempt = Attempt(operations, self.hub, clock, ids, patience)
        windows = {name: one.window(config.buffer) for name, one in config.channels.items() if one.enabled}
        limits = Limits(config.buffer.payload_bytes_max, config.buffer.text_chars_max)
        self._door = Door(operations, clock, ids, windows, limits)
        self._supervisor: Supervisor | None = None

    def _flow(self) -> Flow:
        config = self.config
        windows = {name: channel.window(config.buffer) for name, channel in config.channels.items()}
        context, models = config.context, config.models
        budget = Budget(context.recent_messages, context.recent_tokens, context.identity_chars)
        limits = TurnLimits(models.steps_max, models.tokens_max, models.timeout_s)
        mode = config.memory.injection
        reminder = self._injector() if mode == "auto" else NoReminder(mode)
        identity = IdentityFiles(self.home.agent(config.agent))
        mind = Mind(self.model, reminder, identity, self._tools, self.hub)
        course = Course(config.table(), windows, budget, limits)
        stores = Stores(self.operations, self.operations, self.operations)
        return Flow(stores, mind, course, self.clock, self.ids)

    def _injector(self) -> Injector:
        memory = self.config.memory
        settings = InjectionSettings(
            items_max=memory.items_max,
            tokens_max=memory.tokens_max,
            per_leg=memory.per_leg,
            deadline_ms=memory.deadline_ms,
        )
        return Injector(self.recall, self.memories, self.recorder, self.clock, settings)

    def _tools(self, claimed: Claimed) -> Sequence[Tool]:
        if self.config.memory.injection == "off":
            return ()
        origin = claimed.messages[-1].inbound.origin
        listener = Listener(claimed.batch.lane, person_of(origin), origin.direct, cross=True)
        return (memory_search(self.search, listener),)

    async def receive(self, inbound: Inbound) -> Received:
        """Take a message in; returns once it is on disk. Raises InputError or StoreError."""
        return await self.flow.receive(self._door, inbound)

    async def requeue(self, batch_id: int, reason: str) -> bool:
        """Queue a dead, dropped or parked batch again."""
        done = await self.operations.apply(Requeue(batch_id, self.clock.now_ms(), reason))
        self.flow.hints.work.set()
        return done

    async def shown(self, reply_id: int) -> bool:
        """A reply was pulled."""
        return await self.operations.apply(Shown(reply_id, self.clock.now_ms()))

    @property
    def broken(self) -> bool:
        """Whether the disk failed, so that nothing is acknowledged any more."""
        return self._supervisor is not None and self._supervisor.broken.done()

    @property
    def running(self) -> bool:
        """Whether the stages are going."""
        return self._supervisor is not None

    async def start(self, *, answering: bool = True) -> Recovered:
        """Recover what a former process left and start the stages; without `answering` others take the batches."""
        post = Post(self.operations, self.operations, self.channels, self.clock, self.owner, self.flow.hints.deliver)
        turns_max = self.config.turns.concurrent_max
        workers = Workers(self.flow, self.operations, self.leases, self.attempt, turns_max) if answering else None
        rescuer = Rescuer(self.operations, self.clock, self.ids, self.owner, DIED)
        crew = Crew(self.flow, rescuer, post, workers)
        self._supervisor = Supervisor(crew, self.operations, self.clock, self.owner)
        return await self._supervisor.start([Stage("record", self._record, self.flow.hints.record)])

    async def _record(self) -> int | None:
        """Episodes of settled batches; at once again while there are many."""
        return 0 if await self.recorder.catch_up(_RECORDED_MAX) == _RECORDED_MAX else None

    async def until_broken(self) -> StoreBroken:
        """Wait until the disk fails; only after `start`."""
        assert self._supervisor is not None, "nothing watches the disk before the start"
        return await asyncio.shield(self._supervisor.broken)

    async def stop(self) -> None:
        """No new claims; running turns end or return to the queue."""
        if self._supervisor is not None:
            supervisor, self._supervisor = self._supervisor, None
            await supervisor.stop(self.config.turns.stop_s)


@asynccontextmanager
async def opened(home: Home, config: Config, model: Model | None = None) -> AsyncIterator[Instance]:
    """A home under its lock; raises HomeBusy, ConfigError or StoreError with nothing changed.

    `model` replaces the one the config names.
    """
    async with AsyncExitStack() as closing:
        home.make()
        lock = FileLock(home.lock_file)
        lock.acquire()
        closing.callback(lock.release)
        paths = home.store(config.buffer.path), home.store(config.memory.path)
        stores = await open_stores(*paths, SystemIds(), closing)
        instance = Instance(home, config, stores, model or _model(config, closing))
        closing.push_async_callback(_close_channels, instance.channels)
        try:
            yield instance
        finally:
            await instance.stop()


async def _close_channels(channels: Mapping[str, Channel]) -> None:
    for channel in channels.values():
        await channel.close()


def _recollection(memories: SqliteMemories, clock: Clock, limit_ms: float) -> Recollection:
    return Recollection((Leg("text", memories.text, limit_ms=limit_ms),), clock)


def _model(config: Config, closing: AsyncExitStack) -> Model:
    from keepsaid.adapters.models.choose import LazyChat, chosen  # noqa: PLC0415 - reading commands need no model
    from keepsaid.adapters.models.offline import NAME, OfflineResponder  # noqa: PLC0415

    name = chosen(config.models)
    if name == NAME:
        return OfflineResponder()
    chat = LazyChat(name, config.models)
    closing.push_async_callback(chat.close)
    return chat


def _channels(config: Config) -> tuple[dict[str, Channel], dict[str, Hook]]:
    """Every enabled channel by name, and those that others call."""
    from keepsaid.adapters.channels.github import GitHubHook  # noqa: PLC0415 - reading commands need no channels
    from keepsaid.adapters.channels.web import PullChannel, PushChannel  # noqa: PLC0415

    channels: dict[str, Channel] = {}
    hooks: dict[str, Hook] = {}
    for name, one in config.channels.items():
        if not one.enabled:
            continue
        if name == "github":
            secret = one.secret.get_secret_value() if one.secret else ""
            channels[name] = hooks[name] = GitHubHook(secret, priority=one.priority)
        elif one.reply_hosts:
            channels[name] = PushChannel(name, one.reply_hosts)
        else:
            channels[name] = PullChannel(name)
    return channels, hooks


def url_refused(url: str, hosts: tuple[str, ...]) -> str | None:
    """Why a reply must not be pushed to `url`; None when it may."""
    from keepsaid.adapters.channels.web import allowed  # noqa: PLC0415 - only messages with a URL need it

    return allowed(url, hosts)


def models_at_hand(config: Config) -> list[Found]:
    """Models that could be used, best first, and how each was found; none is called."""
    from keepsaid.adapters.models.choose import found  # noqa: PLC0415

    return found(config.models, os.environ)


def model_named(config: Config) -> str:
    """The model a config means: `provider/name`, or `none`; raises ConfigError for one that means nothing."""
    from keepsaid.adapters.models.choose import chosen  # noqa: PLC0415

    return chosen(config.models)


async def try_model(config: Config, name: str) -> float:
    """Seconds until a real reply of a model was there; raises ModelError, or ConfigError for no model's name."""
    from keepsaid.adapters.models.choose import LazyChat, chosen  # noqa: PLC0415

    models, clock = config.models, SystemClock()
    chat = LazyChat(chosen(models.model_copy(update={"chat": name})), models)
    prompt = Prompt("You are being tested.", (), "", "Reply with one word: ready")
    request = ModelRequest(prompt, tokens_max=models.tokens_max, limit_s=min(models.timeout_s, _TRIAL_S_MAX))
    started = clock.monotonic_ms()
    try:
        answer = await chat.answer(request, lambda _: None)
    finally:
        await chat.close()
    if not answer.text.strip():
        raise ModelMalformed(f"{name} answered with nothing")
    return (clock.monotonic_ms() - started) / 1_000


def store_version() -> str:
    """The version of SQLite in use; raises StoreError for one that can corrupt a database."""
    from keepsaid.adapters.sqlite.care import library_version  # noqa: PLC0415 - only the doctor asks

    return library_version()


def _files(home: Home, config: Config) -> list[tuple[Path, tuple[str, ...]]]:
    """The database files, buffer first, and the parts of the schema each holds."""
    buffer, memory = home.store(config.buffer.path), home.store(config.memory.path)
    if buffer.resolve() == memory.resolve():
        return [(buffer, ("buffer", "memory"))]
    return [(buffer, ("buffer",)), (memory, ("memory",))]


async def integrity(home: Home, config: Config) -> list[Checkup | KeepsaidError]:
    """Every page of every database that is there, checked; a file that cannot be opened is its error."""
    found: list[Checkup | KeepsaidError] = []
    for path, parts in _files(home, config):
        if not path.exists():
            continue
        try:
            found.append(await examined(path, parts))
        except KeepsaidError as error:
            found.append(error)
    return found


async def examined(path: Path, parts: Sequence[str]) -> Checkup:
    """One database file, checked; raises a StoreError when it is none of ours or cannot be opened."""
    from keepsaid.adapters.sqlite.care import examine  # noqa: PLC0415

    return await asyncio.to_thread(examine, path, parts)


async def copy_stores(home: Home, config: Config, folder: Path) -> list[Checkup]:
    """Verified copies of the databases in `folder`, the buffer first; memory may be ahead of it, never behind."""
    from keepsaid.adapters.sqlite.care import copy  # noqa: PLC0415

    copied = []
    for path, parts in _files(home, config):
        if not path.exists():
            raise StoreError(f"there is no {path} yet", safe="Nothing was stored here so far.", hint="keepsaid chat")
        copied.append(await asyncio.to_thread(copy, path, folder / f"{parts[0]}.db", parts))
    return copied
