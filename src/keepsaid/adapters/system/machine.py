"""The machine: its clock and ids made from it; memory, open files, disk space, and a watchdog of the event loop."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import secrets
import shutil
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import monotonic, process_time
from typing import TypeVar

from keepsaid.domain.ids import MAX_ID

_COUNTER_BITS = 12
_NODE_BITS = 9
_TIME_MASK = MAX_ID >> (_COUNTER_BITS + _NODE_BITS)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class SystemClock:
    """Wall time and waiting."""

    def __init__(self) -> None:
        self._began = self._ahead = (time.time_ns() - time.monotonic_ns()) // 1_000_000

    def now_ms(self) -> int:
        return _wall_ms()

    def steady_ms(self) -> int:
        return self._began + time.monotonic_ns() // 1_000_000

    def due_ms(self) -> int:
        self._ahead = max(self._ahead, self.now_ms() - int(self.monotonic_ms()))
        return self._ahead + int(self.monotonic_ms())

    def monotonic_ms(self) -> float:
        return time.monotonic_ns() / 1_000_000

    async def wait(self, hint: asyncio.Event, timeout_ms: float) -> None:
        if timeout_ms <= 0:
            await asyncio.sleep(0)
        elif not hint.is_set():
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    await hint.wait()
            except TimeoutError:
                return
        hint.clear()


class SharedClock(SystemClock):
    """The wall time of a server, which several processes share; it goes on with this machine's monotonic clock."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        super().__init__()
        self._server_ms = now_ms
        self._ahead = now_ms() - int(self.monotonic_ms())

    def now_ms(self) -> int:
        return self._server_ms()

    def steady_ms(self) -> int:
        return self._server_ms()


class SystemIds:
    """63-bit numbers from milliseconds, a random node and a counter; they grow even when the clock goes back.

    `now_ms` returns the wall time, `chance` a number of random bits: the machine's, unless a test replaces them. `node`
    returns the node where processes that share a store agree on one for each.
    """

    def __init__(
        self,
        now_ms: Callable[[], int] = _wall_ms,
        chance: Callable[[int], int] = secrets.randbits,
        node: Callable[[], int] | None = None,
    ) -> None:
        self._now_ms = now_ms
        drawn = chance(_NODE_BITS)
        self._node = node or (lambda: drawn)
        self._last_ms = 0
        self._counter = 0

    def next(self) -> int:
        if (now := self._now_ms()) > self._last_ms:
            self._last_ms, self._counter = now, 0
        else:
            self._counter += 1
            if self._counter >> _COUNTER_BITS:
                self._last_ms, self._counter = self._last_ms + 1, 0
        stamp = self._last_ms & _TIME_MASK
        return ((stamp << _COUNTER_BITS | self._counter) << _NODE_BITS) | self._node()

    def follow(self, number: int) -> None:
        stamp, counter = divmod(number >> _NODE_BITS, 1 << _COUNTER_BITS)
        self._last_ms, self._counter = max((self._last_ms, self._counter), (stamp, counter))


_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
LENGTH = 8


def one_time_code() -> str:
    """A new code: 40 bits, in letters that are not mistaken for one another."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(LENGTH))


_ARENA_MAX = -8
"""`M_ARENA_MAX` of glibc's malloc.h."""


