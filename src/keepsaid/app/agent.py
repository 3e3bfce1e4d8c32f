"""The agent of an instance: who answers, what is recalled, which tools a turn has, and side work and branches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

from keepsaid.adapters.system.files import IdentityFiles, SkillFolder
from keepsaid.adapters.system.machine import one_time_code
from keepsaid.app import channels, models
from keepsaid.app.stores import PATIENT_MS, archive_of
from keepsaid.app.telemetry import TracedRecall, TracedReminder
from keepsaid.app.worker_tools import configured_tools, tool_names_of_places, tools_of_place
from keepsaid.config import Config, Home
from keepsaid.domain import commits, effects, message, trust, turn
from keepsaid.domain.ids import show
from keepsaid.domain.memory import OWNER, Injection, Kind, Listener
from keepsaid.domain.scene import PromptInputs
from keepsaid.domain.task import DEPTH_MAX, Task, TaskStory, trust_of_task
from keepsaid.engine.caretakers import Compactor
from keepsaid.engine.forgetter import Forgetter
from keepsaid.errors import TaskImpossible
from keepsaid.extensions.contributions import ExtensionContributions, Streams
from keepsaid.memory import forgetting, gates, injection
from keepsaid.memory.recall.recollection import QUERY_CHARS_MAX, RecallPrefetch, Recollection
from keepsaid.memory.recording import Recorder
from keepsaid.memory.tools import memory_action_tools, memory_open, memory_search
from keepsaid.pipeline import intake, runner
from keepsaid.pipeline.answering import AgentDeps, PipelineSettings
from keepsaid.pipeline.prompt.assemble import Sources
from keepsaid.pipeline.prompt.client_parts import ClientParts
from keepsaid.pipeline.prompt.layers import fitted, recent, summary
from keepsaid.pipeline.tools import conversation, reactions, tasks
from keepsaid.pipeline.tools.client import ClientTools
from keepsaid.pipeline.turn import authorization, memory_commands, run, worker
from keepsaid.pipeline.turn.commands import Commands, HomeReports
from keepsaid.pipeline.turn.saving_commands import SavingCommands
from keepsaid.ports import memory_store, runtime, store_views
from keepsaid.ports.channel import Channel, Progresses, ReactingChannel
from keepsaid.ports.model import Model, Tool
from keepsaid.ports.store import MemoryStore, Store
from keepsaid.ports.telemetry import NO_TELEMETRY, Telemetry
from keepsaid.text import normal, topics
from keepsaid.values import frozen

_LISTED, _ENDED_LISTED = 20, 5
_LATELY_MS = 3_600_000
_LINE_CHARS = 120


@frozen
class SideTasks:
    """Tasks that turns of a lane made: open ones, and those that ended in the last hour.

    Never what a rule spawned (seed 000, Isolation).
    """

    view: store_views.TaskView
    clock: runtime.Clock

    async def lines(self, lane: message.Lane) -> tuple[str, ...]:
        """One line for each: open ones, newest first, then ended ones, last ended first."""
        found = await self.view.list_open_tasks(lane, _LISTED)
        ended = await self.view.list_ended_tasks(lane, self.clock.now_ms() - _LATELY_MS, _ENDED_LISTED)
        work = (message.Trusted(_line(one), trust_of_task(one)) for one in found)
        return (*work, *(message.Trusted(_ended_line(one), message.Trust.OWNER) for one in ended))


def recall_deadline_ms(config: Config, model: Model) -> float:
    """How long a turn waits for memory. Without a model, what is remembered is the answer, and is waited for."""
    return PATIENT_MS if model.name == turn.NO_MODEL else config.memory.deadline_ms


@frozen
class WorkerTools:
    """What work can be given to a worker for: the tools that it would have, by name."""

    tools: Callable[[], Sequence[Tool]]

    def lines(self) -> tuple[str, ...]:
        """One line for each, in the order of their names."""
        known = {tool.name: tool for tool in reversed(self.tools())}
        return tuple(f"{name}: {normal.cut(_first(known[name].description), _LINE_CHARS)}" for name in sorted(known))


def _first(text: str) -> str:
    """The first sentence or line of a text."""
    return " ".join(text.split("\n", 1)[0].split()).partition(". ")[0]


def _line(task: Task) -> str:
    said = " ".join((task.status or task.description).split())
    return f"{task.kind} {show('task', task.id)} {task.state}: {normal.cut(said, _LINE_CHARS)}"


def _ended_line(task: Task) -> str:
    """The line of an ended task; without words from outside, so that it does not lower the trust of later turns."""
    at = f"{datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=task.ended_at or 0):%H:%M}"
    about = "" if task.outside else f": {normal.cut(' '.join(task.description.split()), _LINE_CHARS)}"
    return f"{task.kind} {show('task', task.id)} {task.state} at {at}{about}"


_OF_MEMORY = ("memory_search", "memory_open", *effects.MemoryAction)
_COMMAND = "/"


class IntakePrefetcher:
    """Starts recall when a message is stored, for lanes that neither collect a window nor wait for quiet.

    `expecting` is true while workers run in this process.
    """

    def __init__(
        self, config: Config, recall: Recollection, memories: MemoryStore, recorder: Recorder, clock: runtime.Clock
    ) -> None:
        self.recall = RecallPrefetch(recall, lambda: memories.news.changes, clock)
        self.expecting = False
        self._recorder = recorder
        windows = {name: one.window(config.buffer.window()) for name, one in config.channels.items()}
        self._at_once = {name for name, one in windows.items() if not one.window_ms and not one.quiet_ms}
        self._wanted = config.memory.injection == "auto"
        self._per_leg = config.memory.recall_candidates
        self._cross, self._chats = config.lanes.cross == "always", config.lanes.cross != "never"

    def expect(self, inbound: message.Inbound, received: commits.Received) -> commits.Received:
        """A message was taken in: most likely its turn will ask for its words alone. Returns the receipt."""
        short = len(inbound.content.text) < QUERY_CHARS_MAX
        if short and self._comes_at_once(inbound, received) and not self.recall.rests:
            inbound = intake.storable(inbound)
            text = inbound.content.text
            if not text.startswith(_COMMAND) and not topics.leans(text) and self._recorder.caught_up:
                origins, lifted = [inbound.origin], {"cross": self._cross, "chats": self._chats}
                listener = injection.listening(received.lane, origins, **lifted)
                self.recall.begin(listener, text, self._per_leg)
        return received

    def _comes_at_once(self, inbound: message.Inbound, received: commits.Received) -> bool:
        origin = inbound.origin
        alone = inbound.marks.reply_to is None and origin.channel in self._at_once and origin.sender != message.SYSTEM
        return alone and self.expecting and self._wanted and received.intake is commits.IntakeResult.STORED

    def stop(self) -> None:
        self.expecting = False
        self.recall.stop()


@frozen
class NoReminder:
    """Recalls nothing, where injection is not wanted, and says why."""

    setting: str

    async def remind(self, claimed: turn.ClaimedBatch, recent: Awaitable[turn.Recent]) -> Injection:  # noqa: ARG002 - the port's signature
        return Injection(skipped=f"memory.injection is {self.setting}")


@frozen
class Faculties:
    """What an agent remembers and forgets with: `recall` before a turn, `search` when the model asks."""

    recall: memory_store.Recall
    search: Recollection
    recorder: Recorder
    briefings: injection.Briefings | None
    compactor: Compactor
    forgetter: Forgetter


TaskParts = tuple[
    Callable[[], Sequence[Tool]], worker.Hindsight, Callable[[Task], authorization.Approvals], trust.Fence
]
"""The tools of workers, the past of branches, approvals and the fence."""


@frozen
class AgentBuilder:
    """Who answers in a home; `tools` are those it has beside its own, in the order in which they take a name.

    `outward` are the channels by name; some are added when the extensions start.
    """

    home: Home
    config: Config
    stores: tuple[Store, MemoryStore]
    model: Model
    faculties: Faculties
    system: tuple[runtime.Clock, runtime.Ids]
    told: Progresses
    tools: tuple[Sequence[Tool], ExtensionContributions, channels.Toolbox]
    reports: HomeReports
    offload: runtime.Offload = runtime.inline
    fence: trust.Fence = trust.UNKEYED
    outward: Mapping[str, Channel] = field(default_factory=dict)
    telemetry: Telemetry = NO_TELEMETRY

    def flow(self) -> runner.MessagePipeline:
        (operations, _), config = self.stores, self.config
        windows = {name: channel.window(config.buffer.window()) for name, channel in config.channels.items()}
        limits = run.TurnLimits(config.models.steps_max, config.models.tokens_max, config.models.timeout_s)
        busy = {name: channel.busy for name, channel in config.channels.items()}
        stale = {name: int(channel.stale_after_s * 1000) for name, channel in config.channels.items()}
        terms = config.sessions.terms(), config.slots.terms()
        again = config.memory.history_blocks, config.memory.reinject_turns
        last = config.schedules.timezone, config.turns.prepare_s
        seen = config.files.wait_s, config.models.pictures
        here = config.table(), windows, models.budget_of(config), limits
        settings = PipelineSettings(*here, busy, stale, *terms, *again, *last, *seen)
        return runner.MessagePipeline(operations, self._build_deps(), settings, *self.system)

    def _build_deps(self) -> AgentDeps:
        config, (operations, memories), (clock, _) = self.config, self.stores, self.system
        have, extension = self.faculties, config.extensions.get("memory")
        mode = config.memory.injection if extension is None or extension.enabled else "off"
        reminder: memory_store.Reminder = self._injector() if mode == "auto" else NoReminder(mode)
        if self.telemetry is not NO_TELEMETRY:
            reminder = TracedReminder(reminder, self.telemetry)
        files = self.home.agent(config.agent)
        overview = models.overview_of(config, operations)
        beside = WorkerTools(self.worker_tools), SideTasks(operations.tasks, clock)
        sources = Sources(SkillFolder(files), *beside, (self.tools[1],), overview, have.briefings)
        sources = replace(sources, client=ClientParts(operations, clock))
        guard = models.guard_of(config, operations, clock, have.compactor)
        claims = memory_commands.Claims(memories.people, memories.sharing, clock, one_time_code, operations)
        saving = SavingCommands(memories, lambda name: have.recorder.catch_up(conversation=name), clock)
        window, compact = config.compaction.window_tokens, have.compactor.compact_on_request
        commands = Commands(operations, operations, compact, claims, have.forgetter, saving, self.reports, window)
        told = Streams(self.told, self.tools[1].active)
        here = IdentityFiles(files), self._tools, told, sources, guard, commands, self.offload
        return AgentDeps(
            self.model,
            reminder,
            *here,
            lambda claimed: self.approvals(claimed.batch.lane),
            self.fence,
            self._reacting,
            self.telemetry,
            ClientTools(operations, clock, self.told),
        )

    def _injector(self) -> injection.Injector:
        memory = self.config.memory
        settings = gates.InjectionSettings(
            items_max=memory.items_max,
            tokens_max=memory.tokens_max,
            per_leg=memory.recall_candidates,
            deadline_ms=recall_deadline_ms(self.config, self.model),
            pinned_kinds=tuple(map(Kind, memory.pinned_kinds)),
            pinned_each=memory.pinned_per_kind,
            pinned_by=memory.pinned_by,
            cross=self.config.lanes.cross == "always",
            chats=self.config.lanes.cross != "never",
        )
        if self.model.name == turn.NO_MODEL:
            settings = replace(settings, fresh_ms=PATIENT_MS)
        have, (_, memories), (clock, _) = self.faculties, self.stores, self.system
        return injection.Injector(have.recall, memories, have.recorder, clock, settings, self.offload)

    def _tools(self, claimed: turn.ClaimedBatch) -> Sequence[Tool]:
        given, offers, toolbox = self.tools
        core, brought = offers.tools(claimed)
        tasking = self._task_tools(claimed, claimed.steps)
        settings = self.config.schedules
        most = settings.agent_max if settings.enabled else 0
        terms = conversation.ScheduleToolTerms(most, int(settings.agent_min_interval_s * 1_000), settings.timezone)
        timed = conversation.schedule_tools(claimed, self.stores[0].schedules, self.system, terms)
        # tasks and schedules would carry what is said in incognito beyond its lane
        lasting = () if claimed.around.incognito else (*tasking.tools(), *timed)
        ours = (*core, conversation.ask_for(claimed), conversation.stay_silent(), *lasting, *given)
        taken = {tool.name for tool in ours}
        offered = (*ours, *(tool for tool in (*brought, *toolbox.tools()) if tool.name not in taken))
        return [tool for tool in offered if not self._is_left_out(tool.name)]

    def _is_left_out(self, name: str) -> bool:
        """Whether the settings leave out a tool."""
        return any(fnmatchcase(name, pattern) for pattern in self.config.tools.leave_out)

    def _reacting(self, lane: message.Lane) -> ReactingChannel | None:
        """The channel of a lane, if messages can get an emoji there and the tool for that is not left out."""
        channel: object = self.outward.get(lane.channel)
        return channel if isinstance(channel, ReactingChannel) and not self._is_left_out(reactions.REACT) else None

    def _task_tools(self, claimed: turn.ClaimedBatch, steps: Sequence[turn.Step]) -> tasks.TaskTools:
        (store, _), (_, ids) = self.stores, self.system
        return tasks.TaskTools(claimed, store.tasks, ids, steps, self.fence, self.worker_tool_names)

    def worker_tool_names(self) -> frozenset[str]:
        """The names of all tools that a worker may be given now."""
        memory = self._reading(Listener(None)) if self._remembers else ()
        names = frozenset(tool.name for tool in (*self.worker_tools(), *memory))
        return names | tool_names_of_places(self.config)

    def worker_tools(self) -> Sequence[Tool]:
        """The tools that belong to no turn, as workers have them."""
        given, offers, toolbox = self.tools
        return (*given, *offers.lasting(), *toolbox.tools(), *configured_tools(self.config))

    def approvals(self, lane: message.Lane | None) -> authorization.Approvals:
        """What puts calls that are refused in a lane before the owner."""
        settings = self.config.tools
        lasts_ms = int(settings.approval_hours * 3_600_000)
        terms = authorization.ApprovalTerms(lasts_ms, settings.approvals_lane_max, settings.approvals_max)
        names = {tool.name for tool in self.worker_tools()}
        return authorization.Approvals(self.stores[0].tasks, *self.system, lane, names, terms)

    def task_parts(self) -> TaskParts:
        """What runs of tasks are given of the agent."""
        return self.worker_tools, self.hindsight, lambda task: self.approvals(task.lane), self.fence

    async def hindsight(self, branch: TaskStory) -> worker.BranchHistory:
        """What is known where a task was begun: what the lane remembers, and memory, heard as its turn heard it.

        A branch has work done as its turn could, while work may make work (design: section 4.4, depth 3).
        """
        (store, _), task = self.stores, branch.task
        story = None if task.turn_id is None else await store.turn(task.turn_id)
        if story is None or not story.messages:
            raise TaskImpossible("the turn that began it is not kept any more")
        claimed, budget = turn.ClaimedBatch(story.batch, story.turn_id, story.messages), models.budget_of(self.config)
        tail = fitted(await store.context(claimed.batch.lane, budget.recent_records), budget.recent_tokens)
        scene = PromptInputs(claimed, tail)
        records, _ = recent(scene, self.fence)
        tools = tuple(tool for tool in self.memory_tools(claimed) if tool.name in _OF_MEMORY)
        if task.depth < DEPTH_MAX:
            tools += self._task_tools(claimed, branch.steps).making()
        return worker.BranchHistory(records, summary(scene, budget.summary_chars).text, tools, trust.taint_of(scene))

    async def own_tools(self, story: TaskStory) -> Sequence[Tool]:
        """The tools of one task of a worker: memory search in the audience of who asked for it, and those of its place.

        A task of a turn reads as that turn did, one that came from a conversation otherwise reads what everybody there
        may read, and one that the owner made elsewhere reads as the owner.
        """
        return (*await self._memory_of(story.task), *tools_of_place(self.config, story.task.lane))

    async def _memory_of(self, task: Task) -> Sequence[Tool]:
        """Memory in the audience of who asked for a task."""
        if not self._remembers:
            return ()
        if task.turn_id is not None:
            made_by = await self.stores[0].turn(task.turn_id)
            if made_by is None or not made_by.messages:
                return ()
            claimed = turn.ClaimedBatch(made_by.batch, made_by.turn_id, made_by.messages)
            return self._reading(injection.listener_of(claimed, claimed.messages))
        if task.lane is not None and task.lane.channel != message.TERMINAL:
            return self._reading(Listener(task.lane))
        return () if task.outside else self._reading(Listener(task.lane, OWNER, direct=True))

    @property
    def _remembers(self) -> bool:
        extension = self.config.extensions.get("memory")
        return self.config.memory.injection != "off" and (extension is None or extension.enabled)

    def _reading(self, listener: Listener) -> tuple[Tool, Tool]:
        """The tools that search memory and open what is found, within the scopes of a listener."""
        crosses = self.config.lanes.cross != "never"
        listener = replace(listener, cross=crosses, chats=crosses)
        have, (_, memories), (clock, _) = self.faculties, self.stores, self.system
        recall = have.search if self.telemetry is NO_TELEMETRY else TracedRecall(have.search, self.telemetry)
        search = memory_search(recall, memories.library, listener, archive_of(memories, clock))
        return search, memory_open(memories, memories.library, listener)

    def memory_tools(self, claimed: turn.ClaimedBatch) -> Sequence[Tool]:
        """What the agent may ask memory, and have it remember, as the extension `memory` brings it."""
        if self.config.memory.injection == "off":
            return ()
        have, (_, memories) = self.faculties, self.stores
        crosses = self.config.lanes.cross != "never"
        listener = replace(injection.listener_of(claimed, claimed.messages), cross=crosses, chats=crosses)
        deeds = () if claimed.around.incognito else memory_action_tools(memories, listener, claimed)
        return (*self._reading(listener), *deeds, forgetting.memory_forget(memories, have.forgetter, listener))


async def identity_texts(home: Home, config: Config) -> dict[str, str]:
    """The files of the agent's personality by their names: those that are there and not empty."""
    return await IdentityFiles(home.agent(config.agent)).texts()
