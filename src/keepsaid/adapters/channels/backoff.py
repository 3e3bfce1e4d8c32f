"""(short: one rule for all lines) The wait before a provider is tried again: by chance, longer after each failure."""

from __future__ import annotations

import random

from keepsaid.ports.runtime import Clock

LONGEST_WAIT_MS = 60_000
_FIRST_WAIT_MS = 1_000
_UP_MS = 60_000
"""After a line was up for so long, the next outage begins with the shortest wait."""


class LineBackoff:
    """The wait before the next try: a part, by chance, of 1 s, then of twice as much, up to 60 s."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wait_ms = _FIRST_WAIT_MS
        self._up_since: float | None = None

    @property
    def is_up(self) -> bool:
        """Whether the last try succeeded."""
        return self._up_since is not None

    def up(self) -> None:
        """The try succeeded, and the line is up since the first that did."""
        if self._up_since is None:
            self._up_since = self._clock.monotonic_ms()

    def next_ms(self) -> float:
        """The line is up no longer; returns how long to wait now, milliseconds."""
        now, up_since, self._up_since = self._clock.monotonic_ms(), self._up_since, None
        if up_since is not None and now - up_since >= _UP_MS:
            self._wait_ms = _FIRST_WAIT_MS
        wait_ms, self._wait_ms = self._wait_ms, min(2 * self._wait_ms, LONGEST_WAIT_MS)
        return random.uniform(0, wait_ms)  # noqa: S311 - jitter
