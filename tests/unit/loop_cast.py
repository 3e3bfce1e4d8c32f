"""How long the event loop is held: processor time of each callback, which other programs do not change."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
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

    What other tests left is frozen first: looking for garbage in it would count as time of the callback it interrupts.
    """
    longest = Longest()
    run: Callable[[Any], None] = asyncio.Handle._run

    def measured(handle: Any) -> None:
        began = thread_time()
        run(handle)
        took = thread_time() - began
        if took > longest.seconds:
            longest.seconds, longest.what = took, repr(handle)[:300]

    gc.collect()
    gc.freeze()
    setattr(asyncio.Handle, "_run", measured)  # noqa: B010 - a loop offers no other place
    try:
        yield longest
    finally:
        setattr(asyncio.Handle, "_run", run)  # noqa: B010
