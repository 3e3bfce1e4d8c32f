"""The path of a message, told on one screen: receive > batch > route > claim > context > turn > deliver.

Every stage reads rows and ends in one commit; between any two commits a crash leads back to a claimable row.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from keepsaid.domain.attachment import attached_to
from keepsaid.domain.batch import DueLane, WaitingGroup, Window
from keepsaid.domain.busy import BusyPolicy, Interrupt
from keepsaid.domain.commits import Dispatch, Received, StepEnd, TurnCommit
from keepsaid.domain.context import LaneTail
from keepsaid.domain.effects import Effect, OfTask
from keepsaid.domain.fence import UNKEYED, Fence
from keepsaid.domain.ids import show
from keepsaid.domain.lane import Lane
from keepsaid.domain.memory import Injection
from keepsaid.domain.message import Inbound
from keepsaid.domain.prompt import Prompt
from keepsaid.domain.relay import relayed_in
from keepsaid.domain.reply import ReplyDraft, address
from keepsaid.domain.route import Action, Routes
from keepsaid.domain.scene import PromptInputs
from keepsaid.domain.session import SessionTerms
from keepsaid.domain.slot import SlotTerms
from keepsaid.domain.staged import staged_in
from keepsaid.domain.taint import taint_in
from keepsaid.domain.turn import Claimed, Lease, Outcome, Recent
from keepsaid.errors import KeepsaidError, LeaseLost, MessageDamaged
from keepsaid.pipeline.intake import MessageIntake
from keepsaid.pipeline.leasing import Leases, Waking
from keepsaid.pipeline.outbox import OutboxSender
from keepsaid.pipeline.prompt.assemble import Preparation, PromptBudget, assemble, measured
from keepsaid.pipeline.prompt.attention import SlotMatcher, attend
from keepsaid.pipeline.prompt.guard import Fitting, Guard
from keepsaid.pipeline.prompt.labels import judged, noted, owned_up
from keepsaid.pipeline.prompt.layers import fitted, joining
from keepsaid.pipeline.prompt.sources import Sources, tools_of
from keepsaid.pipeline.prompt.trace import chosen, recorded, shown_at, told_again, trace_of
from keepsaid.pipeline.routing import route, route_unread
from keepsaid.pipeline.tools.dialogue import asked_in, set_in, set_personality
from keepsaid.pipeline.tools.schedules import scheduled_in
from keepsaid.pipeline.tools.tasks import tasks_in
from keepsaid.pipeline.turn.authorization import Asking, CallGate
from keepsaid.pipeline.turn.commands import Commands, Obedience
from keepsaid.pipeline.turn.run import StepLog, TurnDeps, TurnLimits, opened_in, run
from keepsaid.pipeline.turn.steering import Offers
from keepsaid.ports.channel import Progresses, TurnProgress
from keepsaid.ports.failpoints import point
from keepsaid.ports.model import Model, Tool
from keepsaid.ports.prompt_sources import AgentIdentity, SkillShelf
from keepsaid.ports.recall import Reminder
from keepsaid.ports.runtime import Beside, Clock, Hints, Ids, Offload, inline
from keepsaid.ports.store_views import BufferView, LaneView, Operations

_log = logging.getLogger("keepsaid.route")
_turn_log = logging.getLogger("keepsaid.turn")
_LATE = "it was not ready in time"
_LANES_MAX = 64
_FAILED_MS = 1_000
_MOMENT_MS = 50
"""After work the next is looked for a moment later, so that what was just routed goes first."""


@dataclass(frozen=True, slots=True)
class PipelineStores:
    """The operational store, as the road needs it."""

    operations: Operations
    buffer: BufferView
    lanes: LaneView


@dataclass(frozen=True, slots=True)
class Mind:
    """Who answers, and what comes to mind: `tools` makes the tools of one turn, `sources` fill its prompt.

    `guard` watches that prompts fit the model, and tells nobody that a lane is due where it is left to the road.
    `offload` runs what reads long texts.
    `asking` puts the calls that a turn is refused before the owner; without, they stay refused.
    """

    model: Model
    reminder: Reminder
    identity: AgentIdentity
    tools: Callable[[Claimed], Sequence[Tool]]
    progress: Progresses
    sources: Sources = Sources()
    guard: Guard | None = None
    commands: Commands | None = None
    offload: Offload = inline
    asking: Callable[[Claimed], Asking] | None = None
    fence: Fence = UNKEYED


@dataclass(frozen=True, slots=True)
class Course:
    """How the road runs: rules, budgets and limits, and by channel the windows, modes and ages of a busy lane.

    So many of a lane's last blocks of memory are shown again (`history_blocks`), and for so many turns what a lane was
    reminded of does not come to mind again (`reinject_turns`). Schedules that name no time zone go by `zone`. What is
    not ready `prepare_s` seconds after a turn began to prepare is left out of its prompt.
    """

    routes: Routes
    windows: Mapping[str, Window]
    budget: PromptBudget = PromptBudget()
    limits: TurnLimits = TurnLimits()
    busy: Mapping[str, BusyPolicy] = field(default_factory=dict)
    stale_ms: Mapping[str, int] = field(default_factory=dict)
    sessions: SessionTerms = SessionTerms()
    slots: SlotTerms = SlotTerms()
    history_blocks: int = 0
    reinject_turns: int = 0
    zone: str = "UTC"
    prepare_s: float = 5.0


def check(claimed: Claimed) -> None:
    """Raise MessageDamaged for a batch that is not all there."""
    if not claimed.messages:
        raise MessageDamaged(f"the messages of {show('batch', claimed.batch.id)} are not where they were stored")
    for message in claimed.heard:
        if message.damaged:
            raise MessageDamaged(f"{show('message', message.id)} is not what was stored: it does not match its hash")


async def _recent(tail: Awaitable[LaneTail]) -> Recent:
    return (await tail).recalling


class Flow:
    """The road. Its stages meet here and nowhere else."""

    def __init__(self, stores: PipelineStores, mind: Mind, course: Course, clock: Clock, ids: Ids) -> None:
        self.hints = Hints()
        self._waking = Waking(self.hints.work)
        self._stores = stores
        self._mind = mind
        self._course = course
        self._clock = clock
        self._ids = ids
        self._guard = mind.guard or Guard(stores.operations, stores.lanes, clock, lambda *_: None)

    @property
    def course(self) -> Course:
        """How the road runs now."""
        return self._course

    def follow(self, course: Course) -> None:
        """Go by another course from the next group on; what is judged already, and turns under way, keep theirs."""
        self._course = course

    def be(self, identity: AgentIdentity, skills: SkillShelf) -> None:
        """Answer as somebody else from the next prompt on."""
        self._mind = replace(self._mind, identity=identity, sources=replace(self._mind.sources, skills=skills))

    async def receive(self, door: MessageIntake, inbound: Inbound) -> Received:
        """Commit 1: the message is on disk before anybody is told."""
        point("receive.before")
        received = await door.receive(inbound)
        point("receive.after")
        self.hints.route.set()
        return received

    async def route(self) -> int | None:
        """Commit 2: lanes whose window has closed become batches with a verdict; returns when the next closes."""
        now = self._clock.due_ms()
        lanes = await self._stores.buffer.due(now, _LANES_MAX)
        if not lanes:
            return await self._stores.buffer.next_due()
        unread = {lane.lane: self._unread(lane, now) for lane in lanes}
        read = [lane for lane, dispatch in unread.items() if dispatch is None]
        groups = await self._stores.buffer.waiting(read) if read else ()
        ready = (self._routed(one.batches[-1].last_id, partial(self._dispatch, one)) for one in unread.values() if one)
        judged = (self._routed(group.messages[-1].id, partial(self._judge, group, now)) for group in groups)
        routing = asyncio.gather(*ready, *judged)
        self.hints.work.set()
        if not all(await routing):
            return now + _FAILED_MS
        return now if len(lanes) == _LANES_MAX else now + _MOMENT_MS

    def _unread(self, lane: DueLane, now: int) -> Dispatch | None:
        return route_unread(self._course.routes, lane, self._window(lane.lane), self._ids, now)

    async def _routed(self, last_id: int, work: Callable[[], Awaitable[None]]) -> bool:
        """Whether a lane could be routed."""
        try:
            await work()
        except KeepsaidError:
            raise
        except Exception as error:  # noqa: BLE001  # guard: engine loop - one lane must not stop the others
            _log.error("the lane of %s cannot be routed", show("message", last_id), exc_info=error)
            return False
        return True

    async def _judge(self, group: WaitingGroup, now: int) -> None:
        dispatch = await route(self._course.routes, group, self._window(group.lane), self._ids, now)
        await self._dispatch(dispatch)
        self._tell_settled(group, dispatch)
        if any(batch.task is not None for batch in dispatch.batches):
            self.hints.record.set()
            self.hints.task.set()

    async def _dispatch(self, dispatch: Dispatch) -> None:
        with self._waking.writing():
            await self._stores.operations.apply(dispatch)
        if self._course.busy.get(dispatch.lane.channel) is BusyPolicy.INTERRUPT:
            await self._interrupt(dispatch.lane, dispatch.window)
            self.hints.work.set()

    def _window(self, lane: Lane) -> Window:
        return self._course.windows.get(lane.channel, Window())

    async def _interrupt(self, lane: Lane, window: Window) -> None:
        """What was just routed joins the batch at work, which begins anew; its holder is told."""
        begun_anew = await self._stores.operations.apply(Interrupt(lane, window, self._clock.now_ms()))
        if begun_anew is not None:
            self.hints.taken(begun_anew)

    async def claim(self, leases: Leases, limit: int) -> tuple[Lease, ...]:
        """Take the next batches, each under a lease."""
        return await self._waking.claimed(leases.claim(limit))

    async def open(self, lease: Lease) -> Claimed:
        """What a lease is for, read. Raises LeaseLost when another owner has the batch."""
        claimed = await self._stores.lanes.claimed(lease)
        if claimed is None:
            raise LeaseLost(f"batch {lease.batch.id} has another owner now")
        return claimed

    async def answer(self, claimed: Claimed) -> None:
        """Commits 3 and 4: context, steps, and the turn with its reply, all or nothing."""
        check(claimed)
        claimed = judged(claimed, self._stale_ms(claimed), self._clock.now_ms())
        whole, obedience = claimed, await self._obeyed(claimed)
        claimed = obedience.rest
        if not claimed.messages:
            await self.commit(whole, obedience.alone)
            return
        asked = self.listen(claimed)
        scene, fitting, prompt = await self.context(claimed, asked, begins_anew=obedience.begins_anew)
        tools = (*self._mind.tools(claimed), *tools_of(scene), *set_personality(claimed))
        offload, tracing = self._mind.offload, partial(trace_of, scene, prompt, tools, fitting.factor)
        trace = noted(told_again(claimed.trace, await offload(prompt.chars, tracing)), claimed.late_before)
        steps = StepLog(self._stores.operations, self._clock, claimed.held, trace)
        offers = Offers(
            self._stores.operations, claimed, self._joining(claimed), partial(joining, claimed, asked), offload
        )
        delta = partial(self._tell, offers)
        gate = CallGate(taint_in(trace), self._mind.asking(claimed) if self._mind.asking else None)
        turn = TurnDeps(fitting, prompt, tools, self._course.limits, delta, offers, gate, offload)
        records = (ran := await run(turn, steps)).records
        outcome = Outcome(ran.text, records, steps.usage, ran.model, chosen(trace), opened=opened_in(records))
        slots = (*asked.effects, *asked_in(records, offers.claimed, self._course.slots.expiry_ms))
        told: tuple[Effect, ...] = (
            *set_in(records, offers.claimed),
            *staged_in(records),
            *tasks_in(records, offers.claimed),
            *relayed_in(offers.claimed.heard),
            *scheduled_in(records, offers.claimed, self._course.zone),
            *ran.waiting,
        )
        effects = (*slots, *told, *measured(fitting.prompt, tools, outcome))
        outcome = obedience.with_answer(replace(outcome, effects=effects))
        await self.commit(replace(offers.claimed, messages=whole.messages), outcome, steps.ending)
        await fitting.settle()

    async def _obeyed(self, claimed: Claimed) -> Obedience:
        commands = self._mind.commands
        return Obedience(claimed) if commands is None else await commands.obey(claimed)

    def listen(self, claimed: Claimed) -> SlotMatcher:
        """The questions that wait in the lane, with the messages of the batch heard."""
        asked = SlotMatcher(claimed.around, self._course.slots)
        asked.hear_all(claimed.messages)
        return asked

    async def context(
        self, claimed: Claimed, asked: SlotMatcher, *, begins_anew: bool = False
    ) -> tuple[PromptInputs, Fitting, Prompt]:
        """What the model is shown: read, put together, and fitted to its window; no past where the lane begins anew."""
        reading = asyncio.ensure_future(self._read(claimed, begins_anew=begins_anew))
        scene = await self._scene(claimed, reading)
        scene = replace(scene, attention=attend(claimed, scene.tail.recent, asked.settled))
        fitting = self._fitting(scene, await reading)
        prompt = await fitting.fit()
        return replace(scene, tail=fitting.tail), fitting, prompt

    async def _read(self, claimed: Claimed, *, begins_anew: bool) -> LaneTail:
        lane, lanes, course = claimed.batch.lane, self._stores.lanes, self._course
        tail = await lanes.context(lane, course.budget.recent_records)
        if begins_anew:
            tail = LaneTail(floor=tail.head, version=tail.version, head=tail.head)
        if not course.reinject_turns and not course.history_blocks:
            return tail
        return replace(tail, reminders=await lanes.reminders(lane, course.reinject_turns, course.history_blocks))

    async def _scene(self, claimed: Claimed, reading: Awaitable[LaneTail]) -> PromptInputs:
        """What the prompt is made of; the lane is read, and everything else prepared, side by side.

        The turn goes on without a part that is not ready in time; of the lane it needs all.
        """
        mind, now = self._mind, shown_at(claimed.trace, self._clock.now_ms())
        tail = asyncio.ensure_future(self._tail(reading))
        preparation = Preparation()
        parts = mind.sources.begin(preparation, claimed, mind.identity)
        injection = recorded(claimed.trace)
        if injection is None:
            recent = asyncio.ensure_future(_recent(tail))
            memory = preparation.begin("memory", mind.reminder.remind(claimed, recent), Injection(skipped=_LATE))
        left_out = await preparation.finish(self._course.prepare_s)
        if left_out:
            told = {"turn": claimed.turn_id, "batch": claimed.batch.id}
            _turn_log.warning("the turn goes on without: %s", "; ".join(left_out), extra=told)
        given = injection or memory.value
        return PromptInputs(claimed, await tail, given, parts.standing, parts.passing(now), left_out=left_out)

    async def _tail(self, reading: Awaitable[LaneTail]) -> LaneTail:
        tail = await reading
        return await self._mind.offload(tail.chars, partial(fitted, tail, self._course.budget.recent_tokens))

    def _fitting(self, scene: PromptInputs, tail: LaneTail) -> Fitting:
        """The prompt, and how it is made again when the lane's oldest messages have to go."""
        budget, fence = self._course.budget, self._mind.fence

        def make(tail: LaneTail) -> Prompt:
            return assemble(replace(scene, tail=fitted(tail, budget.recent_tokens)), budget, fence)

        factor = scene.claimed.around.calibration(self._mind.model.name).factor
        offload = Beside(self._mind.offload, scene.claimed.chars)
        return Fitting(self._guard, scene.claimed.batch.lane, self._mind.model, make, tail, factor, offload)

    async def commit(self, claimed: Claimed, outcome: Outcome, ending: StepEnd | None = None) -> int | None:
        """Commit 4; returns the reply's id. Raises LeaseLost when another owner has the batch."""
        batch, now = claimed.batch, self._clock.now_ms()
        reply = self._reply(claimed, outcome.reply, now) if outcome.reply else None
        outcome = replace(outcome, attached=attached_to(claimed.messages))
        steered = tuple(one.batch_id for one in claimed.steered)
        settled = TurnCommit(claimed.turn_id, batch.id, batch.fence, outcome, reply, now, ending, steered)
        settled = replace(settled, inactive_ms=self._course.sessions.inactive_ms, steady=self._clock.steady_ms())
        if not await self._stores.operations.apply(settled):
            raise LeaseLost(f"batch {batch.id} has another owner now")
        self._mind.progress.tell(claimed.heard, TurnProgress("settled"))
        self.hints.deliver.set()
        self.hints.record.set()
        self.hints.work.set()
        if any(isinstance(effect, OfTask) for effect in outcome.effects):
            for hint in self.hints.of_tasks.values():
                hint.set()
        return reply.id if reply else None

    def _reply(self, claimed: Claimed, text: str, now: int) -> ReplyDraft:
        """The reply; one that comes late says so."""
        url, reply_to = address(claimed.heard)
        told = owned_up(text, claimed, self._stale_ms(claimed), now)
        return ReplyDraft(self._ids.next(), told, url=url, reply_to=reply_to)

    def _stale_ms(self, claimed: Claimed) -> int:
        return self._course.stale_ms.get(claimed.batch.lane.channel, 0)

    def _joining(self, claimed: Claimed) -> Window | None:
        """Within which bounds what comes meanwhile may join this turn, if it may."""
        channel = claimed.batch.lane.channel
        return self._window(claimed.batch.lane) if self._course.busy.get(channel) is BusyPolicy.STEER else None

    async def deliver(self, post: OutboxSender) -> int | None:
        """Replies leave, in order per conversation; returns when the next may be tried."""
        return await post.deliver()

    def _tell_settled(self, group: WaitingGroup, dispatch: Dispatch) -> None:
        """Messages that no turn will answer are settled here."""
        for routed in dispatch.batches:
            if routed.verdict.action is not Action.FORWARD:
                settled = [one for one in group.messages if routed.first <= one.number <= routed.last]
                self._mind.progress.tell(settled, TurnProgress("settled", routed.verdict.reason))

    def _tell(self, offers: Offers, text: str) -> None:
        self._mind.progress.tell(offers.claimed.heard, TurnProgress("delta", text))
