"""Schedules and tasks of one instance, joined from its config, from commands and from what the agent makes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from keepsaid.adapters.models.choose import LazyChat
from keepsaid.adapters.system.files import SkillFolder
from keepsaid.app.serving import Prepared
from keepsaid.config import Config, Home
from keepsaid.config.services import SchedulesConfig
from keepsaid.domain import commits, message, scheduling, task, timing, trust, turn
from keepsaid.domain.ids import MAX_ID, show
from keepsaid.domain.route import TaskKind
from keepsaid.domain.schedule import LIVE, NewSchedule, Schedule, What
from keepsaid.engine.scheduler import JobHandler, JobRunner, Scheduler, SchedulerDeps
from keepsaid.engine.supervisor import ServiceLoop
from keepsaid.engine.tasks import (
    Expiry,
    RelayTerms,
    ResultRelay,
    TaskHandler,
    TaskLimits,
    TaskRunnerDeps,
    Tasks,
    make_call,
)
from keepsaid.engine.workers import RetryPolicy
from keepsaid.errors import InputError
from keepsaid.memory.recording import Results, StagedRequestExecutor
from keepsaid.pipeline.turn import authorization, worker
from keepsaid.pipeline.turn.run import TurnLimits
from keepsaid.ports.model import Model, Tool
from keepsaid.ports.runtime import Clock, Ids, Redactor, Wakeups
from keepsaid.ports.store import MemoryStore, Store
from keepsaid.ports.store_views import ScheduleView
from keepsaid.text.normal import normalise
from keepsaid.values import frozen

_RELAY_MS = 1_000
"""How often it is looked whether a person has spoken in a lane that was told often enough."""

_EXPIRY_MS = 60_000
"""How often it is looked whether a call waits for approval that nobody has looked at before."""

Tooling = Callable[[], Sequence[Tool]]


@frozen
class TaskServiceDeps:
    """Dependencies of the task service: home, settings, stores, model, and the tools that workers may use.

    `past` reads what a branch knows of its lane; `asking` asks the owner about calls refused to a worker.
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


class TaskService:
    """The tasks of one instance."""

    def __init__(self, site: TaskServiceDeps, system: tuple[Clock, Ids], hints: Wakeups, owner: str) -> None:
        self._site = site
        self._clock, self._ids = system
        self._hints = hints
        self._chats: dict[str, LazyChat] = {}
        config = site.config
        models, terms = config.models, config.tasks
        limits = TurnLimits(terms.steps_max, models.tokens_max, models.timeout_s, tokens_in_max=terms.tokens_in_max)
        skills = SkillFolder(site.home.agent(config.agent))
        bench = worker.WorkerDeps(site.store, self._model, site.tools, skills, limits, site.asking, site.fence)
        around = TaskRunnerDeps(site.store, *system, hints, owner)
        patience = RetryPolicy(outage_ms_max=int(models.outage_s * 1000))
        working = TaskHandler(partial(worker.work, bench), self._idle)
        thinking = TaskHandler(partial(worker.run_branch, bench, site.past), self._idle, TaskKind.BRANCH)
        calling = TaskHandler(partial(make_call, site.tools), lambda: False, TaskKind.CALL)
        at_once, aside = (TaskLimits(most, terms.timeout_s) for most in (terms.concurrent_max, terms.branches_max))
        self._runners = {
            "tasks": Tasks(working, around, at_once, patience),
            "branches": Tasks(thinking, around, aside, patience),
            "calls": Tasks(calling, around, at_once, patience),
        }
        self.view = site.store.tasks
        deeds = StagedRequestExecutor(site.memories, site.memories.revisions)
        self.results = Results(site.store, site.memories, self._clock, site.redactor, deeds)

    def _model(self, name: str) -> Model:
        if not name:
            return self._site.model
        if name not in self._chats:
            self._chats[name] = LazyChat(name, self._site.config.models)
        return self._chats[name]

    def _idle(self) -> bool:
        return self._model("").name == turn.NO_MODEL

    def stages(self, receive: Callable[[message.Inbound], Awaitable[commits.Received]]) -> Sequence[ServiceLoop]:
        """The stages that do tasks, and tell the lanes that asked for them what they came to."""
        loops = [ServiceLoop(name, one.claim, one.hint) for name, one in self._runners.items()]
        terms = RelayTerms(self._site.config.tasks.retriggers_max)
        relay = ResultRelay(self._site.store, self.view, self._clock, receive, terms, self._site.fence)
        relaying = ServiceLoop("relay", relay.work, self._hints.relay, poll_ms=_RELAY_MS, vital=False)
        expiry = Expiry(self._site.store, self._clock)
        expiring = ServiceLoop("approvals", expiry.work, asyncio.Event(), poll_ms=_EXPIRY_MS, vital=False)
        return (*loops, relaying, expiring)

    def woken(self) -> None:
        """Tasks may have been made."""
        for one in self._runners.values():
            one.hint.set()

    async def create(self, new: task.NewTask) -> int:
        """Make a task by a person's word; returns its id. Raises InputError with nothing made."""
        made = replace(new, id=self._ids.next(), description=normalise(new.description))
        refusal = await self._site.store.apply(task.CreateTasks((made,), self._clock.now_ms()))
        if refusal:
            raise refused(f"the task cannot be made: {refusal}", "keepsaid task ls")
        self.woken()
        return made.id

    async def cancel(self, task_id: int, reason: str) -> bool:
        """End a task that has not ended; what still runs of it is stopped."""
        done = await self._site.store.apply(task.CancelTask(task_id, self._clock.now_ms(), normalise(reason)))
        for one in self._runners.values():
            one.cancelled(task_id)
        self.woken()
        return done

    async def run(self, task_id: int) -> bool:
        """Make a pending task due at once."""
        done = await self._site.store.apply(task.RunTask(task_id, self._clock.due_ms()))
        self.woken()
        return done

    async def decide(self, task_id: int, *, approved: bool, reason: str = "", result: str | None = None) -> bool:
        """A person's word on a task that waits for review."""
        given = None if result is None else normalise(result)
        why = normalise(reason) or f"{show('task', task_id)} was refused"
        done = await self._site.store.apply(task.DecideTask(task_id, self._clock.now_ms(), approved, why, given))
        self.woken()
        return done

    async def stop(self, patience_s: float) -> None:
        """Let running tasks end for a while, then give them back."""
        await asyncio.gather(*(one.stop(patience_s) for one in self._runners.values()))
        for chat in self._chats.values():
            await chat.close()


