"""Runners of tasks and schedules, joined from the config, the stores and the models of an instance."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

from keepsaid.adapters.models.choose import LazyChat
from keepsaid.adapters.system.files import SkillFolder
from keepsaid.app.serving import Prepared
from keepsaid.app.telemetry import instrument_of, metered_as
from keepsaid.config import Config, Home
from keepsaid.config.services import SchedulesConfig
from keepsaid.domain import commits, message, route, task, trust, turn
from keepsaid.engine import tasks, workers
from keepsaid.engine.scheduler import JobHandler, JobRunner, Scheduler, SchedulerDeps
from keepsaid.engine.supervisor import ServiceLoop
from keepsaid.engine.tasks import TaskLimits
from keepsaid.memory.recording import Results, StagedRequestExecutor
from keepsaid.pipeline.turn import agents, authorization, run, worker
from keepsaid.ports import extension
from keepsaid.ports.model import Model, Tool
from keepsaid.ports.runtime import Clock, Ids, Redactor, Wakeups
from keepsaid.ports.store import MemoryStore, Store
from keepsaid.services.schedules import ScheduleService
from keepsaid.values import frozen

_RELAY_MS = 1_000
"""The interval of checks for a person's new message in a lane that reached its limit of results."""

_EXPIRY_MS = 60_000
"""How often it is looked whether a call waits for approval that nobody has looked at before."""

Agents = Callable[[], Mapping[str, extension.Agent]]
"""Returns the agents of the extensions that are active, by the id of the extension."""

Tooling = Callable[[], Sequence[Tool]]


@frozen
class TaskRunnersDeps:
    """Dependencies of the task runners: home, settings, stores, model, and the tools that workers may use.

    `past` reads what a branch knows of its lane; `asking` asks the owner about calls refused to a worker; `agents`
    returns the agents of extensions, `own` the tools of one task, `tool_names` all that a worker may be given.
    """

    home: Home
    config: Config
    store: Store
    memories: MemoryStore
    redactor: Redactor
    model: Model
    tools: Tooling
    past: worker.Hindsight
    asking: Callable[[task.Task], authorization.Approvals] | None = None
    fence: trust.Fence = trust.UNKEYED
    agents: Agents = dict
    own: worker.OwnTools = worker.no_own_tools
    tool_names: Callable[[], frozenset[str]] = frozenset


class TaskRunners:
    """Run the tasks, branches and approved calls of one instance."""

    def __init__(self, site: TaskRunnersDeps, system: tuple[Clock, Ids], hints: Wakeups, owner: str) -> None:
        self._site = site
        self._clock, self._ids = system
        self._hints = hints
        self._chats: dict[str, LazyChat] = {}
        self._started = False
        config = site.config
        models, terms = config.models, config.tasks
        limits = run.TurnLimits(terms.steps_max, models.tokens_max, models.timeout_s, tokens_in_max=terms.tokens_in_max)
        skills = SkillFolder(site.home.agent(config.agent))
        lent = site.store, self._model, site.tools
        bench = worker.WorkerDeps(*lent, skills, limits, site.asking, site.fence, site.own)
        around = tasks.TaskRunnerDeps(site.store, *system, hints, owner)
        patience = workers.RetryPolicy(outage_ms_max=int(models.outage_s * 1000))
        working = tasks.TaskHandler(partial(worker.work, bench), self._idle)
        thinking = tasks.TaskHandler(partial(worker.run_branch, bench, site.past), self._idle, route.TaskKind.BRANCH)
        calling = tasks.TaskHandler(partial(tasks.make_call, site.tools), lambda: False, route.TaskKind.CALL)
        kind = route.TaskKind.AGENT
        invoking = tasks.TaskHandler(partial(agents.run_agent, bench, site.agents), self._agents_idle, kind)
        at_once, aside = (TaskLimits(most, terms.timeout_s) for most in (terms.concurrent_max, terms.branches_max))
        self._runners = {
            "tasks": tasks.Tasks(working, around, at_once, patience),
            "branches": tasks.Tasks(thinking, around, aside, patience),
            "calls": tasks.Tasks(calling, around, at_once, patience),
            "agents": tasks.Tasks(invoking, around, at_once, patience),
        }
        deeds = StagedRequestExecutor(site.memories, site.memories.revisions)
        self.results = Results(site.store, site.memories, self._clock, site.redactor, deeds)

    def _model(self, name: str) -> Model:
        if not name:
            return self._site.model
        if name not in self._chats:
            self._chats[name] = LazyChat(name, self._site.config.models, instrument_of(self._site.model))
        return metered_as(self._site.model, self._chats[name])

    def _idle(self) -> bool:
        return self._model("").name == turn.NO_MODEL

    def _agents_idle(self) -> bool:
        """Whether no agent can work: without a model, those that are described wait, and those in code work."""
        in_code = (one for one in self._site.agents().values() if not isinstance(one, extension.DescribedAgent))
        return self._idle() and not any(in_code)

    def stages(self) -> Sequence[ServiceLoop]:
        """The stages that do tasks."""
        self._started = True
        return [ServiceLoop(name, one.claim, one.hint) for name, one in self._runners.items()]

    def leading_stages(
        self, receive: Callable[[message.Inbound], Awaitable[commits.Received]]
    ) -> Sequence[ServiceLoop]:
        """The stages that tell the lanes that asked for tasks what they came to, and end what nobody approved."""
        site, terms = self._site, tasks.RelayTerms(self._site.config.tasks.retriggers_max)
        relay = tasks.ResultRelay(site.store, site.store.tasks, self._clock, receive, terms, site.fence)
        relaying = ServiceLoop("relay", relay.work, self._hints.relay, poll_ms=_RELAY_MS, vital=False)
        expiry = tasks.Expiry(site.store, self._clock)
        expiring = ServiceLoop("approvals", expiry.work, asyncio.Event(), poll_ms=_EXPIRY_MS, vital=False)
        return relaying, expiring

    def wake(self) -> None:
        """Look for tasks that are due."""
        for one in self._runners.values():
            one.hint.set()

    def stop_running(self, task_id: int) -> None:
        """Stop a task that was cancelled while it runs."""
        for one in self._runners.values():
            one.cancelled(task_id)

    def unknown_tools(self, names: Sequence[str]) -> Sequence[str]:
        """Return those of these names that no tool of a worker has; none before the runners start."""
        if not (names and self._started):
            return ()
        known = self.tool_names() | {worker.SET_STATUS}
        return [name for name in names if name not in known]

    def tool_names(self) -> frozenset[str]:
        """Return the names of all tools that a worker may be given now."""
        return self._site.tool_names()

    async def stop(self, patience_s: float) -> None:
        """Let running tasks end for a while, then give them back."""
        await asyncio.gather(*(one.stop(patience_s) for one in self._runners.values()))
        for chat in self._chats.values():
            await chat.close()


