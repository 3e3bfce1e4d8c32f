"""HTTP/1.1 with keep-alive, as much of it as a scripted model needs."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus

from keepsaid.values import frozen

_HEAD_MAX = 64 * 1024
_BODY_MAX = 64 * 1024 * 1024
_LINGER_S = 1.0
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"


class GoneError(Exception):
    """The connection is over: the client left, or nothing more will be said to it."""


class BadHttpError(Exception):
    """The bytes are not HTTP that this server supports."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@frozen
class HttpRequest:
    """A whole request; header names are in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    keep_alive: bool


class Connection:
    """One client: requests in, bytes out.

    It reads by itself, so that a pause notices a client that leaves, and keeps what a hasty one sent.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._buffer = bytearray()

    async def receive(self) -> HttpRequest:
        """The next request; raises GoneError when there is none, BadHttpError for bytes that are none."""
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _HEAD_MAX:
                raise BadHttpError(431, "The request head is too long.")
            await self._fill()
        line, *fields = self._take(end + 4)[:-4].decode("latin-1").split("\r\n")
        method, target, version = _request_line(line)
        headers = dict(_header(text) for text in fields)
        length = _body_length(headers)
        if headers.get("expect", "").lower() == "100-continue":
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while len(self._buffer) < length:
            await self._fill()
        path, _, query = target.partition("?")
        keep_alive = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
        return HttpRequest(method, path, query, headers, self._take(length), keep_alive)

    async def send(
        self, status: int, body: bytes, content_type: str = JSON, extra: Mapping[str, str] | None = None
    ) -> None:
        """A whole answer."""
        fields = {"content-type": content_type, "content-length": str(len(body))} | dict(extra or {})
        await self.write(head(status, fields), body)

    async def write(self, *parts: bytes) -> None:
        """Bytes as they are; raises GoneError when nobody takes them."""
        try:
            self._writer.write(b"".join(parts))
            await self._writer.drain()
        except OSError as error:
            raise GoneError from error

    async def pause(self, seconds: float | None) -> None:
        """Wait for some seconds, or forever; raises GoneError as soon as the client leaves."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    await self._fill()

    async def reset(self) -> None:
        """Let the client have what was written, then a TCP reset."""
        self._writer.transport.set_write_buffer_limits(0)
        await self.write()
        sock: socket.socket = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.abort()

    async def linger(self) -> None:
        """End the answer and read on for a moment: closing over unread bytes would reset the answer away."""
        with suppress(OSError):
            self._writer.write_eof()
            async with asyncio.timeout(_LINGER_S):
                while await self._reader.read(_HEAD_MAX):
                    pass

    def abort(self) -> None:
        """Close without flushing."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Flush and close."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _fill(self) -> None:
        try:
            chunk = await self._reader.read(_HEAD_MAX)
        except OSError as error:
            raise GoneError from error
        if not chunk or len(self._buffer) > _HEAD_MAX + _BODY_MAX:
            raise GoneError
        self._buffer += chunk

    def _take(self, size: int) -> bytes:
        with memoryview(self._buffer) as view, view[:size] as part:
            taken = bytes(part)
        del self._buffer[:size]
        return taken


def head(status: int, fields: Mapping[str, str]) -> bytes:
    """The status line and the header fields of an answer."""
    lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, 'Refused')}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def http_chunk(data: bytes) -> bytes:
    """A piece of a chunked answer; the empty one ends it."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _request_line(line: str) -> tuple[str, str, str]:
    words = line.split(" ")
    if len(words) != 3 or words[2] not in {"HTTP/1.0", "HTTP/1.1"}:
        raise BadHttpError(400, "The request line is malformed.")
    return words[0], words[1], words[2]


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name or name != name.strip():
        raise BadHttpError(400, "A header is malformed.")
    return name.lower(), value.strip()


def _body_length(headers: Mapping[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise BadHttpError(501, "A request body needs a content length.")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdecimal() and len(length) < 20):
        raise BadHttpError(400, "The content length is malformed.")
    if int(length) > _BODY_MAX:
        raise BadHttpError(413, "The request body is too long.")
    return int(length)