def share_one_arena() -> None:
    """Have all threads that start from now on allocate from one arena, where the C library is glibc.

    Each thread else has an arena of its own, and what one frees no other uses: after 120,000 requests the holes were
    19 MB, and growing (docs/develop/benchmarks-archive.md). Other C libraries have no such arenas.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def spare_what_stays() -> None:
    """Keep everything that lives now out of every later search for garbage.

    A search through the 80,000 objects of a start holds the event loop for 55 ms, and finds nothing.
    """
    gc.collect()
    gc.freeze()


_PATH, _USEC, _PID = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"


class Systemd:
    """The service manager that started this process; without one nothing is sent.

    The variables are taken out of `environment`, so that no program that is started from here speaks for this one.
    `watchdog_s` is how long systemd waits for `alive` before it takes the process for hung; None if it does not.
    """

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        path, usec, pid = (environment.pop(name, "") for name in (_PATH, _USEC, _PID))
        self._address = path.replace("@", "\0", 1) if path.startswith("@") else path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if path.startswith(("/", "@")) else None
        if self._socket is not None:
            self._socket.setblocking(False)
        is_watched = self._socket is not None and usec.isdecimal() and int(usec) > 0 and pid in ("", str(os.getpid()))
        self.watchdog_s = int(usec) / 1_000_000 if is_watched else None

    def ready(self) -> None:
        """Say that the start is over."""
        self._send("READY=1")

    def stopping(self) -> None:
        """Say that the stop has begun."""
        self._send("STOPPING=1")

    def alive(self) -> None:
        """Say that the process is not hung."""
        if self.watchdog_s is not None:
            self._send("WATCHDOG=1")

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, state: str) -> None:
        """Send without waiting. A manager that is not there, or reads nothing, must not disturb the service."""
        if self._socket is not None:
            try:
                self._socket.sendto(state.encode(), self._address)
            except OSError:
                return


_log = logging.getLogger("keepsaid.watchdog")
_BEAT_S = 1.0
"""How often the loop says that it runs: its only cost while nothing happens."""

_FRAMES_MAX = 25


class Watchdog:
    """Watches the running event loop from a thread of its own; make it and end it on that loop.

    The loop notes the time every `beat_s` seconds, and calls `feed` then. If it has not for `limit_s` seconds, its
    thread's stack is logged, once for each hold: functions, files and lines, no values. When it runs again, how long
    it was held is logged. With a `limit_s` of 0 there is no thread, and `feed` is called all the same.

    The thread needs the interpreter to run Python code, as the loop does. If one call into C code keeps the
    interpreter for long, both lines are logged when that call ends.
    """

    def __init__(self, limit_s: float, feed: Callable[[], None], feed_s: float | None = None) -> None:
        self._limit_s = limit_s
        self._feed = feed
        self._beat_s = min(_BEAT_S, limit_s / 4 or _BEAT_S, feed_s or _BEAT_S)
        self._loop = asyncio.get_running_loop()
        self._loops_thread = threading.get_ident()
        self._beaten, self._used = monotonic(), process_time()
        self._lively, self._ended = threading.Event(), threading.Event()
        self._next = self._loop.call_soon(self._beat)
        self._thread = threading.Thread(target=self._watch, name="keepsaid-watchdog", daemon=True)
        if limit_s:
            self._thread.start()

    def end(self) -> None:
        """Watch no more."""
        self._next.cancel()
        self._ended.set()
        self._lively.set()

    def _beat(self) -> None:
        self._beaten, self._used = monotonic(), process_time()
        self._lively.set()
        self._feed()
        self._next = self._loop.call_later(self._beat_s, self._beat)

    def _watch(self) -> None:
        while not self._ended.is_set():
            last = self._beaten
            if (stale_s := monotonic() - last) < self._limit_s:
                self._ended.wait(self._limit_s - stale_s)
            else:
                self._held(last)

    def _held(self, last: float) -> None:
        """Log where the loop stands, wait until it runs again, and log for how long it was held."""
        self._lively.clear()
        frame = sys._current_frames().get(self._loops_thread)  # noqa: SLF001 - documented, and the only way to another thread's stack
        frames = traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=False) if frame else []
        stack = [f"{one.filename}:{one.lineno} in {one.name}" for one in list(frames)[:_FRAMES_MAX][::-1]]
        if self._beaten != last:
            return  # it has just gone on, and what it does now has held nobody
        held_s, used_s = monotonic() - last, process_time() - self._used
        _log.warning(
            "the event loop has been held for %.1f s (%.1f s of processor time): nothing is received or answered now; "
            "what was acknowledged is on disk",
            held_s,
            used_s,
            extra={"stack": stack, "held_s": round(held_s, 1)},
        )
        self._lively.wait()
        if not self._ended.is_set():
            held_s = self._beaten - last
            _log.warning("the event loop runs again after %.1f s", held_s, extra={"held_s": round(held_s, 1)})


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
"""Work over this number of characters takes about a millisecond, and a thread would cost as much."""

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
