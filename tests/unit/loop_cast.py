"""How long the event loop is held: processor time of each callback, which other programs do not change."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import thread_time
from typing import Any


@dataclass
class Longest:
    """The longest callback so far."""

    seconds: float = 0.0
    what: str = ""


@contextmanager
def holds() -> Iterator[Longest]:
    """Measure every callback that a loop of this process runs while the block does.

    No garbage is collected meanwhile: that of all tests before would count as time of the callback it interrupts.
    """
    longest = Longest()
    run: Callable[[Any], None] = asyncio.Handle._run

    def measured(handle: Any) -> None:
        began = thread_time()
        run(handle)
        took = thread_time() - began
        if took > longest.seconds:
            longest.seconds, longest.what = took, repr(handle)[:300]

    gc.disable()
    setattr(asyncio.Handle, "_run", measured)  # noqa: B010 - a loop offers no other place
    try:
        yield longest
    finally:
        setattr(asyncio.Handle, "_run", run)  # noqa: B010
        gc.enable()


async def broken(play: Callable[[], Awaitable[Longest]], limit_s: float) -> list[Longest]:
    """Nothing when one of three plays keeps the limit, else the longest callback of each.

    What a callback does takes its time in every play; what a host takes from a virtual machine comes and goes.
    """
    found: list[Longest] = []
    for _ in range(3):
        found.append(await play())
        if found[-1].seconds <= limit_s:
            return []
    return found
