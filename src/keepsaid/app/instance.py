"""The instance: one home, opened for work; its stages joined."""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import field, replace
from functools import cached_property, partial

from keepsaid.adapters.models.choose import Punctual
from keepsaid.adapters.redaction.redactor import PatternRedactor
from keepsaid.adapters.sqlite.connection import FileWatch
from keepsaid.adapters.system.machine import DiskSpace, SystemClock, SystemIds
from keepsaid.app import agent, channels, extending, files, memory, models, redaction, services
from keepsaid.app.builtin.parts import Parts
from keepsaid.app.keys import KeyRing, ReloadableKeys
from keepsaid.app.services import Services, forgetter_of
from keepsaid.app.stores import PATIENT_MS, folders_of, in_use, recollection, write_lines
from keepsaid.app.work import ScheduleRunner, TaskRunners, TaskRunnersDeps
from keepsaid.app.worker_tools import RuleTools
from keepsaid.config import Config, Home
from keepsaid.domain import commits, message, trust, turn
from keepsaid.engine import caretakers, supervisor, workers
from keepsaid.engine.lines import LineBoard
from keepsaid.engine.previews import Previews
from keepsaid.errors import StoreBroken
from keepsaid.extensions import contributions, discovery, loaded
from keepsaid.memory.indexing import Embedding, Former, no_former
from keepsaid.memory.injection import LEG_SHARE
from keepsaid.memory.recording import KEPT_MAX, RECORDED_MAX
from keepsaid.memory.summaries import COPIED_MAX
from keepsaid.pipeline.admission import Admission
from keepsaid.pipeline.feedback import ReactionFeedback
from keepsaid.pipeline.fetching import FetchDeps, FileFetcher
from keepsaid.pipeline.intake import DiskSpaceGuard, IntakeLimits, MessageIntake, TalkIntake
from keepsaid.pipeline.leasing import Leases, LeaseTerms, LifeTerms, ProcessAge
from keepsaid.pipeline.outbox import OutboxSender
from keepsaid.pipeline.turn.commands import BURIED, BURIED_AGAIN, PARKED, HomeReports
from keepsaid.ports import channel, memory_store, store
from keepsaid.ports.model import Loadable, Model, Tool, at_once
from keepsaid.ports.runtime import Clock, Hint, Ids, Lock, Offload, Peers, Space, StopToken, inline
from keepsaid.ports.telemetry import NO_TELEMETRY, Telemetry
from keepsaid.services import reading
from keepsaid.services.inbox import ProgressHub
from keepsaid.values import frozen

_SPACE_MS = 2_000
"""How often the disk is looked at."""

_FILES_MS = 1_000
"""How often files and lock are compared with their paths; the stores compare theirs at every commit too."""

_FORGET_MS, _GAUGE_MS, _EMBED_MS = 1_000, 10_000, 1_000
"""How often requests to forget are looked for, what waits is measured, and what has no vectors yet gets them."""

_LEAD_MS = 60_000
"""How often it is asked whether this process leads; it is woken when it does."""

_PRUNE_MS = 60_000
"""How often it is asked whether a run of the pruner is due."""


def _name_of_process(ids: Ids) -> str:
    """A name that no other process has, on whatever machine."""
    return f"{platform.node() or 'unknown'}-{os.getpid()}-{ids.next():x}"


@frozen
class Outside:
    """What surrounds an instance: time, identifiers, channels and tools beside its own, and how full its disk is.

    `redactor` is the one that its stores were opened with; `lock` is held instead of the home's own. `offload` runs
    what reads long texts. `answerer` answers messages in place of the model, which keeps its other work: summaries,
    extraction, tasks. `life` says when a batch that may stop the program is tried. `peers` are the processes that share
    the stores.
    """

    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)
    channels: Mapping[str, channel.Channel] = field(default_factory=dict)
    tools: Sequence[Tool] = ()
    space: Space | None = None
    redactor: PatternRedactor | None = None
    answerer: Model | None = None
    embedder: memory_store.Embedder | None = None
    former: Former = no_former
    extensions: Sequence[discovery.FoundExtension] = ()
    lock: Lock | None = None
    offload: Offload = inline
    life: LifeTerms = LifeTerms()
    fence: trust.Fence = trust.UNKEYED
    peers: Peers | None = None
    telemetry: Telemetry = NO_TELEMETRY


