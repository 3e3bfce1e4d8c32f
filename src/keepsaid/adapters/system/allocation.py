"""Allocation in a process that runs for months: no holes, no searches for garbage in modules (short: two settings)."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

_ARENA_MAX = -8
"""`M_ARENA_MAX` of glibc's malloc.h."""


def share_one_arena() -> None:
    """Have all threads that start from now on allocate from one arena, where the C library is glibc.

    Each thread else has an arena of its own, and what one frees no other uses: after 120,000 requests the holes were
    19 MB, and growing (docs/benchmarks.md). Other C libraries have no such arenas.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def spare_what_stays() -> None:
    """Keep everything that lives now out of every later search for garbage.

    A search through the 80,000 objects of a start holds the event loop for 55 ms, and finds nothing.
    """
    gc.collect()
    gc.freeze()
