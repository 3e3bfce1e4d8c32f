"""How long a test waits for a signal before it calls the wait a hang, and how busy the machine is."""

from __future__ import annotations

import subprocess
import sys
from time import monotonic, thread_time

_SPIN_S = 0.3
_STARTS = (sys.executable, "-c", "import asyncio, pydantic.main, typer")
_START_S = 0.3
"""Seconds for the slowest of a few such starts on the idle machine that the limits were chosen on."""

HANG_S = 240.0
"""Seconds. Only a hang takes this long: a test that needs a second alone may need a minute on a busy machine."""


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
