"""The path of a message: receive > batch and route > claim > open > answer > deliver.

Every step reads rows and ends in one commit; between any two commits a crash leads back to a claimable row.
"""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain import commits, message, route, turn
from keepsaid.domain.ids import show
from keepsaid.errors import LeaseLost
from keepsaid.pipeline import leasing, routing
from keepsaid.pipeline.answering import AgentDeps, Answering, PipelineSettings
from keepsaid.pipeline.intake import MessageIntake
from keepsaid.pipeline.outbox import OutboxSender
from keepsaid.ports import model, runtime
from keepsaid.ports.runtime import Clock, Ids, Wakeups
from keepsaid.ports.store import Store
from keepsaid.ports.telemetry import Doing


class MessagePipeline:
    """The steps of a message, in order. They meet here and nowhere else."""

    def __init__(self, store: Store, agent: AgentDeps, settings: PipelineSettings, clock: Clock, ids: Ids) -> None:
        self.hints = Wakeups()
        self.answering = Answering(store, agent, settings, clock, ids, self.hints)
        self._store, self._clock, self._telemetry = store, clock, agent.telemetry
        self._waking = leasing.Waking(self.hints.work)
        self._router = routing.Router(
            store, clock, ids, self.hints, self._waking.writing, agent.progress, agent.telemetry
        )

    @property
    def settings(self) -> PipelineSettings:
        return self.answering.settings

    def update_settings(self, settings: PipelineSettings) -> None:
        """Go by other settings from the next group on; what is judged already, and turns under way, keep theirs."""
        self.answering.settings = settings

    def set_identity(self, identity: model.AgentIdentity, skills: model.SkillShelf) -> None:
        """Answer as somebody else from the next prompt on."""
        agent = self.answering.agent
        self.answering.agent = replace(agent, identity=identity, sources=replace(agent.sources, skills=skills))

    async def receive(self, intake: MessageIntake, inbound: message.Inbound) -> commits.Received:
        """Commit 1: the message is on disk before it is acknowledged."""
        runtime.point("receive.before")
        with self._telemetry.span(Doing.RECEIVE) as span:
            received = await intake.receive(inbound)
            span.note("channel", inbound.origin.channel)
            span.note("intake", str(received.intake))
            span.begins(received.id)
        runtime.point("receive.after")
        self.hints.route.set()
        if inbound.files:
            self.hints.files.set()
        return received

    async def route(self) -> int | None:
        """Commit 2: lanes whose window has closed become batches with a verdict; returns when the next closes."""
        return await self._router.route(self.settings.routing)

    async def claim(self, leases: leasing.Leases, limit: int) -> tuple[turn.Lease, ...]:
        """Take the next batches, each under a lease."""
        return await self._waking.claimed(leases.claim(limit))

    @property
    def is_routing(self) -> bool:
        """Whether batches are being written now, which a claim at once may join."""
        return self._waking.is_writing

    async def open(self, lease: turn.Lease) -> turn.ClaimedBatch:
        """What a lease is for, read. Raises LeaseLost when another owner has the batch."""
        if (claimed := await self._store.claimed(lease)) is None:
            raise LeaseLost(f"{show('batch', lease.batch.id)} has another owner now, or none")
        return claimed

    async def answer(self, claimed: turn.ClaimedBatch) -> None:
        """Commits 3 and 4: context, steps, and the turn with its reply, all or nothing."""
        began, telemetry = self._clock.monotonic_ms(), self._telemetry
        with telemetry.turn_span(claimed.batch.lane, claimed.messages) as span:
            span.note("channel", claimed.batch.lane.channel)
            try:
                await self.answering.answer(claimed)
            finally:
                telemetry.observe("keepsaid_turn_seconds", (self._clock.monotonic_ms() - began) / 1_000)
        if claimed.batch.verdict.action is route.Action.FORWARD:
            waited_ms = self._clock.now_ms() - claimed.messages[0].received_at
            telemetry.observe("keepsaid_reply_wait_seconds", waited_ms / 1_000)

    async def deliver(self, outbox: OutboxSender) -> int | None:
        """Replies leave, in order per conversation; returns when the next may be tried."""
        return await outbox.deliver()
