"""The inbox of an instance in another process: messages put in, and batches leased, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from math import ceil, inf
from typing import Any, Protocol

from keepsaid.errors import InputError, KeepsaidError, LeaseLost, NotRunning
from keepsaid.interfaces.sdk.agents import AgentMemory
from keepsaid.interfaces.sdk.inbox import Batch, Inbox
from keepsaid.interfaces.sdk.values import CHANNEL, Message, Receipt, text_in

LEASE_S = 60
"""Seconds that a lease lasts; it is renewed three times in that time."""

_WAIT_S = 1
"""Seconds that one request for a batch waits: a program that is cancelled waits for the end of its request."""


class OperatorCall(Protocol):
    """Makes a request of the operator by its method, path and fields; returns the JSON object of the answer."""

    def __call__(self, method: str, path: str, fields: Mapping[str, object] | None = None) -> Awaitable[dict[str, Any]]:
        """Raises NotRunning, or the error that the instance answered with."""


AgentOf = Callable[..., AgentMemory]
"""Returns the memory of an agent for a sender and an account; `direct` says that nobody else is there."""


def needs_instance(what: str, instead: str) -> InputError:
    """The error for what only the process can do that has the home open; `instead` is what can be done here."""
    text = f"another process has this home open, and {what} needs that process itself"
    return InputError(text, safe="Nothing was changed.", hint=instead)


class RemoteBatch(Batch):
    """A batch that another process leased to this one."""

    def __init__(self, call: OperatorCall, leased: Mapping[str, Any], consumer: str) -> None:
        self._call, self._consumer = call, consumer
        self._path, self._channel = f"/v1/batches/{leased['lease']}", leased["channel"]
        self.lease_s = int(leased["lease_s"])
        self.settled = False
        self.lost = asyncio.Event()
        self.turn, self.conversation, self.lane = leased["turn"], leased["conversation"], leased["lane"]
        self.messages = tuple(_message_in(leased, one) for one in leased["messages"])

    async def done(self, reply: str = "") -> None:
        """Settle the batch, as that of an opened home. Raises LeaseLost."""
        fields = {"reply": text_in(reply, "reply"), "worker": self._consumer}
        settled = await self._call("POST", f"{self._path}/done", fields)
        self.settled = True
        if settled["reply"] is not None and self._channel == CHANNEL:
            await self._call("POST", f"/v1/replies/{settled['reply']}/seen")

    async def fail(self, reason: str) -> str:
        """Charge the batch an attempt; it comes again, or is dead after the third. Returns its new state."""
        state: str = (await self._call("POST", f"{self._path}/fail", {"reason": reason}))["state"]
        self.settled = True
        return state

    async def release(self) -> None:
        """Queue the batch again, uncharged; one whose lease is over is queued already."""
        with suppress(LeaseLost, NotRunning):
            await self._call("POST", f"{self._path}/release")

    @asynccontextmanager
    async def renewed(self, asked_s: int) -> AsyncIterator[None]:
        """Renew the lease while the block runs; one that is shorter than `asked_s` is a trial, and ends with it."""
        renewing = asyncio.create_task(self._renew(is_trial=self.lease_s < asked_s), name="renew-lease")
        try:
            yield
        finally:
            renewing.cancel()

    async def _renew(self, *, is_trial: bool) -> None:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self.lease_s
        while (left_s := ends_at - loop.time()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.lost.wait(), left_s if is_trial else min(left_s, self.lease_s / 3))
            if is_trial:
                continue
            try:
                asked_at = loop.time()
                await self._call("POST", f"{self._path}/renew", {"lease_s": self.lease_s})
                ends_at = asked_at + self.lease_s
            except LeaseLost:
                break
            except KeepsaidError:
                continue  # the instance is busy or away: the lease holds until its end
        if not self.settled:
            self.lost.set()


class RemoteInbox(Inbox):
    """The inbox of an instance in another process: puts messages in, and leases batches where it answers none."""

    def __init__(self, call: OperatorCall, agent_of: AgentOf) -> None:
        self._call, self._agent_of = call, agent_of
        self.is_read = True
        self.lease_s = LEASE_S
        """Seconds that a batch is leased for each time."""

    async def put(self, message: Message) -> Receipt:
        """Store a message there; returns once it is on disk. Raises as that of an opened home."""
        if not isinstance(message, Message):
            raise InputError(f"a message is a Message(text, sender, conversation), not {type(message).__name__}")
        for name in ("text", "sender", "conversation", "channel"):
            text_in(getattr(message, name), name)
        if message.channel != CHANNEL:
            raise needs_instance(f"a message of the channel {message.channel}", "send it by POST /v1/messages")
        agent = self._agent_of(message.sender, "default", direct=message.direct)
        marks = {"provider_id": message.provider_id or "", "reply_to": message.reply_to or ""}
        put = await agent.inbox.put(message.conversation, message.text, key=message.external_id or "", **marks)
        return Receipt(put["id"], put["conversation"], put["lane"], put["number"], put["intake"] != "stored")

    async def batches(self, consumer: str, *, idle_s: float | None = None) -> AsyncGenerator[Batch, None]:
        """Batches as those of an opened home, leased one at a time, and renewed until they are settled.

        Raises InputError where the instance answers its batches itself (`turns.answered_by`), and NotRunning where it
        stops. Cancelled while it waits, this ends within a second or so, with nothing leased.
        """
        loop = asyncio.get_running_loop()
        limit_s = inf if idle_s is None else idle_s
        idle_since = loop.time()
        while True:
            left_s = limit_s - (loop.time() - idle_since)
            if (batch := await self._leased(consumer, max(0.0, min(left_s, _WAIT_S)))) is None:
                if limit_s - (loop.time() - idle_since) <= 0:
                    return
                continue
            try:
                async with batch.renewed(self.lease_s):
                    yield batch
            finally:
                if not batch.settled:
                    await asyncio.shield(batch.release())
            idle_since = loop.time()

    async def _leased(self, consumer: str, wait_s: float) -> RemoteBatch | None:
        """Lease a batch; a caller who is cancelled meanwhile leaves it in the queue."""
        asking = asyncio.ensure_future(self._lease(consumer, ceil(wait_s)))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            await asyncio.shield(_release_leased(asking))
            raise

    async def _lease(self, consumer: str, wait_s: int) -> RemoteBatch | None:
        fields = {"limit": 1, "lease_s": self.lease_s, "wait_s": wait_s}
        found = (await self._call("POST", "/v1/batches:lease", fields))["batches"]
        return RemoteBatch(self._call, found[0], consumer) if found else None


async def _release_leased(asking: asyncio.Future[RemoteBatch | None]) -> None:
    with suppress(KeepsaidError):
        if (batch := await asking) is not None:
            await batch.release()


def _message_in(leased: Mapping[str, Any], message: Mapping[str, Any]) -> Message:
    names = (message["external_id"], message["provider_id"], message["reply_to"])
    place = (message["sender"], leased["conversation"], leased["channel"])
    return Message(message["text"], *place, *names, message["direct"])
