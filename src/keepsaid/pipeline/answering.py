"""Answering: one claimed batch becomes a prompt, steps, and one commit of the turn with its reply."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from keepsaid.domain import commits, relay, route, session, slot, trust
from keepsaid.domain.batch import Window
from keepsaid.domain.busy import BusyPolicy
from keepsaid.domain.context import LaneTail
from keepsaid.domain.effects import Effect, OfTask, staged_in
from keepsaid.domain.files import Picture, attachment_line
from keepsaid.domain.ids import show
from keepsaid.domain.memory import Injection
from keepsaid.domain.message import Lane, StoredMessage
from keepsaid.domain.prompt import Prompt
from keepsaid.domain.reply import ReplyDraft, address
from keepsaid.domain.scene import PromptInputs
from keepsaid.domain.turn import NO_MODEL, ClaimedBatch, Outcome, Recent, Usage
from keepsaid.errors import LeaseLost, MessageDamaged
from keepsaid.pipeline.prompt import attachments, attention, layers
from keepsaid.pipeline.prompt.assemble import Preparation, PromptBudget, Sources, assemble, measured, tools_of
from keepsaid.pipeline.prompt.guard import Fitting, Guard, chosen, merge_retry_trace, recorded, shown_at, trace_of
from keepsaid.pipeline.prompt.regenerated import GONE, with_answered
from keepsaid.pipeline.routing import RoutingRules
from keepsaid.pipeline.tools import attaching, conversation, reactions, tasks
from keepsaid.pipeline.tools.client import ClientTools
from keepsaid.pipeline.tools.tracing import traced_tools
from keepsaid.pipeline.turn import authorization, run
from keepsaid.pipeline.turn.commands import CommandBatchResult, Commands
from keepsaid.pipeline.turn.made_files import FileKeeper
from keepsaid.ports import channel, memory_store, runtime
from keepsaid.ports.model import AgentIdentity, Model, Tool
from keepsaid.ports.store import Store
from keepsaid.ports.telemetry import NO_TELEMETRY, Telemetry
from keepsaid.values import frozen

_turn_log = logging.getLogger("keepsaid.turn")
_LATE = "it was not ready in time"


@frozen
class AgentDeps:
    """Collaborators of a turn: `tools` makes its tools, `sources` and `reminder` fill its prompt.

    `guard` keeps prompts within the model's window. `offload` runs work over long texts. `asking` asks the owner to
    approve refused calls; without it they stay refused. `reacting` finds the channel of a lane on which messages can
    get an emoji. `client` calls the tools of the program that a person writes with.
    """

    model: Model
    reminder: memory_store.Reminder
    identity: AgentIdentity
    tools: Callable[[ClaimedBatch], Sequence[Tool]]
    progress: channel.Progresses
    sources: Sources = Sources()
    guard: Guard | None = None
    commands: Commands | None = None
    offload: runtime.Offload = runtime.inline
    asking: Callable[[ClaimedBatch], authorization.Approvals] | None = None
    fence: trust.Fence = trust.UNKEYED
    reacting: Callable[[Lane], channel.ReactingChannel | None] = lambda _lane: None
    telemetry: Telemetry = NO_TELEMETRY
    client: ClientTools | None = None


@frozen
class PipelineSettings:
    """How the pipeline runs: rules, budgets and limits, and by channel the windows, modes and ages of a busy lane.

    `history_blocks` is how many of a lane's last memory blocks are shown again, `reinject_turns` for how many turns an
    injected memory is not injected again, `zone` the time zone of schedules that name none. Parts of the prompt that
    are not ready after `prepare_s` seconds are left out, files that are not there after `files_wait_s` named alone.
    `pictures` says that the model takes them.
    """

    routes: route.Routes
    windows: Mapping[str, Window]
    budget: PromptBudget = PromptBudget()
    limits: run.TurnLimits = run.TurnLimits()
    busy: Mapping[str, BusyPolicy] = field(default_factory=dict)
    stale_ms: Mapping[str, int] = field(default_factory=dict)
    sessions: session.SessionTerms = session.SessionTerms()
    slots: slot.SlotTerms = slot.SlotTerms()
    history_blocks: int = 0
    reinject_turns: int = 0
    zone: str = "UTC"
    prepare_s: float = 5.0
    files_wait_s: float = 10.0
    pictures: bool = True

    @property
    def routing(self) -> RoutingRules:
        return RoutingRules(self.routes, self.windows, self.busy)


def check(claimed: ClaimedBatch) -> None:
    """Raise MessageDamaged for a batch that is not all there."""
    if not claimed.messages:
        raise MessageDamaged(f"the messages of {show('batch', claimed.batch.id)} are not where they were stored")
    for message in claimed.all_messages:
        if message.damaged:
            raise MessageDamaged(f"{show('message', message.id)} is not what was stored: it does not match its hash")


@dataclass(slots=True, eq=False)
class Answering:
    """Answers claimed batches, as `settings` say and with what `agent` has; both may be exchanged between turns."""

    store: Store
    agent: AgentDeps
    settings: PipelineSettings
    clock: runtime.Clock
    ids: runtime.Ids
    hints: runtime.Wakeups

    async def answer(self, claimed: ClaimedBatch) -> None:
        check(claimed)
        claimed = attention.with_lateness(claimed, self._stale_ms(claimed), self.clock.now_ms())
        claimed = await with_answered(self.store, claimed)
        whole, commands = claimed, self.agent.commands
        executed = CommandBatchResult(claimed) if commands is None else await commands.run_commands(claimed)
        claimed = executed.rest
        verdict = whole.batch.verdict
        if not claimed.messages or verdict.action is route.Action.LISTEN:
            silent = f"the verdict is listen: {verdict.reason}" if claimed.messages else GONE * (not whole.messages)
            await self.commit(whole, executed.with_answer(Outcome("", (), Usage(), NO_MODEL, silent=silent)))
            return
        self.agent.progress.tell(claimed.all_messages, channel.TurnProgress("began"))
        claimed = await self._with_files(claimed)
        matcher = self.listen(claimed)
        scene, fitting, prompt = await self.context(claimed, matcher, begins_anew=executed.begins_anew)
        lasting = () if claimed.around.incognito else conversation.set_personality(claimed)
        offload = self.agent.offload
        prepare = partial(self._prepare, claimed, matcher)
        inbox = run.SteeringInbox(self.store, claimed, self._joining(claimed), prepare)
        own = (*self._tools(claimed, inbox), *tools_of(scene), *lasting)
        if (client := self.agent.client) is not None:
            own = (*own, *client.tools(claimed, scene.standing.client_tools, own))
        tools = traced_tools(self.agent.telemetry, own)
        tracing = partial(trace_of, scene, prompt, tools, fitting.factor)
        trace = attention.record_lateness(
            merge_retry_trace(claimed.trace, await offload(prompt.chars, tracing)), claimed.late_before
        )
        steps = run.StepLog(self.store, self.clock, claimed.held, trace)

        def delta(text: str) -> None:
            self.agent.progress.tell(inbox.claimed.all_messages, channel.TurnProgress("delta", text))

        def using(tool: str) -> None:
            self.agent.progress.tell(inbox.claimed.all_messages, channel.TurnProgress("tool", tool))

        gate = authorization.CallGate(trust.taint_in(trace), self.agent.asking(claimed) if self.agent.asking else None)
        keeper = FileKeeper(self.store, claimed.held)
        beside = (inbox, gate, offload, using, True, keeper)
        limits = self._limits(scene.standing.client_tokens_max)
        turn = run.TurnDeps(fitting, prompt, tools, limits, delta, *beside)
        records = (ran := await run.run_turn(turn, steps)).records
        outcome = Outcome(ran.text, records, steps.usage, ran.model, chosen(trace), opened=run.opened_in(records))
        outcome = replace(outcome, brings_files=not ran.silent and attaching.is_attached_in(records))
        claimed, lasts_ms = inbox.claimed, self.settings.slots.expiry_ms
        slots = conversation.slots_in(records, claimed, lasts_ms) if ran.text else ()
        effects: tuple[Effect, ...] = (*matcher.effects, *slots)
        effects += (*conversation.set_in(records, claimed), *staged_in(records), *tasks.tasks_in(records, claimed))
        effects += relay.relayed_in(claimed.all_messages)
        effects += conversation.scheduled_in(records, claimed, self.settings.zone)
        effects += (*ran.waiting, *measured(fitting.prompt, tools, outcome))
        outcome = executed.with_answer(replace(outcome, effects=effects, silent=ran.silent))
        await self.commit(replace(claimed, messages=whole.messages), outcome, steps.ending)
        await fitting.settle()

    def _limits(self, tokens_max: int) -> run.TurnLimits:
        """The limits of a turn whose client takes `tokens_max` tokens for an answer; 0 for any number."""
        limits = self.settings.limits
        return replace(limits, tokens_max=min(limits.tokens_max, tokens_max)) if tokens_max else limits

    def _tools(self, claimed: ClaimedBatch, inbox: run.SteeringInbox) -> Sequence[Tool]:
        """The tools of the agent, and `react` where the channel can, unless one of them has that name."""
        tools, reacting = self.agent.tools(claimed), self.agent.reacting(claimed.batch.lane)
        if reacting is None or any(tool.name == reactions.REACT for tool in tools):
            return tools
        return (*tools, reactions.react(reacting, lambda: inbox.claimed))

    def listen(self, claimed: ClaimedBatch) -> attention.SlotMatcher:
        """Match the pending questions of the lane with the messages of the batch."""
        matcher = attention.SlotMatcher(claimed.around, self.settings.slots)
        matcher.hear_all(claimed.messages)
        return matcher

    async def context(
        self, claimed: ClaimedBatch, matcher: attention.SlotMatcher, *, begins_anew: bool = False
    ) -> tuple[PromptInputs, Fitting, Prompt]:
        """What the model is shown: read, put together, and fitted to its window; no past where the lane is reset."""
        reading = asyncio.ensure_future(self._read(claimed, begins_anew=begins_anew))
        scene = await self._scene(claimed, reading)
        scene = replace(scene, attention=attention.attend(claimed, scene.tail.recent, matcher.settled))
        fitting = self._fitting(scene, await reading)
        prompt = await fitting.fit()
        return replace(scene, tail=fitting.tail), fitting, prompt

    async def _read(self, claimed: ClaimedBatch, *, begins_anew: bool) -> LaneTail:
        lane, lanes, settings = claimed.batch.lane, self.store, self.settings
        tail = await lanes.context(lane, settings.budget.recent_records)
        if begins_anew:
            tail = LaneTail(floor=tail.head, version=tail.version, head=tail.head)
        if not settings.reinject_turns and not settings.history_blocks:
            return tail
        return replace(tail, reminders=await lanes.reminders(lane, settings.reinject_turns, settings.history_blocks))

    async def _scene(self, claimed: ClaimedBatch, reading: Awaitable[LaneTail]) -> PromptInputs:
        """What the prompt is made of; the lane is read, and everything else prepared, side by side.

        The turn goes on without a part that is not ready in time; of the lane it needs all.
        """
        agent, now = self.agent, shown_at(claimed.trace, self.clock.now_ms())
        tail = asyncio.ensure_future(self._tail(reading))
        preparation = Preparation()
        parts = agent.sources.begin(preparation, claimed, agent.identity)
        if (injection := recorded(claimed.trace)) is None:

            async def recent_records() -> Recent:
                return (await tail).recalling

            recent = asyncio.ensure_future(recent_records())
            memory = preparation.begin("memory", agent.reminder.remind(claimed, recent), Injection(skipped=_LATE))
        if left_out := await preparation.finish(self.settings.prepare_s):
            ids = {"turn": claimed.turn_id, "batch": claimed.batch.id}
            _turn_log.warning("the turn goes on without: %s", "; ".join(left_out), extra=ids)
        given = injection or memory.value
        seen = await self._pictures(claimed)
        context = parts.standing, parts.turn_context(now)
        return PromptInputs(claimed, await tail, given, *context, left_out=left_out, pictures=seen)

    async def _tail(self, reading: Awaitable[LaneTail]) -> LaneTail:
        tail = await reading
        return await self.agent.offload(tail.chars, partial(layers.fitted, tail, self.settings.budget.recent_tokens))

    def _fitting(self, scene: PromptInputs, tail: LaneTail) -> Fitting:
        """The prompt, and how it is made again when the lane's oldest messages have to go."""
        budget, fence = self.settings.budget, self.agent.fence
        guard = self.agent.guard or Guard(self.store, self.clock, lambda *_: None)

        def make(tail: LaneTail) -> Prompt:
            return assemble(replace(scene, tail=layers.fitted(tail, budget.recent_tokens)), budget, fence)

        factor = scene.claimed.around.calibration(self.agent.model.name).factor
        offload = runtime.PaddedOffload(self.agent.offload, scene.claimed.chars)
        return Fitting(guard, scene.claimed.batch.lane, self.agent.model, make, tail, factor, offload)

    async def commit(
        self, claimed: ClaimedBatch, outcome: Outcome, ending: commits.StepEnd | None = None
    ) -> int | None:
        """Commit 4; returns the reply's id. Raises LeaseLost when another owner has the batch."""
        batch, now = claimed.batch, self.clock.now_ms()
        reply = None
        if outcome.reply or outcome.brings_files:
            url, reply_to = address(claimed.all_messages)
            text = attention.with_late_notice(outcome.reply, claimed, self._stale_ms(claimed), now)
            reply = ReplyDraft(self.ids.next(), text, url=url, reply_to=reply_to)
        outcome = replace(outcome, attached=attachments.attached_to(claimed), repeats=claimed.repeats)
        steered = tuple(one.batch_id for one in claimed.steered)
        settled = commits.TurnCommit(claimed.turn_id, batch.id, batch.fence, outcome, reply, now, ending, steered)
        settled = replace(settled, inactive_ms=self.settings.sessions.inactive_ms, steady=self.clock.steady_ms())
        if not await self.store.apply(settled):
            raise LeaseLost(f"{show('batch', batch.id)} has another owner now, or none")
        self.agent.progress.tell(claimed.all_messages, channel.TurnProgress("settled"))
        self.hints.deliver.set()
        self.hints.record.set()
        self.hints.work.set()
        if any(isinstance(effect, OfTask) for effect in outcome.effects):
            for hint in self.hints.of_tasks.values():
                hint.set()
        return reply.id if reply else None

    def _stale_ms(self, claimed: ClaimedBatch) -> int:
        return self.settings.stale_ms.get(claimed.batch.lane.channel, 0)

    async def _prepare(
        self, claimed: ClaimedBatch, matcher: attention.SlotMatcher, message: StoredMessage
    ) -> run.JoiningMessage:
        """A message that joins the turn, with what came with it."""
        files = tuple(await self.store.files.of_messages((message.id,)))
        alone = await self._with_files(replace(claimed, messages=(message,), files=files))
        [ready] = alone.messages
        written = partial(layers.joining, replace(claimed, files=alone.files), matcher, ready)
        shown = await self.agent.offload(len(ready.text), written)
        return run.JoiningMessage(ready, shown, attachment_line(ready, alone.files), await self._pictures(alone))

    async def _with_files(self, claimed: ClaimedBatch) -> ClaimedBatch:
        return await attachments.await_files(self.store.files, self.clock, claimed, self.settings.files_wait_s)

    async def _pictures(self, claimed: ClaimedBatch) -> tuple[Picture, ...]:
        return await attachments.pictures_of(self.store.files, claimed) if self.settings.pictures else ()

    def _joining(self, claimed: ClaimedBatch) -> Window | None:
        """The window of messages that are added to the running turn; None if the channel does not steer."""
        lane, settings = claimed.batch.lane, self.settings
        return settings.routing.window(lane) if settings.busy.get(lane.channel) is BusyPolicy.STEER else None
