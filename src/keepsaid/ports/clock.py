"""Time and identity, as needs: what makes a run repeatable."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Clock(Protocol):
    """Wall time in milliseconds UTC, and waiting."""

    def now_ms(self) -> int:
        """Wall time, milliseconds UTC. It may jump; nothing is ordered by it."""
        ...

    def monotonic_ms(self) -> float:
        """A time that never goes back, in milliseconds, for measuring."""
        ...

    async def wait(self, hint: asyncio.Event, timeout_ms: float) -> None:
        """Return when the hint is set, and clear it, or after the timeout, whichever is first."""
        ...


class Ids(Protocol):
    """Makes identifiers."""

    def next(self) -> int:
        """A new 63-bit number, larger than any this source made before."""
        ...
