"""Time and identity, as needs: what makes a run repeatable."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Clock(Protocol):
    """Wall time in milliseconds UTC, and waiting."""

    def now_ms(self) -> int:
        """Wall time, milliseconds UTC. It may jump."""
        ...

    def steady_ms(self) -> int:
        """Milliseconds UTC as they would be had the wall clock not been set since the start: leases go by it."""
        ...

    def due_ms(self) -> int:
        """The latest time the wall clock told since the start, and what has passed since: what waits goes by it.

        A clock that is set back, or ahead by mistake and right again, delays nothing.
        """
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

    def follow(self, number: int) -> None:
        """Make every later number larger than this one, which was made before the start."""
        ...
