"""A listener: a port of this machine where scripted servers get their clients, and lose them all when it closes."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Self

from keepsaid.testing.model_http import Connection

Served = Callable[[Connection], Coroutine[object, object, None]]


class SocketListener:
    """Hands each client that comes to `serve`; port 0 takes a free one. `faults` are what `serve` raised."""

    def __init__(self, serve: Served, port: int = 0) -> None:
        self.port = port
        self.faults: list[BaseException] = []
        self._serve = serve
        self._server: asyncio.Server | None = None
        self._clients: dict[asyncio.Task[None], Connection] = {}

    @property
    def clients(self) -> int:
        """How many are connected."""
        return len(self._clients)

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Drop every client, even one that waits for an answer."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        clients = list(self._clients)
        self.drop()
        await asyncio.gather(*clients, return_exceptions=True)
        await server.wait_closed()

    def drop(self) -> None:
        """Lose every client that is connected now."""
        for task, connection in self._clients.items():
            connection.abort()
            task.cancel()

    def surface(self, error: BaseException | None) -> None:
        """Raise what `serve` raised; it explains the error of a test, and must not hide it."""
        if self.faults:
            surface(self.faults[0], error)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        if self._server is None:
            connection.abort()
            return
        task = asyncio.get_running_loop().create_task(self._serve(connection))
        self._clients[task] = connection
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._clients[task]
        if not task.cancelled() and (fault := task.exception()) is not None:
            self.faults.append(fault)


def surface(fault: BaseException, error: BaseException | None) -> None:
    """Raise the fault of a script, or note it on the error that is on its way."""
    if error is None:
        raise fault
    error.add_note(f"a function of the script raised {fault!r}")


class ListeningServer:
    """A scripted server that listens on a loopback port while it is entered."""

    def __init__(self, serve: Served, port: int) -> None:
        self._listener = SocketListener(serve, port)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._listener.port}"

    async def __aenter__(self) -> Self:
        """Listen; entered again, on the same port."""
        await self._listener.open()
        return self

    def drop(self) -> None:
        """Lose every client that is connected now, without a word."""
        self._listener.drop()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drop every client, also those that wait for an answer, and raise what a function of the script raised."""
        await self._listener.close()
        self._listener.surface(error)


def print_url(url: str) -> None:
    """Write the URL to stdout as one line of JSON."""
    sys.stdout.write(json.dumps({"url": url}) + "\n")
    sys.stdout.flush()


async def serve(server: ListeningServer, announce: Callable[[str], None] = print_url) -> None:
    """Listen until SIGTERM or SIGINT; `announce` is called with the URL once it listens."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with server:
        announce(server.url)
        await stop.wait()
