"""Resources of the machine: free disk space, and threads for pure work over long texts."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar


class DiskSpace:
    """Looks at the disks; a directory that is not there yet will be made on that of its nearest parent."""

    def __init__(self, *folders: Path) -> None:
        self._folders = folders

    def free_bytes(self) -> int:
        return min(shutil.disk_usage(standing(folder)).free for folder in self._folders)


def standing(folder: Path) -> Path:
    """The directory, or the nearest above it that is there."""
    folder = folder.absolute()
    return next(place for place in (folder, *folder.parents) if place.exists())


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
        self._pool.shutdown(wait=False, cancel_futures=True)
