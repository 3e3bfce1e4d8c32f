"""Threads for pure work over long texts, so that it does not hold up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

INLINE_CHARS_MAX = 16_384
"""Work over so many characters takes about a millisecond, and a thread would cost as much."""

_THREADS = 2


class TextThreads:
    """Two threads that are started when they are first needed."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="keepsaid-text")

    async def __call__(self, chars: int, work: Callable[[], T]) -> T:
        """What `work` returns or raises: at once for up to 16,384 characters, else from a thread."""
        if chars <= INLINE_CHARS_MAX:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """Begin nothing more; what runs ends by itself, and what waits is dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)
