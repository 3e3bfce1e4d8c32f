"""The line of an account: shown as it is, and dialled again after a wait that grows from 1 to 60 seconds."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from keepsaid.adapters.channels.backoff import LineBackoff
from keepsaid.domain.line import LineState
from keepsaid.ports.channel import LineKeeper
from keepsaid.ports.runtime import Clock
from keepsaid.values import frozen

REQUESTED_MS_MAX: Final = 86_400_000
"""A provider that asks to wait longer than a day is tried again after one: a reply does not wait longer either."""

_JITTER: Final = 0.1


@frozen
class LineTrouble:
    """What an error makes of a line: its state, the reason that people read, and the wait before the next try.

    The wait is `wait_ms`; without it that of the backoff, and `least_ms` at least.
    """

    state: LineState
    reason: str
    wait_ms: float | None = None
    least_ms: float = 0.0


class ChannelLine:
    """Shows the state of a line, and waits before the next try. Each channel says what its errors mean: `judge`."""

    def __init__(self, clock: Clock, keeper: LineKeeper) -> None:
        self.clock = clock
        self._keeper = keeper
        self._backoff = LineBackoff(clock)

    @property
    def is_up(self) -> bool:
        """Whether the last try succeeded."""
        return self._backoff.is_up

    def judge(self, error: Exception) -> LineTrouble:
        """What an error makes of the line."""
        return LineTrouble(LineState.DOWN, str(error))

    def connecting(self) -> None:
        """Show that the provider is dialled, and nothing was read yet."""
        self._keeper.show(LineState.CONNECTING)

    def up(self, note: str = "") -> None:
        """Show that messages come in, with a note for people."""
        self._backoff.up()
        self._keeper.show(LineState.UP, note)

    async def wait_out(self, error: Exception) -> None:
        """Show what went wrong, and wait before the next try."""
        trouble, usual_ms = self.judge(error), self._backoff.next_ms()
        wait_ms = max(usual_ms, trouble.least_ms) if trouble.wait_ms is None else trouble.wait_ms
        wait_ms = min(wait_ms, REQUESTED_MS_MAX)
        self._keeper.show(trouble.state, trouble.reason, int(wait_ms))
        await self.clock.wait(asyncio.Event(), wait_ms)


def with_jitter(ms: float) -> int:
    """A wait that a provider asks for: it is kept whole, and up to a tenth is added (spec: channels, C6)."""
    return int(ms * (1 + _JITTER * random.random()))  # noqa: S311 - nothing secret


def requested_ms(seconds: float) -> float:
    """The milliseconds in seconds that a provider asks to wait, from 0 to a day, however large the number is."""
    return min(max(0.0, min(seconds, REQUESTED_MS_MAX)) * 1_000, REQUESTED_MS_MAX)
