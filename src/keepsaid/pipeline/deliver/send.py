"""Send: replies leave in order, each try recorded before and after."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from keepsaid.domain.commits import Doubt, Resend, Settle, TakeReplies
from keepsaid.domain.reply import Delivered, Reply, Sending, SendResult
from keepsaid.ports.channel import Channel
from keepsaid.ports.clock import Clock
from keepsaid.ports.operations import Operations
from keepsaid.ports.outbox import OutboxView
from keepsaid.ports.points import point

_TAKEN_MAX = 32
_TRIES_MAX = 20
_FIRST_WAIT_MS = 500
_BLOCKED_WAIT_MS = 200
"""What is due but stands behind a reply that is not settled is looked at again after this."""

_LONGEST_WAIT_MS = 300_000


class Post:
    """Takes replies out of the outbox and hands them to their channels."""

    def __init__(
        self, operations: Operations, outbox: OutboxView, channels: Mapping[str, Channel], clock: Clock, owner: str
    ) -> None:
        self._operations = operations
        self._outbox = outbox
        self._channels = channels
        self._clock = clock
        self._owner = owner
        self._called = tuple(name for name, channel in channels.items() if channel.sending is not Sending.PULL)
        self._unaddressed = tuple(name for name, channel in channels.items() if channel.sending is not Sending.PUSH)

    async def recover(self) -> int:
        """At start: what a dead process was sending may or may not have arrived."""
        return await self._operations.apply(Doubt(self._owner, self._clock.now_ms()))

    async def deliver(self) -> int | None:
        """Send what is due, one reply a conversation; returns when the next may be tried."""
        now = self._clock.now_ms()
        due = await self._outbox.next_send(self._called)
        if due is None or due > now:
            return due
        await self._operations.apply(Resend((), now))
        taken = await self._operations.apply(TakeReplies(self._called, self._owner, _TAKEN_MAX, now))
        await asyncio.gather(*(self._send(reply) for reply in taken))
        return await self._outbox.next_send(self._called) if taken else now + _BLOCKED_WAIT_MS

    async def _send(self, reply: Reply) -> None:
        point("send.before")
        result = await self._tried(reply)
        point("send.after")
        outcome = result.outcome
        if outcome in (Delivered.RETRY, Delivered.DOUBT) and reply.attempts >= _TRIES_MAX:
            outcome = Delivered.DEAD
        wait = result.retry_after_ms
        if wait is None:
            wait = min(_LONGEST_WAIT_MS, _FIRST_WAIT_MS * 2 ** min(reply.attempts - 1, 16))
        now = self._clock.now_ms()
        settled = Settle(reply.id, reply.fence, outcome, now, result.detail, result.provider_id, now + wait)
        await self._operations.apply(settled)

    async def _tried(self, reply: Reply) -> SendResult:
        channel = self._channels.get(reply.lane.channel)
        if channel is None:
            return SendResult(Delivered.REFUSED, f"the channel {reply.lane.channel!r} is not set up any more")
        try:
            return await channel.send(reply)
        except Exception as error:  # noqa: BLE001  # guard: outbox - a broken channel must not stop the others
            return SendResult(Delivered.DOUBT, f"{type(error).__name__} while sending")
