"""The instance: one home, opened for work; its stages joined."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from copy import copy
from dataclasses import field, replace
from functools import cached_property

from keepsaid.adapters.models.choose import Punctual
from keepsaid.adapters.redaction.redactor import PatternRedactor
from keepsaid.adapters.sqlite.connection import FileWatch
from keepsaid.adapters.sqlite.stores import open_stores
from keepsaid.adapters.system.clock import SystemClock, SystemIds
from keepsaid.adapters.system.lock import FileLock
from keepsaid.adapters.system.process import DiskSpace, TextThreads
from keepsaid.app.agent import AgentBuilder, Faculties, IntakePrefetcher
from keepsaid.app.builtin.parts import Parts
from keepsaid.app.channels import channels_without_resend, close_channels
from keepsaid.app.events import EventService
from keepsaid.app.extending import (
    ExtensionHost,
    ExtensionService,
    ReloadableExtensions,
    found_in,
    join_calendars,
    ours_of,
    reloading_of,
    secrets_of,
    with_channels,
)
from keepsaid.app.memory import collecting_of, maintenance_of, recorder_of
from keepsaid.app.models import briefings_of, compaction_of, copier_of, embedder_of, former_of, loading_of, model_of
from keepsaid.app.redaction import redactor_of
from keepsaid.app.services import RuntimeHooks, Services, forgetter_of, services_of
from keepsaid.app.stores import PATIENT_MS, folders_of, in_use, recollection, stores_of
from keepsaid.app.tools import fence_of, toolbox_of
from keepsaid.app.work import ScheduleService, TaskService, TaskServiceDeps
from keepsaid.config import Config, Home
from keepsaid.config.settings import BufferConfig
from keepsaid.domain.commits import Received
from keepsaid.domain.message import Inbound
from keepsaid.domain.trust import UNKEYED, Fence
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.engine.caretakers import CrashNotices, Pruner, Rescuer, SessionExpirer
from keepsaid.engine.compactor import Compactor
from keepsaid.engine.supervisor import (
    BacklogLimits,
    BacklogMonitor,
    Recovered,
    ServiceLoop,
    SupervisedServices,
    Supervisor,
)
from keepsaid.engine.workers import Attempt, RetryPolicy, TurnConcurrency, Workers
from keepsaid.errors import StoreBroken
from keepsaid.extensions.contributions import ExtensionContributions
from keepsaid.extensions.discovery import FoundExtension
from keepsaid.extensions.loaded import Active, ExtensionEmbedder, LoadedExtension, extension_id_of
from keepsaid.memory.indexing import Embedding, Former, no_former
from keepsaid.memory.injection import LEG_SHARE
from keepsaid.memory.recording import KEPT_MAX, RECORDED_MAX
from keepsaid.memory.summaries import COPIED_MAX
from keepsaid.pipeline.intake import DiskSpaceGuard, IntakeLimits, MessageIntake
from keepsaid.pipeline.leasing import Leases, LeaseTerms, LifeTerms, ProcessAge
from keepsaid.pipeline.outbox import OutboxSender
from keepsaid.pipeline.turn.commands import BURIED, BURIED_AGAIN, PARKED
from keepsaid.ports.channel import Channel, Hook
from keepsaid.ports.memory_store import Embedder
from keepsaid.ports.model import Model, Tool
from keepsaid.ports.runtime import Clock, Ids, Lock, Offload, Space, StopToken, inline
from keepsaid.ports.store import MemoryStore, Store
from keepsaid.services.inbox import ProgressHub
from keepsaid.values import frozen

_SPACE_MS = 2_000
"""How often the disk is looked at."""

_FILES_MS = 1_000
"""How often files and lock are compared with their paths; the stores compare theirs at every commit too."""

_FORGET_MS = 1_000
_GAUGE_MS = 10_000
"""How often what waits is measured."""

_EMBED_MS = 1_000
"""How often what was recorded meanwhile gets its vectors."""

_PRUNE_MS = 60_000
"""How often it is asked whether a run of the pruner is due."""


@frozen
class Outside:
    """What surrounds an instance: time, identifiers, channels and tools beside its own, and how full its disk is.

    `redactor` is the one that its stores were opened with; `lock` is held instead of the home's own. `offload` runs
    what reads long texts. `answerer` answers messages in place of the model, which keeps its other work: summaries,
    extraction, tasks. `life` says when a batch that may stop the program is tried.
    """

    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)
    channels: Mapping[str, Channel] = field(default_factory=dict)
    tools: Sequence[Tool] = ()
    space: Space | None = None
    redactor: PatternRedactor | None = None
    answerer: Model | None = None
    embedder: Embedder | None = None
    former: Former = no_former
    extensions: Sequence[FoundExtension] = ()
    lock: Lock | None = None
    offload: Offload = inline
    life: LifeTerms = LifeTerms()
    fence: Fence = UNKEYED


def embedding_of(outside: Outside, memories: MemoryStore, config: Config, lent: Active) -> Embedding | None:
    """What gives memories their vectors, where there is an embedder; `lent` are the extensions that are up."""
    lender = extension_id_of(config.memory.embedder)
    embedder = ExtensionEmbedder(lender, lent) if lender else outside.embedder
    return Embedding(embedder, memories, outside.clock, outside.former) if embedder else None


def backlog_limits(buffer: BufferConfig) -> BacklogLimits:
    """When what waits is worth a warning."""
    return BacklogLimits(buffer.warn_count, int(buffer.warn_age_s * 1000))


class Instance:
    """One home, opened for work under its lock. `start` makes it the runtime; without, it only takes commands."""

    def __init__(
        self,
        home: Home,
        config: Config,
        stores: tuple[Store, MemoryStore],
        model: Model,
        outside: Outside | None = None,
    ) -> None:
        outside = outside or Outside()
        self.home, self.config = home, config
        self.operations, self.memories = stores
        self.redactor = outside.redactor or redactor_of(config)
        self.model, self.hub = model, ProgressHub()
        self.clock, self.ids = outside.clock, outside.ids
        self.channels: dict[str, Channel] = dict(outside.channels)
        self.hooks: dict[str, Hook] = {}
        self.embedding = embedding_of(outside, self.memories, config, self._active_extensions)
        self.recall = recollection(self.memories, self.clock, LEG_SHARE * config.memory.deadline_ms, self.embedding)
        self.search = recollection(self.memories, self.clock, PATIENT_MS, self.embedding)
        self.recorder = recorder_of(self.operations, self.memories, self.clock, self.redactor)
        compaction = compaction_of(config, self.operations, model, self.clock, (self.redactor, outside.offload))
        self.copier = copier_of(config, self.operations, self.memories, self.clock)
        self.briefings = briefings_of(config, self.memories, model, self.clock)
        self.halt = StopToken()
        self.maintenance = maintenance_of(config, self.memories, self.clock, (self.embedding, model), self.halt)
        self.compactor = Compactor(compaction, config.compaction.concurrent_max)
        collecting = collecting_of(
            config, stores, (model, self._active_extensions), (self.clock, self.ids), self.redactor
        )
        self.collecting = replace(collecting, halt=self.halt)
        self.forgetter = forgetter_of(self.operations, self.memories, (self.clock, self.ids), self.halt, home)
        self._early = IntakePrefetcher(config, self.recall, self.memories, self.recorder, self.clock)
        have = Faculties(self._early.recall, self.search, self.recorder, self.briefings, self.compactor, self.forgetter)
        offers = ExtensionContributions(self._active_extensions)
        self.toolbox = toolbox_of(home, config, self.clock)
        system, tools = (self.clock, self.ids), (outside.tools, offers, self.toolbox)
        place, answers = (home, config, stores), Punctual(outside.answerer) if outside.answerer else model
        agent = AgentBuilder(*place, answers, have, system, self.hub, tools, outside.offload, outside.fence)
        self.flow = agent.flow()
        self.recorder.watch(self.flow.hints.record)
        self.telling = EventService(self.operations, *system, self.memories.news)
        self.extending = self._extending(outside.extensions, agent.memory_tools)
        self.scheduling = ScheduleService(config, self.operations, self.clock, self.ids, outside.fence)
        self.reloading = reloading_of(home, config, self.flow, (self.operations, self.clock), outside.extensions)
        self._recorded = asyncio.Event()
        self.owner = f"{os.getpid()}-{self.ids.next():x}"
        self.working = TaskService(self._site(agent), system, self.flow.hints, self.owner)
        operations, clock, ids, hints = self.operations, self.clock, self.ids, self.flow.hints
        self.life = ProcessAge(operations, clock, self.owner, outside.life, loading_of(model))
        terms = LeaseTerms(ageing=config.priority.ageing())
        self.leases = Leases(operations, clock, ids, self.owner, terms, hints, self.life)
        self.attempt = Attempt(operations, self.hub, clock, ids, RetryPolicy(int(config.models.outage_s * 1000)))
        space = outside.space or DiskSpace(*folders_of(home, config))
        self.reserve = DiskSpaceGuard(space, config.buffer.min_free_disk_mb)
        self._lock, self._files, self._door = outside.lock, FileWatch(in_use(home, config)), self._way_in()
        self.pruner = Pruner(operations, clock, config.buffer.terms(), self.halt)
        self.forgetting = asyncio.Event()
        self._sleepers = SessionExpirer(operations, clock, config.sessions.terms())
        self._gauge = BacklogMonitor(operations, clock, backlog_limits(config.buffer))
        self._supervisor: Supervisor | None = None

    @cached_property
    def services(self) -> Services:
        """What people and programs may ask beside talking."""
        system = self.clock, self.flow.hints, self.redactor
        runtime = RuntimeHooks(lambda: self.running, self.forgetting, self.receive, self.hub)
        stores, work = (self.operations, self.memories), (self.forgetter, self.search)
        return services_of((self.home, self.config), stores, system, work, runtime)

    def _site(self, agent: AgentBuilder) -> TaskServiceDeps:
        lent = agent.worker_tools, agent.hindsight(), agent.task_approvals, agent.fence
        return TaskServiceDeps(self.home, self.config, self.operations, self.memories, self.redactor, self.model, *lent)

    def _way_in(self) -> MessageIntake:
        config = self.config
        windows = {name: one.window(config.buffer) for name, one in config.channels.items() if one.enabled}
        same_body_ms = {name: one.dedupe_content_ms for name, one in config.channels.items()}
        bounds = config.buffer.payload_bytes_max, config.buffer.text_chars_max
        limits = IntakeLimits(*bounds, same_body_ms=same_body_ms)
        rules = config.lanes.rules()
        return MessageIntake(self.operations, self.clock, self.ids, windows, limits, self.reserve, rules)

    def _active_extensions(self) -> Sequence[LoadedExtension]:
        """Return the active extensions."""
        return self.extending.lifecycle.active

    def _extending(
        self, found: Sequence[FoundExtension], memory_tools: Callable[[ClaimedBatch], Sequence[Tool]]
    ) -> ExtensionService:
        outer, ours = (self.telling, self.receive, self.clock, self.ids, self.flow.hints), ours_of(found)
        host = ExtensionHost(self.config, self.operations, *outer, ours)
        parts = Parts(self.config, memory_tools, self.collecting.stages, ours)
        return ExtensionService(self.home, found, host, (self.model, self.redactor), parts)

    async def receive(self, inbound: Inbound) -> Received:
        """Take a message in; returns once it is on disk. Raises InputError or StoreError."""
        if self.failure is not None:
            raise copy(self.failure)
        return self._early.expect(inbound, await self.flow.receive(self._door, inbound))

    @property
    def failure(self) -> StoreBroken | None:
        """Why nothing is acknowledged any more: the disk failed, or a file in use is gone; None while all is well."""
        if self._supervisor is None or not self._supervisor.broken.done():
            return None
        return self._supervisor.broken.result()

    @property
    def running(self) -> bool:
        """Whether the stages are going."""
        return self._supervisor is not None

    async def start(self, *, answering: bool = True) -> Recovered:
        """Recover what a former process left and start the stages; without `answering` others take the batches."""
        await self.extending.begin(self.channels, self.hooks)
        self.reloading.add(self.scheduling)
        self.reloading.add(ReloadableExtensions(self.extending.lifecycle))
        hint, once = self.flow.hints.deliver, channels_without_resend(self.config)
        post = OutboxSender(self.operations, self.channels, self.clock, self.owner, hint, once)
        turns = self.config.turns
        places = TurnConcurrency(turns.concurrent_max, turns.slow_s, turns.open_max)
        workers = None
        self._early.expecting = answering
        if answering:
            workers = Workers(self.flow, self.operations, self.leases, self.attempt, self.clock, places)
        notices = CrashNotices(BURIED, BURIED_AGAIN, PARKED)
        rescuer = Rescuer(self.operations, self.clock, self.ids, self.owner, notices, self.life.terms.trials)
        crew = SupervisedServices(self.flow, rescuer, post, workers)
        self.ids.follow(await self.operations.last_id())
        self._supervisor = Supervisor(crew, self.operations, self.clock, self.owner)
        self.reserve.look()
        await self.forgetter.recover()
        await join_calendars(self.extending, self.scheduling, self.config.schedules.timezone)
        return await self._supervisor.start(
            [
                ServiceLoop("life", self.life.work, self.life.hint, vital=False),
                ServiceLoop("record", self._record, self.flow.hints.record, vital=False),
                ServiceLoop("space", self._look_at_disk, asyncio.Event(), poll_ms=_SPACE_MS, vital=False),
                ServiceLoop("files", self._look_at_files, asyncio.Event(), poll_ms=_FILES_MS),
                ServiceLoop("forget", self.forgetter.work, self.forgetting, poll_ms=_FORGET_MS, vital=False),
                ServiceLoop("gauge", self._gauge.work, asyncio.Event(), poll_ms=_GAUGE_MS, vital=False),
                ServiceLoop("compact", self.compactor.work, self.compactor.hint, vital=False),
                *self._memory_loops(),
                *self.telling.stages(),
                *self.extending.stages(),
                *await self.scheduling.start(self.receive, self.flow.hints, self.channels),
                *self.working.stages(self.receive),
                *self.toolbox.stages(),
                ServiceLoop("prune", self.pruner.work, asyncio.Event(), poll_ms=_PRUNE_MS, vital=False),
                ServiceLoop("sessions", self._sleepers.work, asyncio.Event(), self._sleepers.poll_ms, vital=False),
            ]
        )

    async def _look_at_disk(self) -> None:
        self.reserve.look()

    async def _look_at_files(self) -> None:
        """Raise StoreGone when the lock, a store or a directory of theirs is no longer at its path."""
        if self._lock is not None:
            self._lock.check()
        self._files.check()

    def _memory_loops(self) -> Iterator[ServiceLoop]:
        if self.embedding is not None:
            yield ServiceLoop("embed", self.embedding.work, self._recorded, poll_ms=_EMBED_MS, vital=False)
        if self.briefings is not None:
            yield ServiceLoop("bulletin", self.briefings.work, self.briefings.hint, vital=False)
        if self.config.maintenance.enabled:
            yield ServiceLoop("maintain", self.maintenance.work, asyncio.Event(), poll_ms=_PRUNE_MS, vital=False)

    async def _record(self) -> int | None:
        """Episodes of settled batches and copies of summaries; at once again while there are many."""
        recorded, copied = await self.recorder.catch_up(), await self.copier.catch_up()
        kept = await self.working.results.catch_up()
        if recorded or copied or kept:
            self._recorded.set()
        return 0 if recorded == RECORDED_MAX or copied == COPIED_MAX or kept == KEPT_MAX else None

    async def until_broken(self) -> StoreBroken:
        """Wait until the disk fails; only after `start`."""
        assert self._supervisor is not None, "nothing watches the disk before the start"
        return await asyncio.shield(self._supervisor.broken)

    async def stop(self) -> None:
        """No new claims; running turns end or return to the queue, and what works in steps ends at the next one."""
        self.halt.set()
        self._early.stop()
        if self._supervisor is not None:
            stop_s = 0.0 if self.failure else self.config.turns.shutdown_timeout_s
            supervisor, self._supervisor = self._supervisor, None
            await self.extending.quiet()
            await self.telling.stop()
            await self.scheduling.stop()
            await asyncio.gather(supervisor.stop(stop_s), self.working.stop(stop_s))
            await self.compactor.stop()
        await self.extending.end()


@asynccontextmanager
async def opened(
    home: Home, config: Config, model: Model | None = None, outside: Outside | None = None
) -> AsyncIterator[Instance]:
    """A home under its lock; raises HomeBusy, ConfigError or StoreError with nothing changed.

    `model` replaces the one the config names, `outside` the machine.
    """
    async with AsyncExitStack() as closing:
        home.make()
        paths = stores_of(home, config)
        lock = (outside or Outside()).lock or FileLock(home.lock_file, paths)
        lock.acquire()
        closing.callback(lock.release)
        found, fence = found_in(home, config), fence_of(home)
        threads = TextThreads()
        closing.callback(threads.close)
        config, redactor = with_channels(config, found), redactor_of(config, secrets_of(found))
        stores = await open_stores(*paths, SystemIds(), closing, redactor)
        answering = Punctual(model) if model else model_of(config, closing)
        outside = outside or Outside()
        outside = replace(outside, redactor=redactor, extensions=found, lock=lock, offload=threads, fence=fence)
        if outside.embedder is None:
            embedder, former = embedder_of(home, config, closing), former_of(home, config, closing)
            outside = replace(outside, embedder=embedder, former=former)
        instance = Instance(home, config, stores, answering, outside)
        instance.reserve.look()
        closing.push_async_callback(close_channels, instance.channels)
        try:
            yield instance
        finally:
            await instance.stop()