OWNERS_LANE = message.Lane("terminal", "default", "terminal", "root:terminal")
"""Where the owner hears of what failed, as long as he has written in no direct chat."""

_STOP_S = 5.0
_LISTED_MAX = 100_000
_TEXT_CHARS_MAX, _NAME_CHARS_MAX = 20_000, 200


def refused(what: str, hint: str = "keepsaid schedule add --help") -> InputError:
    """The error for a schedule or task that was not changed, by default for one that cannot be added."""
    return InputError(what, safe="Nothing was changed.", hint=hint)


async def one_of(view: ScheduleView, known_as: str, number: int | None) -> Schedule:
    """A schedule by its id, or by the name that a living one has; raises InputError."""
    found = None if number is None else await view.schedule(number)
    if found is None:
        living = await view.schedules(LIVE, 0, _LISTED_MAX)
        found = next((one for one in living if known_as and one.new.name == known_as), None)
    if found is None:
        raise refused(f"there is no schedule {known_as}", "keepsaid schedule ls")
    return found


class ScheduleService:
    """Schedules of one instance. Times are milliseconds UTC. The settings `keys` are followed while it works."""

    keys: tuple[str, ...] = ("schedules.named", "schedules.quiet", "schedules.timezone")

    def __init__(self, config: Config, store: Store, clock: Clock, ids: Ids, fence: trust.Fence) -> None:
        self.view = store.schedules
        self._config = config.schedules
        self._store = store
        self._clock = clock
        self._ids = ids
        self._fence = fence
        self._errands = JobRunner(at_once=self._config.concurrent_max)
        self._channels = {name for name, channel in config.channels.items() if channel.enabled}
        self._scheduler: Scheduler | None = None

    def register_job(self, name: str, errand: JobHandler) -> None:
        self._errands.known[name] = errand

    async def start(
        self, receive: Callable[[message.Inbound], Awaitable[commits.Received]], hints: Wakeups, channels: Iterable[str]
    ) -> Sequence[ServiceLoop]:
        """Take up what a former process left, and what the config says now; returns the stage."""
        if not self._config.enabled:
            return ()
        self._channels |= set(channels)
        reach = SchedulerDeps(receive, frozenset(self._channels), hints, OWNERS_LANE, self._fence)
        scheduler = Scheduler(self._store, self._clock, self._ids, reach, self._errands, self._config.quiet_hours())
        await scheduler.recover()
        self._scheduler = scheduler
        await self._follow(self._config)
        return (ServiceLoop("schedule", scheduler.work, scheduler.hint, vital=False),)

    async def prepare(self, config: Config) -> Prepared:
        return Prepared(partial(self._follow, config.schedules))

    async def _follow(self, settings: SchedulesConfig) -> None:
        self._config = settings
        if self._scheduler is not None:
            self._scheduler.quiet = settings.quiet_hours()
        zone = settings.timezone
        named = [one.schedule(self._ids.next(), name, zone) for name, one in settings.named.items()]
        await self.replace("config", named)

    async def stop(self) -> None:
        """Break off what is being run."""
        await self._errands.stop(_STOP_S)

    async def replace(self, source: str, schedules: Sequence[NewSchedule]) -> int:
        """Let the schedules of a source be these; returns how many changed."""
        now = self._clock.now_ms()
        wanted = tuple((replace(one, source=source), timing.first_due(one.timing, now)) for one in schedules)
        changed = await self._store.apply(scheduling.ReplaceSchedules(source, wanted, now))
        self._wake()
        return changed

    async def add(self, schedule: NewSchedule) -> Schedule:
        """Add one under a new id; raises InputError for what cannot come or be heard, or has another's name."""
        now = self._clock.now_ms()
        new = replace(schedule, id=self._ids.next())
        self._check(new)
        next_at = timing.first_due(new.timing, now)
        if next_at is None:
            raise refused("that time is over")
        if not await self._store.apply(scheduling.AddSchedule(new, next_at, now)):
            raise refused(f"there is a schedule {new.name!r} already")
        self._wake()
        return Schedule(new, "active", next_at, created_at=now)

    def _check(self, new: NewSchedule) -> None:
        try:
            timing.checked(new.timing)
        except ValueError as error:
            raise refused(str(error)) from None
        if not new.text.strip() or len(new.text) > _TEXT_CHARS_MAX or len(new.name) > _NAME_CHARS_MAX:
            limits = f"a text of at most {_TEXT_CHARS_MAX:,} characters, and a name of {_NAME_CHARS_MAX}"
            raise refused(f"a schedule needs {limits}")
        if new.what in (What.SAY, What.ASK) and (new.target is None or new.target.lane.channel not in self._channels):
            known = ", ".join(sorted(self._channels))
            raise refused(f"it has to be heard on a channel that is open: {known}")
        if new.what is What.RUN and self._scheduler is not None and new.text not in self._errands.known:
            known = ", ".join(sorted(self._errands.known)) or "nothing"
            raise refused(f"nothing here is called {new.text!r}; known are: {known}")

    async def one(self, known_as: str, number: int | None) -> Schedule:
        """A schedule by its id, or by the name that a living one has; raises InputError."""
        return await one_of(self.view, known_as, number)

    async def move(self, schedule: Schedule, verb: str) -> bool:
        """Pause, resume or cancel one; False when it does not stand so. Raises InputError for a time that is over."""
        now, next_at = self._clock.now_ms(), None
        if verb == "resume":
            next_at = timing.first_due(schedule.new.timing, now)
            if next_at is None and isinstance(schedule.new.timing, timing.Once):
                raise refused("that time is over", "keepsaid schedule run")
        if verb == "cancel" and schedule.new.source == "config":
            hint = f"keepsaid schedule pause {show('schedule', schedule.id)}"
            raise refused("it stands in the config: take it out there, or pause it", hint)
        done = await self._store.apply(scheduling.MoveSchedule(schedule.id, verb, now, next_at))
        self._wake()
        return done

    async def run(self, schedule: Schedule) -> bool:
        """Run one now, beside its times; False when it is at work, or comes no more."""
        done = await self._store.apply(scheduling.RunNow(schedule.id, self._clock.now_ms()))
        self._wake()
        return done

    async def listed(
        self, states: Sequence[str] = LIVE, limit: int = _LISTED_MAX, after: int = 0
    ) -> Sequence[Schedule]:
        """Schedules in these states behind an id, by id."""
        return await self.view.schedules(states, after, min(limit, MAX_ID))

    def _wake(self) -> None:
        if self._scheduler is not None:
            self._scheduler.hint.set()