class Instance:
    """One home, opened for work under its lock. `start` makes it the runtime; without, it only takes commands."""

    def __init__(
        self,
        home: Home,
        config: Config,
        stores: tuple[store.Store, store.MemoryStore],
        model: Model,
        outside: Outside | None = None,
    ) -> None:
        outside = outside or Outside()
        self.home, self.config, self.telemetry = home, config, outside.telemetry
        operations, memories = self.operations, self.memories = stores
        self.redactor, self.model, self.hub = outside.redactor or redaction.redactor_of(config), model, ProgressHub()
        system = clock, ids = self.clock, self.ids = outside.clock, outside.ids
        self.channels, self.hooks = dict(outside.channels), dict[str, channel.Hook]()
        lender = loaded.extension_id_of(config.memory.embedder)
        embedder = loaded.ExtensionEmbedder(lender, self._active_extensions) if lender else outside.embedder
        self.embedding = Embedding(embedder, memories, clock, outside.former) if embedder else None
        answers = Punctual(outside.answerer) if outside.answerer else model
        limits = LEG_SHARE * agent.recall_deadline_ms(config, answers), PATIENT_MS
        self.recall, self.search = (recollection(memories, clock, limit, self.embedding) for limit in limits)
        self.recorder = memory.recorder_of(config, operations, memories, clock, self.redactor)
        compaction = models.compaction_of(config, operations, model, clock, (self.redactor, outside.offload))
        self.copier = models.copier_of(config, operations, memories, clock)
        self.briefings = models.briefings_of(config, memories, model, clock)
        self.halt, self.forgetting, self._recorded = StopToken(), Hint(), asyncio.Event()
        self.maintenance = memory.maintenance_of(config, memories, clock, (self.embedding, model), self.halt)
        self.compactor = caretakers.Compactor(compaction, config.compaction.concurrent_max)
        readers, outage_ms = (model, self._active_extensions), int(config.models.outage_s * 1000)
        self.collecting = replace(memory.collecting_of(config, stores, readers, system, self.redactor), halt=self.halt)
        self.forgetter = forgetter_of(operations, memories, system, self.halt, home)
        self._early = agent.IntakePrefetcher(config, self.recall, memories, self.recorder, clock)
        have = agent.Faculties(
            self._early.recall, self.search, self.recorder, self.briefings, self.compactor, self.forgetter
        )
        self.toolbox = channels.Toolbox(channels.servers_of(home, config, clock))
        told, offered = Previews(self.hub, self.channels, clock), (outside.tools, self._contributions(), self.toolbox)
        rest = HomeReports(self._describe_status, self._describe_inbox), outside.offload, outside.fence, self.channels
        builder = agent.AgentBuilder(home, config, stores, answers, have, system, told, offered, *rest, self.telemetry)
        self.flow = builder.flow()
        self.recorder.watch((hints := self.flow.hints).record, shares=outside.life.shares)
        self.telling = services.EventService(operations, *system, memories.news, shares=outside.life.shares)
        self.extending = self._extending(outside.extensions, builder.memory_tools)
        self.scheduling = ScheduleRunner(config, operations, system, hints, outside.fence)
        self.reloading = extending.reloading_of(home, config, self.flow, (operations, clock), outside.extensions)
        self.owner, loads = _name_of_process(ids), model.load if isinstance(model, Loadable) else at_once
        parts = (*builder.task_parts(), self.extending.agents, builder.own_tools, builder.worker_tool_names)
        site = TaskRunnersDeps(home, config, operations, memories, self.redactor, model, *parts)
        self.working = TaskRunners(site, system, hints, self.owner)
        self.life = ProcessAge(operations, clock, self.owner, outside.life, loads)
        ours, terms = (operations, clock, ids, self.owner), LeaseTerms(ageing=config.priority.ageing())
        self.leases = Leases(*ours, terms, hints, self.life)
        self.attempt = workers.Attempt(operations, told, clock, ids, workers.RetryPolicy(outage_ms))
        space = outside.space or DiskSpace(*folders_of(home, config))
        self.reserve = DiskSpaceGuard(space, config.buffer.min_free_disk_mb)
        self._lock, self._files, self._door = outside.lock, FileWatch(in_use(home, config)), self._way_in()
        self.pruner = caretakers.Pruner(operations, clock, config.buffer.terms(), self.halt)
        self._sleepers = caretakers.SessionExpirer(operations, clock, config.sessions.terms())
        warn_count, warn_age_ms = config.buffer.warn_count, int(config.buffer.warn_age_s * 1000)
        self._gauge = supervisor.BacklogMonitor(operations, clock, supervisor.BacklogLimits(warn_count, warn_age_ms))
        self._supervisor: supervisor.Supervisor | None = None

    def meet(self, peers: Peers) -> None:
        """Wake the processes that share the stores, and be woken by them."""
        hints, news = self.flow.hints, self.memories.news.hint
        more = {"journal": self.operations.journal.hint, "news": news}
        more |= {"forget": self.forgetting, "life": self.life.hint}
        peers.join({**hints.named, **more}, {"held": hints.held, "settled": self.hub})

    @cached_property
    def keys(self) -> KeyRing:
        """The keys that are let in now."""
        ring = KeyRing(self.home, self.config, self.clock, self.redactor.learn)
        self.reloading.add(ReloadableKeys(ring))
        return ring

    @cached_property
    def services(self) -> Services:
        """What people and programs may ask beside talking."""
        return services.services_of(self)

    async def _describe_status(self) -> str:
        found = await self.services.status.read()
        below = (f"- {one}" for one in (*found.channels_waiting(), *found.concerns()))
        return "\n".join([found.describe("Running", works=True, asking=1), *below])

    async def _describe_inbox(self) -> str:
        return await self.services.inbox.describe_waiting()

    def _way_in(self) -> tuple[Admission, MessageIntake, ReactionFeedback]:
        config, operations, clock = self.config, self.operations, self.clock
        windows = {name: one.window(config.buffer.window()) for name, one in config.channels.items() if one.enabled}
        same_body_ms = {name: one.dedupe_content_ms for name, one in config.channels.items()}
        bounds = config.buffer.payload_bytes_max, config.buffer.text_chars_max
        limits = IntakeLimits(*bounds, same_body_ms=same_body_ms)
        rules, hints = config.access_rules(), self.flow.hints
        admission = Admission(operations, clock, self.ids, hints, rules, secrets.randbits)
        intake = MessageIntake(operations, clock, self.ids, windows, limits, self.reserve, config.lanes.rules())
        named = frozenset(name for name, one in config.channels.items() if one.feedback)
        return admission, intake, ReactionFeedback(operations, clock, named)

    def _active_extensions(self) -> Sequence[loaded.LoadedExtension]:
        return self.extending.lifecycle.active

    @cached_property
    def fetcher(self) -> FileFetcher:
        deps = FetchDeps(self.operations, self.clock, self.flow.hints.files, lambda: self.reserve.reached)
        return files.fetcher_of(self.config, deps, self.channels, self._active_extensions)

    def _contributions(self) -> contributions.ExtensionContributions:
        return contributions.ExtensionContributions(
            self._active_extensions,
            self.clock,
            lambda: self.extending.note(),  # noqa: PLW0108 - it is made later
        )

    def _extending(
        self, found: Sequence[discovery.FoundExtension], memory_tools: Callable[[turn.ClaimedBatch], Sequence[Tool]]
    ) -> extending.ExtensionService:
        outer = self.telling, self.receive, self.clock, self.ids, self.flow.hints
        ours = extending.ours_of(self.config, found)
        host = extending.ExtensionHost(
            self.config, self.operations, *outer, reading.ReadingService(self.operations, self.search), ours
        )
        stages = self.collecting.stages
        self.lines = LineBoard(self.operations, self.clock, partial(write_lines, self.home))
        last = self.clock, self.home.state, self.lines, self.operations.files
        parts = Parts(self.config, memory_tools, stages, ours, *last)
        return extending.ExtensionService(self.home, found, host, self.redactor, parts)

    async def receive(self, inbound: message.Inbound) -> commits.Received:
        """Take a message in; returns once it is on disk. Raises InputError or StoreError."""
        if self.failure is not None:
            raise copy(self.failure)
        admission, intake, feedback = self._door
        inbound = await admission.admit(inbound)
        received = await self.flow.receive(intake, inbound)
        await admission.send_code(inbound, received)
        await feedback.record(inbound, received)
        return self._early.expect(inbound, received)

    async def record(self, said: Sequence[message.Inbound]) -> tuple[commits.Received, ...]:
        """Keep what was said and answered elsewhere, messages of one lane. Raises InputError or StoreError."""
        if self.failure is not None:
            raise copy(self.failure)
        self.life.terms.check_takes_in()
        inactive_ms = self.config.sessions.terms().inactive_ms
        return await TalkIntake(self._door[1], self.owner, self.flow.hints, inactive_ms).record(said)

    @property
    def failure(self) -> StoreBroken | None:
        """Why nothing is acknowledged any more: the disk failed, or a file in use is gone; None while all is well."""
        if self._supervisor is None or not self._supervisor.broken.done():
            return None
        return self._supervisor.broken.result()

    @property
    def running(self) -> bool:
        return self._supervisor is not None

    async def start(self, *, answering: bool = True) -> supervisor.Recovered:
        """Recover what a former process left and start the stages; without `answering` others take the batches."""
        await self.extending.begin(self.channels, self.hooks)
        self.reloading.add(self.scheduling)
        self.reloading.add(extending.ReloadableExtensions(self.extending.lifecycle))
        self._check_rule_tools()
        hint, limits = self.flow.hints.deliver, channels.send_limits(self.config)
        post = OutboxSender(
            self.operations, self.channels, self.clock, self.owner, hint, limits, self.life, self.telemetry
        )
        turns = self.config.turns
        places = workers.TurnConcurrency(turns.concurrent_max, turns.slow_s, turns.open_max)
        works = self.life.terms.works
        answering = answering and works and turns.answered_by == "keepsaid"
        self._early.expecting = answering and not self.life.terms.shares
        answerers = workers.Workers(self.flow, self.operations, self.leases, self.attempt, self.clock, places)
        notices = caretakers.CrashNotices(BURIED, BURIED_AGAIN, PARKED)
        trials, sharing = self.life.terms.trials, self.life.sharing
        charge = self.services.batches.charge_expired if turns.answered_by == "workers" else None
        rescuer = caretakers.Rescuer(
            self.operations, self.clock, self.ids, self.owner, notices, trials, sharing, charge
        )
        crew = supervisor.SupervisedServices(self.flow, rescuer, post, self.life, answerers if answering else None)
        self.ids.follow(await self.operations.last_id())
        running = self._supervisor = supervisor.Supervisor(crew, self.operations, self.clock, self.owner)
        self.reserve.look()
        loop = supervisor.ServiceLoop
        everywhere = [
            loop("life", self.life.work, self.life.hint, vital=self.life.terms.shares),
            loop("space", self.reserve.work, asyncio.Event(), poll_ms=_SPACE_MS, vital=False),
            loop("files", self._look_at_files, asyncio.Event(), poll_ms=_FILES_MS),
            loop("compact", self.compactor.work, self.compactor.hint, vital=False),
            loop("lines", self.lines.work, self.lines.hint, vital=False),
            *self._bulletin_loops(),
            *self.telling.stages(),
            *(self.working.stages() if works else ()),
            *self.toolbox.stages(),
        ]
        if self.life.terms.shares:
            everywhere.append(loop("lead", self._lead_once_chosen, self.life.chosen, poll_ms=_LEAD_MS))
            return await running.start(everywhere)
        leading = await self._leading_loops()
        recovered = await running.start(everywhere)
        running.lead(leading)
        return recovered

    async def _lead_once_chosen(self) -> None:
        """Do what one process does of those that share the stores, from when this one is chosen to its end."""
        running = self._supervisor
        if running is not None and self.life.leads and not running.leads:
            running.lead(await self._leading_loops())

    async def _leading_loops(self) -> Sequence[supervisor.ServiceLoop]:
        """Recover what the former leader had begun; returns what runs in one process."""
        await asyncio.gather(self.forgetter.recover(), self.fetcher.recover())
        await extending.join_calendars(self.extending, self.scheduling, self.config.schedules.timezone)
        loop = supervisor.ServiceLoop
        scheduled = await self.scheduling.start(self.receive, self.channels)
        await self.telling.lead()
        return [
            loop("record", self._record, self.flow.hints.record, vital=False),
            loop("forget", self.forgetter.work, self.forgetting, poll_ms=_FORGET_MS, vital=False),
            loop("fetch", self.fetcher.work, self.flow.hints.files, vital=False),
            loop("gauge", self._gauge.work, asyncio.Event(), poll_ms=_GAUGE_MS, vital=False),
            *self._memory_loops(),
            *self.telling.leading_stages(),
            *self.extending.lead(),
            *scheduled,
            *self.working.leading_stages(self.receive),
            loop("prune", self.pruner.work, asyncio.Event(), poll_ms=_PRUNE_MS, vital=False),
            loop("sessions", self._sleepers.work, asyncio.Event(), self._sleepers.poll_ms, vital=False),
        ]

    def _check_rule_tools(self) -> None:
        """Refuse rules that list unknown tools, now and at every reload. Raises ConfigError."""
        guests = self.extending.lifecycle.guests.values()
        ready = loaded.State.ACTIVE, loaded.State.OFF
        checked = RuleTools(self.working.tool_names, lambda: all(one.state in ready for one in guests))
        checked.check(self.config)
        self.reloading.add(checked)

    async def _look_at_files(self) -> None:
        """Raise StoreGone when the lock, a store or a directory of theirs is no longer at its path."""
        if self._lock is not None:
            self._lock.check()
        self._files.check()

    def _bulletin_loops(self) -> Iterator[supervisor.ServiceLoop]:
        """The bulletins that turns of this process asked for."""
        if self.briefings is not None:
            yield supervisor.ServiceLoop("bulletin", self.briefings.work, self.briefings.hint, vital=False)

    def _memory_loops(self) -> Iterator[supervisor.ServiceLoop]:
        if self.embedding is not None:
            yield supervisor.ServiceLoop("embed", self.embedding.work, self._recorded, poll_ms=_EMBED_MS, vital=False)
        if self.config.maintenance.enabled:
            yield supervisor.ServiceLoop(
                "maintain", self.maintenance.work, asyncio.Event(), poll_ms=_PRUNE_MS, vital=False
            )

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
            running, self._supervisor = self._supervisor, None
            await self.extending.listeners.end()
            await self.fetcher.stop()
            await self.telling.stop()
            await self.scheduling.stop()
            await asyncio.gather(running.stop(stop_s), self.working.stop(stop_s))
            await self.compactor.stop()
            self.life.hint.set()
        await self.extending.end()
