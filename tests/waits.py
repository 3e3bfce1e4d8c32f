"""How long a test waits for a signal before it calls the wait a hang, and how busy the machine is."""

from __future__ import annotations

import subprocess
import sys
from threading import Event, Thread
from time import monotonic, thread_time

_SPIN_S = 0.3
_LOOK_S, _LOOK_SPIN_S = 0.5, 0.05
_STARTS = (sys.executable, "-c", "import asyncio, pydantic.main, typer")
_START_S = 0.3
"""Seconds for the slowest of a few such starts on the idle machine that the limits were chosen on."""

HANG_S = 240.0
"""Seconds. Only a hang takes this long: a test that needs a second alone may need a minute on a busy machine."""


class SlownessWatch:
    """How much slower than alone this machine was at worst while something was measured beside other work."""

    def __enter__(self) -> SlownessWatch:
        """Begin to look, a few times a second."""
        self._worst, self._over = 1.0, Event()
        self._thread = Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(_LOOK_S):
            began, spent = monotonic(), thread_time()
            while thread_time() - spent < _LOOK_SPIN_S:
                pass
            self._worst = max(self._worst, (monotonic() - began) / _LOOK_SPIN_S)

    def slowed(self, limit: float) -> float:
        """Return a limit as `slowed` does, made longer by what other programs took at worst meanwhile."""
        return limit * self._worst**2 * max(1.0, _start_s() / _START_S)


def slowed(limit: float) -> float:
    """Return a limit of time, made longer by what slows this machine now; the same on an idle one.

    What other programs take counts squared: whatever is measured waits for several processes, each of which is slowed.
    A machine that starts programs slowly, idle or not, has that much longer.
    """
    began, spent = monotonic(), thread_time()
    while thread_time() - spent < _SPIN_S:
        pass
    contended = (monotonic() - began) / _SPIN_S
    return limit * max(1.0, contended) ** 2 * max(1.0, _start_s() / _START_S)


def _start_s() -> float:
    took = []
    for _ in range(3):
        began = monotonic()
        subprocess.run(_STARTS, check=True)
        took.append(monotonic() - began)
    return max(took)