OWNERS_LANE = message.Lane("terminal", "default", "terminal", "root:terminal")
"""Where the owner hears of what failed, as long as he has written in no direct chat."""

_STOP_S = 5.0


class ScheduleRunner:
    """Runs the schedules of one instance; follows the settings `keys` while it runs."""

    keys: tuple[str, ...] = ("schedules.named", "schedules.quiet", "schedules.timezone")

    def __init__(
        self, config: Config, store: Store, system: tuple[Clock, Ids], hints: Wakeups, fence: trust.Fence
    ) -> None:
        self._config = config.schedules
        self._store = store
        self._clock, self._ids = system
        self._hints = hints
        self._fence = fence
        self._jobs = JobRunner(at_once=self._config.concurrent_max)
        channels = {name for name, channel in config.channels.items() if channel.enabled}
        self.service = ScheduleService(store, *system, self._jobs, channels)
        self.service.hint = hints.schedule

    def register_job(self, name: str, job: JobHandler) -> None:
        """Register a job under the name by which schedules run it."""
        self._jobs.known[name] = job

    async def start(
        self, receive: Callable[[message.Inbound], Awaitable[commits.Received]], channels: Iterable[str]
    ) -> Sequence[ServiceLoop]:
        """Recover the runs of a former process, apply the schedules of the config, and return the service."""
        if not self._config.enabled:
            return ()
        self.service.channels.update(channels)
        reach = SchedulerDeps(receive, frozenset(self.service.channels), self._hints, OWNERS_LANE, self._fence)
        scheduler = Scheduler(self._store, self._clock, self._ids, reach, self._jobs, self._config.quiet_hours())
        await scheduler.recover()
        self.service.scheduler = scheduler
        await self._follow(self._config)
        return (ServiceLoop("schedule", scheduler.work, self._hints.schedule, vital=False),)

    async def prepare(self, config: Config) -> Prepared:
        """Prepare to follow changed settings."""
        return Prepared(partial(self._follow, config.schedules))

    async def _follow(self, settings: SchedulesConfig) -> None:
        self._config = settings
        if self.service.scheduler is not None:
            self.service.scheduler.quiet = settings.quiet_hours()
        named = [one.schedule(self._ids.next(), name, settings.timezone) for name, one in settings.named.items()]
        await self.service.replace("config", named)

    async def stop(self) -> None:
        """Stop the jobs that run."""
        await self._jobs.stop(_STOP_S)
