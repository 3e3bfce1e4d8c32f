"""Faulty channels: what a process hands over arrives late, twice, or not at all, and the answer gets lost."""

from __future__ import annotations

import asyncio

from keepsaid.domain.reply import Delivered, Sending, SendResult, StoredReply
from keepsaid_testkit.simulator.ledger import RunRecord, Showing
from keepsaid_testkit.simulator.net import Net

TALK, POST, WEB, HOOKS = "talk", "post", "web", "hooks"
"""Pushed with a key, pushed without one, pulled, and webhooks whose replies are pushed without a key."""

_KEYED = frozenset((TALK, WEB))
"""Where one reply shows once: its key, or its id, is known."""

_PATIENCE_S = 10.0
_LATE_S = 30.0


class Provider:
    """The other end of a channel: it outlives every process."""

    def __init__(self, net: Net, seen: RunRecord, name: str) -> None:
        self.name = name
        self.keyed = name in _KEYED
        self._net = net
        self._seen = seen
        self._keys: dict[str, str] = {}

    def show(self, reply: StoredReply) -> None:
        """A reply arrives; one whose key is known is not shown again."""
        draft = reply.draft
        self._net.trace.add(f"{self.name} gets {reply.id} {draft.text!r} marked={reply.possible_duplicate}")
        if self.keyed and self._keys.setdefault(reply.key, draft.text) != draft.text:
            self._seen.broken.append(f"the key {reply.key} came with two texts")
        if self.keyed and any(one.reply_id == reply.id for one in self._seen.shown):
            return
        place = self.name, self.keyed, reply.lane.conversation
        self._seen.shown.append(Showing(*place, reply.id, draft.text, reply.possible_duplicate, draft.notice))

    async def take(self, reply: StoredReply) -> SendResult:
        """One request of a process."""
        net = self._net
        await net.pause(0.005, 0.4)
        if not net.happens(net.weather.sends):
            self.show(reply)
            return SendResult(Delivered.CONFIRMED, provider_id=f"{self.name}-{reply.id}")
        return await self._fail(reply, net.chance.randrange(12))

    async def _fail(self, reply: StoredReply, kind: int) -> SendResult:
        if kind < 3:
            return SendResult(Delivered.RETRY, "503", retry_after_ms=2_000 if kind else None)
        if kind < 6:
            self.show(reply)
            return SendResult(Delivered.DOUBT, "reset after accepting")
        if kind == 6:
            raise ConnectionResetError("reset before accepting")
        if kind == 7:
            self.show(reply)
            raise ConnectionResetError("reset after accepting")
        if kind < 10:
            await asyncio.sleep(_LATE_S)
            self.show(reply)
            return SendResult(Delivered.CONFIRMED)
        if kind == 10:
            self._seen.given_up.add(reply.id)
            return SendResult(Delivered.DEAD, "410")
        await asyncio.sleep(_LATE_S * 1e4)
        return SendResult(Delivered.RETRY)


class SimChannel:
    """A channel, as one process reaches its provider."""

    def __init__(self, net: Net, provider: Provider) -> None:
        self.name = provider.name
        self.sending = Sending.PULL if provider.name == WEB else Sending.PUSH
        self._net = net
        self._provider = provider

    async def send(self, reply: StoredReply) -> SendResult:
        """Try once; what takes too long is in doubt. It may raise, as a broken channel does."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await self._net.remote(self._provider.take(reply))
        except TimeoutError:
            return SendResult(Delivered.DOUBT, "no answer")

    async def close(self) -> None:
        """Nothing to give back."""
