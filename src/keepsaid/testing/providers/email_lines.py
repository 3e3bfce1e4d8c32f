"""A scripted server whose clients speak in lines: the ground of the scripted IMAP and SMTP servers."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

_LINE_MAX = 100_000_000


class ClientGoneError(Exception):
    """The client has left."""


class LineConnection:
    """One client: lines in, bytes out."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._is_lost = False

    async def line(self) -> bytes:
        """The next line, without its end. Raises ClientGoneError."""
        try:
            line = await self._reader.readline()
        except (OSError, ValueError) as error:
            raise ClientGoneError from error
        if not line.endswith(b"\n"):
            raise ClientGoneError
        return line.rstrip(b"\r\n")

    async def write(self, content: bytes) -> None:
        """Write bytes as they are. Raises ClientGoneError."""
        try:
            self._writer.write(content)
            await self._writer.drain()
        except OSError as error:
            raise ClientGoneError from error

    async def encrypt(self, certificate: ssl.SSLContext) -> None:
        """Begin TLS, as STARTTLS has it. Raises ClientGoneError where the client does not go along."""
        self._is_lost = True
        try:
            await self._writer.start_tls(certificate)
        except (OSError, EOFError) as error:
            raise ClientGoneError from error
        self._is_lost = False

    async def reset(self) -> None:
        """Send what was written, then a TCP reset."""
        self._writer.transport.set_write_buffer_limits(0)
        with suppress(ClientGoneError):
            await self.write(b"")
        sock: socket.socket = self._writer.get_extra_info("socket")
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.abort()

    def abort(self) -> None:
        """Close at once."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Write what is left, and close; a stream whose TLS did not begin never says that it is closed."""
        self._writer.close()
        if not self._is_lost:
            with suppress(OSError):
                await self._writer.wait_closed()


class LineServer:
    """Listens on a loopback port while it is entered; `talk` is run for each client. Port 0 takes a free one.

    With a `certificate`, the server takes STARTTLS, and no login before it.
    """

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self.certificate: ssl.SSLContext | None = None
        self._server: asyncio.Server | None = None
        self._clients: dict[asyncio.Task[None], LineConnection] = {}
        self._faults: list[BaseException] = []
        self._news = asyncio.Condition()

    async def talk(self, connection: LineConnection) -> None:
        """Serve one client; a ClientGoneError ends that."""
        raise NotImplementedError

    async def wait_for(self, done: Callable[[], bool], within_s: float = 60.0) -> None:
        """Wait until something is so after a step of a dialogue. Raises TimeoutError."""
        async with asyncio.timeout(within_s), self._news:
            await self._news.wait_for(done)

    async def start(self) -> None:
        """Listen on the port that it had before, if any."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, limit=_LINE_MAX)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Drop every client, and refuse new ones."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        await self.drop()
        await server.wait_closed()

    async def drop(self) -> None:
        """Drop every client."""
        clients = dict(self._clients)
        for task, connection in clients.items():
            connection.abort()
            task.cancel()
        await asyncio.gather(*clients, return_exceptions=True)

    async def __aenter__(self) -> Self:
        """Listen."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drop every client, and raise what went wrong in a dialogue."""
        await self.stop()
        if self._faults and error is None:
            raise self._faults[0]

    async def tell(self) -> None:
        """Have those look again who wait for something."""
        async with self._news:
            self._news.notify_all()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = LineConnection(reader, writer)
        task = asyncio.get_running_loop().create_task(self._served(connection))
        self._clients[task] = connection
        task.add_done_callback(self._ended)

    async def _served(self, connection: LineConnection) -> None:
        try:
            with suppress(ClientGoneError):
                await self.talk(connection)
        finally:
            await connection.close()
            await self.tell()

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._clients[task]
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._faults.append(fault)
