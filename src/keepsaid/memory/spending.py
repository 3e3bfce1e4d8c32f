"""Spending: what a day's reading has cost, noted before it is spent, so that a restart gives none of it back."""

from __future__ import annotations

import json

from keepsaid.domain.process import Note
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store_views import Notes

_DAY_MS = 86_400_000
_NAME = "collection spent"


class Spending:
    """Calls and tokens of one day (UTC)."""

    def __init__(self, notes: Notes, clock: Clock) -> None:
        self._notes = notes
        self._clock = clock
        self._day = -1
        self.calls = 0
        self.tokens = 0

    async def look(self) -> bool:
        """Read what was spent today, where that is not known; returns whether a day has begun."""
        now = self._clock.now_ms()
        day = now // _DAY_MS
        if day == self._day:
            return False
        noted = await self._notes.note(f"{_NAME} {day}", now)
        self._day = day
        self.calls, self.tokens = json.loads(noted) if noted else (0, 0)
        return True

    async def spend(self, calls: int, tokens: int) -> None:
        """Add to it. Raises a StoreError: then it is not to be spent."""
        await self.look()
        self.calls += calls
        self.tokens += tokens
        now, ends = self._clock.now_ms(), (self._day + 1) * _DAY_MS
        await self._notes.apply(Note(f"{_NAME} {self._day}", json.dumps([self.calls, self.tokens]), ends, now))
