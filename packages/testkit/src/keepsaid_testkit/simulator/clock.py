"""Virtual time as the runtime sees it: a steady clock, and a wall clock that can be set."""

from __future__ import annotations

from collections.abc import Callable

from keepsaid.adapters.system.machine import SystemClock

EPOCH_MS = 1_750_000_000_000
"""The wall time at which a simulation begins, milliseconds UTC."""


class Wall:
    """The clock on the wall of the simulated machine; `time` tells virtual seconds."""

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self._off = EPOCH_MS

    def passed_ms(self) -> int:
        """Virtual milliseconds since the beginning."""
        return int(self._time() * 1_000 + 1e-6)

    def now_ms(self) -> int:
        """What the clock shows, milliseconds UTC."""
        return self.passed_ms() + self._off

    def jump(self, ms: int) -> None:
        """Somebody set the clock."""
        self._off += ms


class SimClock(SystemClock):
    """The machine's clock for one process: steady from its start on."""

    def __init__(self, wall: Wall) -> None:
        self._wall = wall
        self._began = self._ahead = wall.now_ms() - wall.passed_ms()

    def now_ms(self) -> int:
        """Wall time, milliseconds UTC."""
        return self._wall.now_ms()

    def steady_ms(self) -> int:
        """The wall time of the start, and what has passed since."""
        return self._began + self._wall.passed_ms()

    def monotonic_ms(self) -> float:
        """A time that never goes back, in milliseconds."""
        return float(self._wall.passed_ms())
