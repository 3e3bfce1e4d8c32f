"""The inbox and the events of one home, as a library."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from math import inf
from typing import Any

from keepsaid.app.instance import Instance
from keepsaid.domain import event, ids, turn
from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks
from keepsaid.domain.prompt import Json
from keepsaid.errors import InputError, StoreError, UnknownChannel
from keepsaid.events.catalog import USER_MESSAGE
from keepsaid.interfaces.sdk.values import CHANNEL, Message, Receipt, receipt_of, text_in
from keepsaid.interfaces.shapes import cloud_event, subject_in


class Batch:
    """Messages of one lane, to be answered together; always one or more. Settle it with `done` or `fail`.

    `lost` is set once another owner has it, or it took too long: then `done` raises LeaseLost, and the work on it
    is in vain.
    """

    def __init__(self, instance: Instance, claimed: turn.ClaimedBatch, consumer: str) -> None:
        self._instance = instance
        self._claimed = claimed
        self._consumer = consumer
        self.settled = False
        self.lost = asyncio.Event()
        self.turn = ids.show("turn", claimed.turn_id)
        self.conversation = claimed.batch.lane.conversation
        self.lane = claimed.batch.lane.key
        self.messages = tuple(_message(one.inbound) for one in claimed.all_messages)

    async def done(self, reply: str = "") -> None:
        """Settle the batch, with the reply in the same commit; delivery follows. Raises LeaseLost.

        A reply to the program's own channel counts as seen: the program has just written it. Said again of a batch
        that was done under this lease, it changes nothing: the first reply stands.
        """
        text_in(reply, "reply")
        batch = self._claimed.batch
        if self.settled and await self._instance.services.batches.find(batch.id, batch.fence) is None:
            return
        reply_id = await self._instance.services.batches.done(self._claimed, reply, self._consumer)
        self.settled = True
        if reply_id is not None and self._claimed.batch.lane.channel == CHANNEL:
            await self._instance.services.inbox.mark_seen(reply_id)

    async def fail(self, reason: str) -> str:
        """Charge the batch an attempt; it comes again, or is dead after the third. Returns its new state."""
        state = await self._instance.services.batches.fail(self._claimed, reason)
        self.settled = True
        return state


class Inbox:
    """A durable inbox."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self.is_read = False
        """Whether batches were ever asked for."""

    async def put(self, message: Message) -> Receipt:
        """Store a message; returns once it is on disk.

        Raises InputError with nothing stored, KeyConflict when its external id came with other content
        before, StoreError when the disk refuses.
        """
        return receipt_of(await self._instance.receive(self.inbound_of(message)))

    def inbound_of(self, message: Message) -> Inbound:
        """The message as it is stored, with the trust of its sender. Raises UnknownChannel."""
        if not isinstance(message, Message):
            raise InputError(f"a message is a Message(text, sender, conversation), not {type(message).__name__}")
        for name in ("text", "sender", "conversation", "channel"):
            text_in(getattr(message, name), name)
        config = self._instance.config
        if (settings := config.channels.get(message.channel)) is None:
            known = ", ".join(sorted(config.channels))
            raise UnknownChannel(f"there is no channel {message.channel!r}; known: {known}")
        origin = Origin(message.channel, "default", message.conversation, message.sender, direct=message.direct)
        origin = replace(origin, trust=config.trust_of(origin))
        marks = ProviderMarks(message.external_id, message.provider_id, message.reply_to)
        raw = message.text.encode("utf-8", "surrogatepass")
        return Inbound(origin, Content(raw, message.text), marks, settings.priority)

    async def batches(self, consumer: str, *, idle_s: float | None = None) -> AsyncGenerator[Batch, None]:
        """Batches as they are ready, best priority first, each leased until it is settled.

        With `idle_s` this ends once no batch was ready for that many seconds; without, it waits for the next one for
        ever. A batch that is left unsettled when the next is asked for goes back to the queue, uncharged. Cancelled
        while it waits, this ends with nothing leased; ask for `batches` again.
        """
        self.is_read = True
        clock, limit_ms = self._instance.clock, inf if idle_s is None else idle_s * 1_000
        service, idle_since = self._instance.services.batches, clock.monotonic_ms()
        while True:
            asked_at = clock.now_ms()
            if not (found := await service.claim()):
                if (left_ms := limit_ms - (clock.monotonic_ms() - idle_since)) <= 0:
                    return
                await service.until_ready(asked_at, left_ms)
                continue
            [claimed] = found
            batch = Batch(self._instance, claimed, consumer)
            try:
                async with self._held(claimed, batch.lost):
                    yield batch
            finally:
                if not batch.settled:
                    await asyncio.shield(self._instance.attempt.released(claimed.batch))
            idle_since = clock.monotonic_ms()

    @asynccontextmanager
    async def _held(self, claimed: turn.ClaimedBatch, lost: asyncio.Event) -> AsyncIterator[None]:
        """Keep the lease while the block runs, within the time that a batch may take which runs alone."""
        leases, limit_s = self._instance.leases, self._instance.leases.limit_s(claimed)
        watch = None if limit_s is None else asyncio.create_task(self._taken_away(claimed, lost, limit_s * 1000))
        try:
            async with leases.renewed(claimed, lost.set):
                yield
        finally:
            if watch is not None:
                watch.cancel()

    async def _taken_away(self, claimed: turn.ClaimedBatch, lost: asyncio.Event, limit_ms: float) -> None:
        """Take back a batch whose trial came to its time limit; again later, when the store refuses."""
        while not lost.is_set():
            await self._instance.clock.wait(asyncio.Event(), limit_ms)
            with suppress(StoreError):
                await self._instance.attempt.survived(claimed)
                lost.set()


