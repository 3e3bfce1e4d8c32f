"""The disk under the figures: how often it can sync."""

from __future__ import annotations

import os
import time
from pathlib import Path

_SYNCS = 2_000


def fsync_rate(folder: Path) -> dict[str, float]:
    """fdatasync of 4 KiB, one after another: per second, and the median and 99th percentile in ms."""
    file = os.open(folder / "fsync.bin", os.O_RDWR | os.O_CREAT, 0o600)
    block, times = os.urandom(4096), []
    for n in range(_SYNCS):
        os.pwrite(file, block, 4096 * (n % 64))
        start = time.perf_counter()
        os.fdatasync(file)
        times.append(time.perf_counter() - start)
    os.close(file)
    times.sort()
    return {
        "per_s": _SYNCS / sum(times),
        "p50_ms": percentile(times, 50) * 1e3,
        "p99_ms": percentile(times, 99) * 1e3,
    }


def percentile(ordered: list[float], percent: float) -> float:
    """A percentile of values in ascending order."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
