"""Ahead: recall for a message begins when it has come in, and is there when its turn asks the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from keepsaid.domain.memory import Listener, Recalled
from keepsaid.ports.recall import Recall
from keepsaid.ports.runtime import Clock

_KEPT_MS = 1_000.0
"""What was begun is of use for so long; where nobody asked for it, nothing else is begun in that time."""


class _Begun(NamedTuple):
    """A recall under way: what was asked, how many commits memory had seen, when that was, and the answer."""

    asked: tuple[Listener, str, int]
    changes: int
    at: float
    answer: asyncio.Task[Recalled]


class Ahead:
    """Recall, one of which at a time may have been begun before it is asked for.

    It answers what a recall answers that begins when it is asked for: once memory has changed since, it is asked anew.
    `changes` counts the commits to memory that ended. What was begun is in no row: lost, it is asked anew as well.
    """

    def __init__(self, recall: Recall, changes: Callable[[], int], clock: Clock) -> None:
        self._recall = recall
        self._changes = changes
        self._clock = clock
        self._begun: _Begun | None = None
        self._rests_until = 0.0

    @property
    def rests(self) -> bool:
        """Whether nothing is begun now: something is already, or was in vain a short while ago."""
        return self._clock.monotonic_ms() < self._rests_until

    def begin(self, listener: Listener, query: str, limit: int) -> None:
        """Begin a recall that will be asked for soon, if there is time for it."""
        if self.rests:
            return
        self.stop()
        now = self._clock.monotonic_ms()
        answer = asyncio.create_task(self._recall.recall(listener, query, limit))
        self._begun = _Begun((listener, query, limit), self._changes(), now, answer)
        self._rests_until = now + _KEPT_MS

    async def recall(self, listener: Listener, query: str, limit: int, as_of: int | None = None) -> Recalled:
        """The best memories for a query, as of now; or of what held true at a time."""
        begun = self._begun
        if begun is None or as_of is not None or begun.asked != (listener, query, limit):
            return await self._recall.recall(listener, query, limit, as_of)
        if begun.changes != self._changes() or self._clock.monotonic_ms() - begun.at > _KEPT_MS:
            self.stop()
            return await self._recall.recall(listener, query, limit)
        self._begun, self._rests_until = None, 0.0
        return await begun.answer

    def stop(self) -> None:
        """Give up what was begun."""
        if self._begun is not None:
            self._begun.answer.cancel()
            self._begun = None
