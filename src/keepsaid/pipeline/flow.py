"""The path of a message, told on one screen: receive > batch > route > claim > context > turn > deliver.

Every stage reads rows and ends in one commit; between any two commits a crash leads back to a claimable row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from keepsaid.domain.batch import Group, Window
from keepsaid.domain.commits import Dispatch, Received, TurnCommit
from keepsaid.domain.message import Inbound
from keepsaid.domain.reply import ReplyDraft, address
from keepsaid.domain.route import Action, Routes
from keepsaid.domain.turn import Claimed, Outcome
from keepsaid.errors import LeaseLost
from keepsaid.pipeline.buffer.receive import Door
from keepsaid.pipeline.context.assemble import Budget, assemble
from keepsaid.pipeline.context.trace import chosen, recorded, trace_of
from keepsaid.pipeline.deliver.send import Post
from keepsaid.pipeline.lane.lease import Leases
from keepsaid.pipeline.router.route import route
from keepsaid.pipeline.turn.run import Turn, TurnLimits, run
from keepsaid.pipeline.turn.steps import StepLog
from keepsaid.ports.buffer import BufferView
from keepsaid.ports.clock import Clock, Ids
from keepsaid.ports.hints import Hints
from keepsaid.ports.identity import Identity
from keepsaid.ports.lanes import LaneView
from keepsaid.ports.model import Model, Tool
from keepsaid.ports.operations import Operations
from keepsaid.ports.progress import Progress, Progresses
from keepsaid.ports.recall import Reminder

_GROUPS_MAX = 64
_MOMENT_MS = 20
"""After work the next is looked for a moment later, so that what was just routed goes first."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The operational store, as the road needs it."""

    operations: Operations
    buffer: BufferView
    lanes: LaneView


@dataclass(frozen=True, slots=True)
class Mind:
    """Who answers, and what comes to mind: `tools` makes the tools of one turn."""

    model: Model
    reminder: Reminder
    identity: Identity
    tools: Callable[[Claimed], Sequence[Tool]]
    progress: Progresses


@dataclass(frozen=True, slots=True)
class Course:
    """How the road runs: rules, windows by channel, budgets and limits."""

    routes: Routes
    windows: Mapping[str, Window]
    budget: Budget = Budget()
    limits: TurnLimits = TurnLimits()


class Flow:
    """The road. Its stages meet here and nowhere else."""

    def __init__(self, stores: Stores, mind: Mind, course: Course, clock: Clock, ids: Ids) -> None:
        self.hints = Hints()
        self._stores = stores
        self._mind = mind
        self._course = course
        self._clock = clock
        self._ids = ids

    async def receive(self, door: Door, inbound: Inbound) -> Received:
        """Commit 1: the message is on disk before anybody is told."""
        received = await door.receive(inbound)
        self.hints.route.set()
        return received

    async def route(self) -> int | None:
        """Commit 2: lanes whose window has closed become batches with a verdict; returns when the next closes."""
        now = self._clock.now_ms()
        groups = await self._stores.buffer.due(now, _GROUPS_MAX)
        for group in groups:
            window = self._course.windows.get(group.lane.channel, Window())
            dispatch = await route(self._course.routes, group, window, self._ids, now)
            await self._stores.operations.apply(dispatch)
            self._tell_settled(group, dispatch)
            self.hints.work.set()
            if any(batch.task is not None for batch in dispatch.batches):
                self.hints.record.set()
        if groups:
            return 0 if len(groups) == _GROUPS_MAX else now + _MOMENT_MS
        return await self._stores.buffer.next_due()

    async def claim(self, leases: Leases, limit: int) -> tuple[Claimed, ...]:
        """Take the next batches, each under a lease."""
        return await leases.claim(limit)

    async def answer(self, claimed: Claimed) -> None:
        """Commits 3 and 4: context, steps, and the turn with its reply, all or nothing."""
        reading = self._stores.lanes.recent(claimed.batch.lane, self._course.budget.recent_records)
        recent = asyncio.ensure_future(reading)
        injection = recorded(claimed.trace) or await self._mind.reminder.remind(claimed, recent)
        prompt = assemble(claimed, await recent, injection, await self._mind.identity.read(), self._course.budget)
        trace = claimed.trace or trace_of(prompt, injection)
        steps = StepLog(self._stores.operations, self._clock, claimed, trace)
        tools = self._mind.tools(claimed)
        turn = Turn(self._mind.model, prompt, tools, self._course.limits, lambda text: self._tell(claimed, text))
        text, records, model = await run(turn, steps)
        await self.commit(claimed, Outcome(text, records, steps.usage, model, None, chosen(trace)))

    async def commit(self, claimed: Claimed, outcome: Outcome) -> None:
        """Commit 4; raises LeaseLost when another owner has the batch."""
        url, reply_to = address(claimed.messages)
        reply = ReplyDraft(self._ids.next(), outcome.reply, url=url, reply_to=reply_to) if outcome.reply else None
        batch = claimed.batch
        settled = TurnCommit(claimed.turn_id, batch.id, batch.fence, outcome, reply, self._clock.now_ms())
        if not await self._stores.operations.apply(settled):
            raise LeaseLost(f"batch {batch.id} has another owner now")
        self._mind.progress.tell(claimed.messages, Progress("settled"))
        self.hints.deliver.set()
        self.hints.record.set()
        self.hints.work.set()

    async def deliver(self, post: Post) -> int | None:
        """Replies leave, in order per conversation; returns when the next may be tried."""
        return await post.deliver()

    def _tell_settled(self, group: Group, dispatch: Dispatch) -> None:
        """Messages that no turn will answer are settled here."""
        for routed in dispatch.batches:
            if routed.verdict.action is not Action.FORWARD:
                settled = [one for one in group.messages if routed.first <= one.number <= routed.last]
                self._mind.progress.tell(settled, Progress("settled", routed.verdict.reason))

    def _tell(self, claimed: Claimed, text: str) -> None:
        self._mind.progress.tell(claimed.messages, Progress("delta", text))
