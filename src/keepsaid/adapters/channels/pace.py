"""Pace: how fast an account may send, in all and to one conversation, before its provider has to say so."""

from __future__ import annotations

import asyncio

from keepsaid.ports.runtime import Clock
from keepsaid.values import frozen


@frozen
class Rate:
    """One message each `every_ms`, after `burst` at once."""

    every_ms: float
    burst: int = 1


_PATIENT_MS = 5_000
"""A sender waits so long for its turn; what has to wait longer is tried again later."""

_KEPT_MAX = 1_000
"""Conversations whose pace is remembered; those whose time is over are forgotten first."""


class SendingPace:
    """When each conversation, and the account, may send again, milliseconds of the steady clock.

    A conversation whose name begins with `groups` has the rate of a group, others that of a chat.
    """

    def __init__(self, clock: Clock, account: Rate, chat: Rate, group: Rate | None = None, groups: str = "") -> None:
        self._clock = clock
        self._account, self._chat, self._group, self._groups = account, chat, group or chat, groups
        self._free_at: dict[str, float] = {}
        self._held_until: dict[str, float] = {}

    async def enter(self, conversation: str) -> int | None:
        """Wait for the turn of a conversation; returns milliseconds to come again where that takes too long."""
        now = self._clock.monotonic_ms()
        rates = (("", self._account), (conversation, self._rate_of(conversation)))
        wait_ms = max(
            *(self._free_at.get(name, 0.0) - (rate.burst - 1) * rate.every_ms - now for name, rate in rates),
            *(self._held_until.get(name, 0.0) - now for name, _ in rates),
            0.0,
        )
        if wait_ms > _PATIENT_MS:
            return int(wait_ms)
        for name, rate in rates:
            self._free_at[name] = max(self._free_at.get(name, 0.0), now) + rate.every_ms
        self._trim(now)
        if wait_ms > 0:
            await self._clock.wait(asyncio.Event(), wait_ms)
        return None

    def hold(self, conversation: str, ms: float) -> None:
        """Send nothing to a conversation for so long: its provider said so."""
        self._held_until[conversation] = self._clock.monotonic_ms() + ms

    def _rate_of(self, conversation: str) -> Rate:
        return self._group if self._groups and conversation.startswith(self._groups) else self._chat

    def _trim(self, now: float) -> None:
        for times in (self._free_at, self._held_until):
            if len(times) > _KEPT_MAX:
                for name in [name for name, at in times.items() if at <= now]:
                    del times[name]
