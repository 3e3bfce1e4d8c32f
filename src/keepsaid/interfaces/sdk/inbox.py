"""The inbox: put messages in, take batches out; what is taken is leased, never lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from keepsaid.app.instance import Instance
from keepsaid.domain.commits import Failure, Intake
from keepsaid.domain.ids import show
from keepsaid.domain.message import Content, Inbound, Marks, Origin
from keepsaid.domain.prompt import Record, Role
from keepsaid.domain.text import normalise
from keepsaid.domain.turn import Claimed, Outcome, Usage
from keepsaid.errors import KeepsaidError, UnknownChannel
from keepsaid.interfaces.sdk.values import Message, Receipt

_POLL_MS = 1_000


class Batch:
    """Messages of one lane, to be answered together; always one or more. Settle it with `done` or `fail`."""

    def __init__(self, instance: Instance, claimed: Claimed, consumer: str) -> None:
        self._instance = instance
        self._claimed = claimed
        self._consumer = consumer
        self.settled = False
        self.turn = show("turn", claimed.turn_id)
        self.conversation = claimed.batch.lane.conversation
        self.lane = claimed.batch.lane.key
        self.messages = tuple(_message(one.inbound) for one in claimed.messages)

    async def done(self, reply: str = "") -> None:
        """Settle the batch, with the reply in the same commit; delivery follows. Raises LeaseLost."""
        said = normalise(reply)
        records = (Record(Role.ASSISTANT, said),) if said else ()
        outcome = Outcome(said, records, Usage(), normalise(f"consumer:{self._consumer}"), None)
        await self._instance.flow.commit(self._claimed, outcome)
        self.settled = True

    async def fail(self, reason: str) -> str:
        """Charge the batch an attempt; it comes again, or is dead after the third. Returns its new state."""
        self.settled = True
        return await self._instance.attempt.failed(self._claimed, Failure.RETRY, KeepsaidError(normalise(reason)))


class Inbox:
    """A durable inbox."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    async def put(self, message: Message) -> Receipt:
        """Store a message; returns once it is on disk.

        Raises InputError with nothing stored, KeyConflict when its external id came with other content
        before, StoreError when the disk refuses.
        """
        received = await self._instance.receive(self._inbound(message))
        place = (received.lane.conversation, received.lane.key, received.number)
        return Receipt(show("message", received.id), *place, received.intake is not Intake.STORED)

    def _inbound(self, message: Message) -> Inbound:
        config = self._instance.config
        settings = config.channels.get(message.channel)
        if settings is None:
            raise UnknownChannel(
                f"there is no channel {message.channel!r}; known: {', '.join(sorted(config.channels))}"
            )
        origin = Origin(message.channel, "default", message.conversation, message.sender, direct=message.direct)
        trust = config.trust_of(origin)
        origin = Origin(*(origin.channel, origin.account, origin.conversation, origin.sender), "", origin.direct, trust)
        marks = Marks(message.external_id, message.provider_id, message.reply_to)
        raw = message.text.encode("utf-8", "surrogatepass")
        return Inbound(origin, Content(raw, message.text), marks, settings.priority)

    async def batches(self, consumer: str) -> AsyncGenerator[Batch, None]:
        """Batches as they are ready, best priority first, each leased until it is settled.

        A batch that is left unsettled when the next is asked for goes back to the queue, uncharged.
        """
        instance, hint = self._instance, self._instance.flow.hints.work
        while True:
            claimed = await instance.flow.claim(instance.leases, 1)
            if not claimed:
                due = await instance.operations.next_ready()
                wait = _POLL_MS if due is None else max(1, min(_POLL_MS, due - instance.clock.now_ms()))
                await instance.clock.wait(hint, wait)
                continue
            batch = Batch(instance, claimed[0], consumer)
            try:
                async with instance.leases.renewed(claimed[0], lambda: None):
                    yield batch
            finally:
                if not batch.settled:
                    await asyncio.shield(instance.attempt.released(claimed[0]))


def _message(inbound: Inbound) -> Message:
    origin, marks = inbound.origin, inbound.marks
    ids = (marks.external_id, marks.provider_id, marks.reply_to)
    return Message(inbound.content.text, origin.sender, origin.conversation, origin.channel, *ids, origin.direct)
