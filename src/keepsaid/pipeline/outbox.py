"""The outbox: sends replies in order; decides whether a failed one is sent again, or given up.

What was provably not sent waits for a day; what may have arrived is sent 20 times at most. Outages that a channel
reports as such end nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from keepsaid.domain.commits import Doubt, Resend, Settle, TakeReplies
from keepsaid.domain.reply import Delivered, Sending, SendLimits, SendResult, StoredReply
from keepsaid.domain.reply_parts import ConfirmPart, KeepParts
from keepsaid.errors import ChannelError, StoreBroken, StoreError
from keepsaid.ports.channel import MAY_SEND, Channel, PartedChannel, abilities_of
from keepsaid.ports.runtime import Clock, Standing, point
from keepsaid.ports.store import Store
from keepsaid.ports.telemetry import NO_TELEMETRY, Doing, Telemetry

_log = logging.getLogger("keepsaid.outbox")
_TAKEN_MAX = 32
_STORE_WAIT_MS = 1_000
_DOUBTS_MAX = 20
_FIRST_WAIT_MS = 500
_BLOCKED_WAIT_MS = 200
"""What is due but stands behind a reply that is not settled is looked at again after this."""

_LONGEST_WAIT_MS = 300_000


@dataclass(slots=True, eq=False)
class OutboxSender:
    """Takes replies out of the outbox and hands them to their channels. What may have arrived is sent again, marked."""

    store: Store
    channels: Mapping[str, Channel]
    clock: Clock
    owner: str
    hint: asyncio.Event
    limits: SendLimits = SendLimits()
    standing: Standing | None = None
    telemetry: Telemetry = NO_TELEMETRY
    _called: tuple[str, ...] = field(init=False)
    _sending: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _taking: asyncio.Task[int] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._called = tuple(name for name, one in self.channels.items() if one.sending is not Sending.PULL)

    async def recover(self) -> int:
        """At start: what a dead process was sending may or may not have arrived."""
        return await self.store.apply(Doubt(self.owner, self.clock.now_ms()))

    async def deliver(self) -> int | None:
        """Start sending what is due, one reply a conversation; returns when the next may be tried.

        A receiver that hangs holds up its own conversation and nobody else's.
        """
        now, free = self.clock.due_ms(), _TAKEN_MAX - len(self._sending)
        due = await self.store.next_send(self._called)
        if due is None or due > now or not free:
            return due if free else None
        self._taking = asyncio.create_task(self._take(free, now))
        taken = await asyncio.shield(self._taking)
        return await self.store.next_send(self._called) if taken else now + _BLOCKED_WAIT_MS

    async def _take(self, free: int, now: int) -> int:
        """Take replies and start sending them; a stop lets this end, or what is taken would have no sender."""
        await self.store.apply(Resend(self.limits.without_resend, now))
        taken = await self.store.apply(TakeReplies(self._called, self.owner, free, now))
        for reply in taken:
            task = asyncio.create_task(self._send(reply), name=f"send-{reply.id}")
            self._sending.add(task)
            task.add_done_callback(self._sent)
        return len(taken)

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        self.hint.set()

    async def stop(self, patience_s: float) -> None:
        """Let what is being sent arrive; what takes too long is in doubt and sent again after the next start."""
        if self._taking is not None:
            await asyncio.wait((self._taking,))
        if self._sending:
            await asyncio.wait(self._sending, timeout=patience_s)
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)

    async def _send(self, reply: StoredReply) -> None:
        """Send a reply once. The channel reports the result; this sets the next try, or that there is none."""
        point("send.before")
        if not await self._is_ours(reply):
            return
        with self.telemetry.span(Doing.DELIVER) as span:
            result = await self._try(reply)
            point("send.after")
            outcome, detail = self._verdict(reply, result)
            span.note("channel", reply.lane.channel)
            span.note("outcome", str(outcome))
            span.note("attempt", reply.attempts)
        if (wait := result.retry_after_ms) is None:
            wait = min(_LONGEST_WAIT_MS, _FIRST_WAIT_MS * 2 ** min(reply.attempts - 1, 16))
        now, retry_at = self.clock.now_ms(), self.clock.due_ms() + wait
        if not await self._settled(Settle(reply.id, reply.fence, outcome, now, detail, result.provider_id, retry_at)):
            return
        self.telemetry.add("keepsaid_replies_total", (reply.lane.channel, outcome))
        if outcome is Delivered.CONFIRMED:
            self.telemetry.observe("keepsaid_delivery_seconds", (now - reply.created_at) / 1_000)

    def _verdict(self, reply: StoredReply, result: SendResult) -> tuple[Delivered, str]:
        """What a try settles, and why: a reply that failed for too long is dead."""
        if result.outage or result.outcome not in (Delivered.RETRY, Delivered.DOUBT):
            return result.outcome, result.detail
        if result.outcome is Delivered.DOUBT and reply.doubts + 1 >= _DOUBTS_MAX:
            return Delivered.DEAD, f"{result.detail}; given up: it may have arrived {_DOUBTS_MAX} times"
        limit_ms = self.limits.dead_after_ms
        if result.outcome is Delivered.RETRY and self.clock.due_ms() >= reply.tried_from + limit_ms:
            return Delivered.DEAD, f"{result.detail}; given up after {limit_ms / 3_600_000:g} h"
        return result.outcome, result.detail

    async def _is_ours(self, reply: StoredReply) -> bool:
        """False when this process was frozen since it took the reply: taken for dead, so that others send it."""
        if self.standing is None:
            return True
        MAY_SEND.set(self._may_send)
        while True:
            try:
                await self.standing.ascertain()
            except StoreBroken as error:
                _log.warning("reply not sent: %s", error.what, extra={"code": error.code, "reply": reply.id})
                return False
            except StoreError:
                await self.clock.wait(asyncio.Event(), _STORE_WAIT_MS)
            else:
                return True

    def _may_send(self) -> bool:
        return self.standing is None or self.standing.is_sure

    async def _settled(self, commit: Settle | ConfirmPart) -> bool:
        """Record how a try ended, as soon as the store takes it; False when others have the reply, or it is broken."""
        while True:
            try:
                return await self.store.apply(commit)
            except StoreBroken as error:
                _log.error("reply not settled: %s", error.what, extra={"code": error.code, "reply": commit.reply_id})
                return False
            except StoreError as error:
                ids = {"code": error.code, "reply": commit.reply_id}
                _log.warning("reply not settled yet: %s", error.what, extra=ids)
            await self.clock.wait(asyncio.Event(), _STORE_WAIT_MS)

    async def _send_parts(self, channel: PartedChannel, reply: StoredReply) -> SendResult:
        """Send the parts that have not arrived, each once the one before it is known to have; the first names all."""
        try:
            parts = await self.store.apply(KeepParts(reply.id, reply.fence))
            if not parts:
                bodies = tuple(await channel.split(reply))
                parts = await self.store.apply(KeepParts(reply.id, reply.fence, bodies))
        except StoreError as error:
            return SendResult(Delivered.RETRY, f"not sent: {error.what}")
        except ChannelError as error:
            return SendResult(Delivered.RETRY, f"not sent: {error.what}", outage=True)
        name, detail = next((part.provider_id for part in parts if part.provider_id), None), ""
        for part in parts:
            if part.is_sent:
                continue
            point("part.before")
            result = await channel.send_part(reply, part)
            point("part.after")
            if result.outcome is not Delivered.CONFIRMED:
                place = f"part {part.n + 1} of {len(parts)}: " if len(parts) > 1 else ""
                return replace(result, detail=f"{place}{result.detail}")
            name, detail = name or result.provider_id, result.detail or detail
            if not await self._settled(ConfirmPart(reply.id, reply.fence, part.n, result.provider_id)):
                return SendResult(Delivered.DOUBT, "others send this reply")
        return SendResult(Delivered.CONFIRMED, detail, name)

    async def _try(self, reply: StoredReply) -> SendResult:
        if (channel := self.channels.get(reply.lane.channel)) is None:
            return SendResult(Delivered.REFUSED, f"the channel {reply.lane.channel!r} is not set up any more")
        reply = reply.within(abilities_of(channel).uploads)
        try:
            if isinstance(channel, PartedChannel):
                return await self._send_parts(channel, reply)
            return await channel.send(reply)
        except Exception as error:  # noqa: BLE001  # guard: outbox - a broken channel must not stop the others
            _log.error("sending on %s failed", reply.lane.channel, exc_info=error)
            return SendResult(Delivered.DOUBT, f"{type(error).__name__} while sending")
