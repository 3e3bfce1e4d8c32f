"""Lines: standard input as bytes, line by line, while the event loop goes on."""

from __future__ import annotations

import asyncio
import os
from queue import SimpleQueue
from threading import Thread

_CHUNK = 65_536


class Lines:
    """Reads a file descriptor on a thread of its own, a line when one is asked for.

    The thread is a daemon and takes no lock of Python's own streams, so that a program that stops
    while nothing is typed need not wait for it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._asked: SimpleQueue[asyncio.Future[bytes | None]] = SimpleQueue()
        self._rest = bytearray()
        self._ended = False
        Thread(target=self._work, name="keepsaid-stdin", daemon=True).start()

    async def next(self) -> bytes | None:
        """The next line without its end; None when there is no more."""
        future: asyncio.Future[bytes | None] = self._loop.create_future()
        self._asked.put(future)
        return await future

    def _work(self) -> None:
        while True:
            future = self._asked.get()
            line = self._read()
            try:
                self._loop.call_soon_threadsafe(_tell, future, line)
            except RuntimeError:
                return  # the loop has ended, and with it everyone who asked

    def _read(self) -> bytes | None:
        searched = 0
        while (end := self._rest.find(b"\n", searched)) < 0 and not self._ended:
            searched = len(self._rest)
            chunk = os.read(self._descriptor, _CHUNK)
            self._rest += chunk
            self._ended = not chunk
        if end < 0:
            line = bytes(self._rest)
            self._rest.clear()
            return line or None
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return line


def _tell(future: asyncio.Future[bytes | None], line: bytes | None) -> None:
    if not future.done():
        future.set_result(line)
