"""Working: tasks of one instance: what workers work with, and the word of people on what they do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from keepsaid.adapters.models.choose import LazyChat
from keepsaid.adapters.sqlite.memory_store import SqliteMemories
from keepsaid.adapters.system.agent_files import SkillFolder
from keepsaid.config import Config, Home
from keepsaid.domain.commits import Received
from keepsaid.domain.fence import UNKEYED, Fence
from keepsaid.domain.ids import show
from keepsaid.domain.message import Inbound
from keepsaid.domain.task import CancelTask, CreateTasks, DecideTask, NewTask, RunTask, Task
from keepsaid.domain.turn import NO_MODEL
from keepsaid.domain.work import TaskKind
from keepsaid.engine.relay import Relay, RelayTerms
from keepsaid.engine.supervisor import Stage
from keepsaid.engine.tasks import Craft, Expiry, Surroundings, TaskLimits, Tasks, make_call
from keepsaid.engine.workers import Patience
from keepsaid.errors import InputError
from keepsaid.memory.recording import Deeds, Results
from keepsaid.pipeline.turn.authorization import Asking
from keepsaid.pipeline.turn.run import TurnLimits
from keepsaid.pipeline.turn.worker import Bench, Hindsight, think, work
from keepsaid.ports.model import Model, Tool
from keepsaid.ports.redactor import Redactor
from keepsaid.ports.runtime import Clock, Hints, Ids
from keepsaid.ports.store import Store
from keepsaid.text.normal import normalise

_RELAY_MS = 1_000
"""How often it is looked whether a person has spoken in a lane that was told often enough."""

_EXPIRY_MS = 60_000
"""How often it is looked whether a call waits for approval that nobody has looked at before."""

Tooling = Callable[[], Sequence[Tool]]


@dataclass(frozen=True, slots=True)
class Site:
    """Where work is done: a home, its settings and stores, a model, the tools that workers may use.

    `past` is what a branch knows of its lane, `asking` puts the calls that a worker is refused before the owner.
    """

    home: Home
    config: Config
    store: Store
    memories: SqliteMemories
    redactor: Redactor
    model: Model
    tools: Tooling
    past: Hindsight
    asking: Callable[[Task], Asking] | None = None
    fence: Fence = UNKEYED


class Working:
    """The tasks of one instance."""

    def __init__(self, site: Site, system: tuple[Clock, Ids], hints: Hints, owner: str) -> None:
        self._site = site
        self._clock, self._ids = system
        self._hints = hints
        self._chats: dict[str, LazyChat] = {}
        config = site.config
        models, terms = config.models, config.tasks
        limits = TurnLimits(terms.steps_max, models.tokens_max, models.timeout_s, tokens_in_max=terms.tokens_in_max)
        skills = SkillFolder(site.home.agent(config.agent))
        bench = Bench(site.store, self._model, site.tools, skills, limits, site.asking, site.fence)
        around = Surroundings(site.store, site.store.tasks, *system, hints, owner)
        patience = Patience(outage_ms_max=int(models.outage_s * 1000))
        working, thinking, calling = (
            Craft(partial(work, bench), self._idle),
            Craft(partial(think, bench, site.past), self._idle, TaskKind.BRANCH),
            Craft(partial(make_call, site.tools), lambda: False, TaskKind.CALL),
        )
        self._tasks = Tasks(working, around, TaskLimits(terms.concurrent_max, terms.timeout_s), patience)
        self._branches = Tasks(thinking, around, TaskLimits(terms.branches_max, terms.timeout_s), patience)
        self._calls = Tasks(calling, around, TaskLimits(terms.concurrent_max, terms.timeout_s), patience)
        self.view = site.store.tasks
        deeds = Deeds(site.memories, site.memories.truth)
        self.results = Results(site.store.tasks, site.store, site.memories, self._clock, site.redactor, deeds)

    def _model(self, name: str) -> Model:
        if not name:
            return self._site.model
        if name not in self._chats:
            self._chats[name] = LazyChat(name, self._site.config.models)
        return self._chats[name]

    def _idle(self) -> bool:
        return self._model("").name == NO_MODEL

    def stages(self, receive: Callable[[Inbound], Awaitable[Received]]) -> Sequence[Stage]:
        """The stages that do tasks, and tell the lanes that asked for them what they came to."""
        branches = Stage("branches", self._branches.claim, self._branches.hint)
        terms = RelayTerms(self._site.config.tasks.retriggers_max)
        relay = Relay(self._site.store, self.view, self._clock, receive, terms, self._site.fence)
        relaying = Stage("relay", relay.work, self._hints.relay, poll_ms=_RELAY_MS, vital=False)
        calls = Stage("calls", self._calls.claim, self._calls.hint)
        expiry = Expiry(self._site.store, self.view, self._clock)
        expiring = Stage("approvals", expiry.work, asyncio.Event(), poll_ms=_EXPIRY_MS, vital=False)
        return (Stage("tasks", self._tasks.claim, self._tasks.hint), branches, calls, relaying, expiring)

    def woken(self) -> None:
        """Tasks may have been made."""
        for one in (self._tasks, self._branches, self._calls):
            one.hint.set()

    async def create(self, new: NewTask) -> int:
        """Make a task by a person's word; returns its id. Raises InputError with nothing made."""
        made = replace(new, id=self._ids.next(), description=normalise(new.description))
        refusal = await self._site.store.apply(CreateTasks((made,), self._clock.now_ms()))
        if refusal:
            raise InputError(
                f"the task cannot be made: {refusal}", safe="Nothing was changed.", hint="keepsaid task ls"
            )
        self.woken()
        return made.id

    async def cancel(self, task_id: int, reason: str) -> bool:
        """End a task that has not ended; what still runs of it is stopped."""
        done = await self._site.store.apply(CancelTask(task_id, self._clock.now_ms(), normalise(reason)))
        for one in (self._tasks, self._branches, self._calls):
            one.cancelled(task_id)
        self.woken()
        return done

    async def run(self, task_id: int) -> bool:
        """Make a pending task due at once."""
        done = await self._site.store.apply(RunTask(task_id, self._clock.due_ms()))
        self.woken()
        return done

    async def decide(self, task_id: int, *, approved: bool, reason: str = "", result: str | None = None) -> bool:
        """A person's word on a task that waits for review."""
        given = None if result is None else normalise(result)
        why = normalise(reason) or f"{show('task', task_id)} was refused"
        done = await self._site.store.apply(DecideTask(task_id, self._clock.now_ms(), approved, why, given))
        self.woken()
        return done

    async def stop(self, patience_s: float) -> None:
        """Let running tasks end for a while, then give them back."""
        await asyncio.gather(*(one.stop(patience_s) for one in (self._tasks, self._branches, self._calls)))
        for chat in self._chats.values():
            await chat.close()