def _message(inbound: Inbound) -> Message:
    origin, marks = inbound.origin, inbound.marks
    names = (marks.external_id, marks.provider_id, marks.reply_to)
    return Message(inbound.content.text, origin.sender, origin.conversation, origin.channel, *names, origin.direct)


_UNTOLD = "Nothing was stored."


class EventClient:
    """Facts that happened; every event is a dict in the shape of CloudEvents 1.0."""

    def __init__(self, instance: Instance, inbox: Inbox) -> None:
        self._instance = instance
        self._inbox = inbox

    async def subscribe(
        self,
        name: str,
        topics: str | tuple[str, ...],
        tell: Callable[[dict[str, Any]], Awaitable[object]],
        *,
        from_start: bool = False,
    ) -> None:
        """Tell `tell` of these topics (`turn.committed`, `memory.*`) while this home is open.

        The name is remembered: after a restart, subscribe again under it to receive the events since. Each
        event is delivered at least once, in order for each subject. If the handler raises or takes over a minute, it is
        retried after one second, then two and so on; the eighth failure is final (`keepsaid ext events dead`).
        Raises InputError for an invalid topic.
        """

        async def deliver(happened: event.Event) -> None:
            await tell(cloud_event(happened))

        wanted = (topics,) if isinstance(topics, str) else tuple(topics)
        await self._instance.telling.subscribe(name, wanted, deliver, from_start=from_start)

    async def unsubscribe(self, name: str) -> bool:
        """Remove a subscriber and drop its pending deliveries. False when it is not known."""
        return await self._instance.telling.unsubscribe(name)

    async def emit(self, topic: str, payload: Mapping[str, Json], about: str = "") -> None:
        """Publish an event of your own (`deploy.finished`), `about` a subject; returns once it is on disk.

        Put ids into the payload and not what people said: what is forgotten is not looked for there. Raises
        InputError for topics that are the runtime's own, and for over 64 kB.

        `user.message` {text, user_id} is what somebody said (seed 002): it goes into the buffer as a message of this
        program's own channel, trusted as that channel is, and once for each `about`.
        """
        if topic == USER_MESSAGE:
            await self._inbox.put(_said(payload, about))
            return
        await self._instance.telling.emit(topic, payload, about)

    async def wait_for(self, topic: str, about: str, timeout_s: float, after: str = "0") -> dict[str, Any] | None:
        """The first event of a topic about something, after the event of this id; None when there is none in time.

        It may have happened before the call, or before a restart. Messages are not waited for so: put one and wait
        for its reply.
        """
        if not (after.isascii() and after.isdigit()):
            what = f"{after!r} is not the id of an event"
            raise InputError(what, safe="Nothing was changed.", hint="keepsaid ext events tail")
        found = await self._instance.telling.wait_for(topic, subject_in(topic, about), timeout_s, int(after))
        return None if found is None else cloud_event(found)


def _said(payload: Mapping[str, Json], about: str) -> Message:
    """A `user.message` as a message: in a conversation of its sender alone, unless one is named."""
    text, user, channel, where = (payload.get(name) for name in ("text", "user_id", "channel_id", "conversation_id"))
    if not isinstance(text, str) or not isinstance(user, str) or not user:
        raise InputError(f"{USER_MESSAGE} needs text and user_id, both texts", safe=_UNTOLD)
    if channel not in (None, CHANNEL):
        raise InputError(f"{USER_MESSAGE} comes by {CHANNEL}, the channel of programs, and by no other", safe=_UNTOLD)
    named = f"{USER_MESSAGE}:{about}" if about else None
    return Message(text, user, str(where or user), external_id=named, direct=where is None)
