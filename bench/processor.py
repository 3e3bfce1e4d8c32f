"""The processor under the figures: how fast it runs Python."""

from __future__ import annotations

import time

_ADDITIONS = 3_000_000


def addition_rate() -> dict[str, float]:
    """A loop that adds numbers: millions of additions a second by the clock, and in a second of processor time.

    The first is smaller where other programs take their share; the second is smaller where the processor is slow.
    """
    total = 0
    start, used = time.perf_counter(), time.thread_time()
    for n in range(_ADDITIONS):
        total += n
    took, used = time.perf_counter() - start, time.thread_time() - used
    return {"million_additions_per_s": _ADDITIONS / took / 1e6, "per_processor_s": _ADDITIONS / used / 1e6}
