"""How long a test waits for a signal before it calls the wait a hang, and how busy the machine is."""

from __future__ import annotations

from time import monotonic, thread_time

_SPIN_S = 0.3

HANG_S = 240.0
"""Seconds. Only a hang takes this long: a test that needs a second alone may need a minute on a busy machine."""


def slowed(limit: float) -> float:
    """Return a limit of time, made longer by what other programs take of this machine now; the same on an idle one.

    The square of the slowdown: whatever is measured waits for several processes, each of which is slowed.
    """
    began, spent = monotonic(), thread_time()
    while thread_time() - spent < _SPIN_S:
        pass
    return limit * max(1.0, (monotonic() - began) / _SPIN_S) ** 2
