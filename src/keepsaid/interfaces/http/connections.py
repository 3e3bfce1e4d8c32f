"""Connections: how many may be open, how long each may take, and how much of what it sent is read in one step.

uvicorn reads a quarter of a megabyte in one step, in which 40,000 chunks of one byte hold the event loop for 0.4 s; it
has no limit for a client that sends its request slowly, and none for descriptors.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from math import ceil
from pathlib import Path
from typing import Any, ClassVar, cast

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol

from keepsaid.config.services import ServerConfig
from keepsaid.errors import InputError
from keepsaid.interfaces.http import gate, responses
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.http")

ACCEPTED_AT_ONCE = 4
"""Connections accepted in one step; each takes a descriptor until it is refused."""

HEAD_BYTES_MAX = 16_384
_HEADERS_MAX = 100
_KEPT_DESCRIPTORS = 24
"""Descriptors that connections leave to the stores, the log and calls to the outside."""

_LEAST = 4
_STEP_BYTES = 4_096
_PLAIN_STEP_BYTES = 65_536
_LOOK_S = 1.0
_HEAD = b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\nretry-after: 5\r\n"
_TOO_MANY = b"too many connections are open; nothing was stored; try again in some seconds\n"
_TOO_SLOW = b"the request did not come in time; nothing was stored\n"
_FULL = b"HTTP/1.1 503 Service Unavailable\r\n%bcontent-length: %d\r\n\r\n%b" % (_HEAD, len(_TOO_MANY), _TOO_MANY)
_LATE = b"HTTP/1.1 408 Request Timeout\r\n%bcontent-length: %d\r\n\r\n%b" % (_HEAD, len(_TOO_SLOW), _TOO_SLOW)


@frozen
class ConnectionLimits:
    """How much connections may take: how many of them, and how many seconds each."""

    open_max: int
    per_address_max: int
    header_s: float
    body_s: float
    progress_bytes: int
    """Bytes of a body that must come within each `body_s`, unless it ends."""


def limits_of(server: ServerConfig) -> ConnectionLimits:
    """The limits of a server whose listening socket is open; the limit of open files is raised as far as it may be."""
    open_now = sum(1 for _ in Path("/dev/fd").iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = open_now + _KEPT_DESCRIPTORS + server.connections_max
    if soft != resource.RLIM_INFINITY and soft < needed:
        raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        soft = raised
    left = server.connections_max if soft == resource.RLIM_INFINITY else soft - open_now - _KEPT_DESCRIPTORS
    open_max = max(_LEAST, min(server.connections_max, left))
    if open_max < server.connections_max:
        _log.warning("%d connections at most: the process may open %d files (ulimit -n)", open_max, soft)
    times = server.header_timeout_s, server.body_timeout_s, ceil(server.body_rate_min * server.body_timeout_s)
    return ConnectionLimits(open_max, server.connections_per_address_max, *times)


class Connections:
    """Every open connection of a server: whether another is admitted, and which takes too long."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._open: set[LimitedConnection] = set()
        self._look: asyncio.TimerHandle | None = None

    def admit(self, new: LimitedConnection) -> bool:
        """Take a connection in, closing the one that has waited longest for a request where there are too many."""
        at_most, address = self.limits.per_address_max, new.address
        if not gate.is_loopback(address) and sum(one.address == address for one in self._open) >= at_most:
            _log.warning("a connection was refused: its address has %d open", at_most)
            return False
        if len(self._open) >= self.limits.open_max:
            if not (waiting := [one for one in self._open if one.waits]):
                _log.warning("a connection was refused: all %d are busy", len(self._open))
                return False
            oldest = min(waiting, key=lambda one: one.since)
            self._open.discard(oldest)
            oldest.transport.abort()
        self._open.add(new)
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(_LOOK_S, self._sweep)
        return True

    def forget(self, one: LimitedConnection) -> None:
        self._open.discard(one)

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        for one in list(self._open):
            one.end_if_late(loop.time())
        self._look = loop.call_later(_LOOK_S, self._sweep) if self._open else None


class _Flow(FlowControl):
    """Flow control that reads nothing more while earlier bytes wait to be looked at."""

    is_feeding = False

    def resume_reading(self) -> None:
        if not self.is_feeding:
            super().resume_reading()


class LimitedConnection(H11Protocol):
    """One connection, under the limits of its server; what it sends is looked at in short steps."""

    registry: ClassVar[Connections]

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._unread = bytearray()
        self._is_new = True
        self._came = 0
        self._wrote_at = 0.0
        self._watched: object = None
        self.since = self.loop.time()
        """When the present wait began: for a request, or for progress of its body."""

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    @property
    def waits(self) -> bool:
        """Whether no request is at work on it."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not isinstance(transport, asyncio.Transport):
            raise TypeError(f"a connection needs a transport that reads and writes, not {type(transport).__name__}")
        super().connection_made(transport)
        self.flow = _Flow(transport)
        if not self.registry.admit(self):
            transport.write(_FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.registry.forget(self)
        self._unread.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.waits and not self._is_new:
            self._is_new, self.since = True, self.loop.time()
        self._came += len(data)
        if self._came >= self.registry.limits.progress_bytes:
            self._came, self.since = 0, self.loop.time()
        if not self._unread and len(data) <= _STEP_BYTES:
            super().data_received(data)
            return
        is_fed_already = bool(self._unread)
        self._unread += data
        if not is_fed_already:
            self._feed()

    def _feed(self) -> None:
        if self.transport.is_closing():
            self._unread.clear()
        if not self._unread:
            return
        # Many bytes of a body whose size was declared, few of what has to be parsed.
        in_body = self.conn.their_state is h11.SEND_BODY
        is_plain = in_body and all(name != b"transfer-encoding" for name, _ in self.headers)
        size = _PLAIN_STEP_BYTES if is_plain else _STEP_BYTES
        piece = bytes(self._unread[:size])
        del self._unread[:size]
        flow = cast(_Flow, self.flow)
        if self._unread:
            flow.is_feeding = True
            flow.pause_reading()
            self.loop.call_soon(self._feed)
        super().data_received(piece)
        if not self._unread and flow.is_feeding:
            flow.is_feeding = False
            flow.resume_reading()

    def on_response_complete(self) -> None:
        self._is_new, self._came, self.since = False, 0, self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        self._wrote_at = self.loop.time()
        super().pause_writing()

    def end_if_late(self, now: float) -> None:
        limits = self.registry.limits
        if self.transport.is_closing():
            return
        if self.waits and self.conn.our_state is h11.DONE:
            if now - self.since > limits.body_s:
                self.transport.abort()  # it was answered, and the rest of its body is slow to come
        elif self.waits:
            if self._is_new and now - self.since > limits.header_s:
                self._end()
        elif self.cycle.more_body and not self.cycle.response_started:
            if self.flow.read_paused or self._watched is not self.cycle:
                self._watched, self.since = self.cycle, now
            elif now - self.since > limits.body_s:
                self._end()
        elif self.flow.write_paused and now - self._wrote_at > limits.body_s:
            self.transport.abort()

    def _end(self) -> None:
        self.transport.write(_LATE)
        self.transport.close()


def protocol_of(connections: Connections) -> type[LimitedConnection]:
    return type("ServerConnection", (LimitedConnection,), {"registry": connections})


class BoundedHeads:
    """Refuses a request with more than a hundred headers before anything looks at them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if len(scope["headers"]) <= _HEADERS_MAX:
            await self._app(scope, receive, send)
            return
        hint = "see docs/use/reference/http.md"
        response = responses.problem(InputError(f"a request has at most {_HEADERS_MAX} headers", hint=hint))
        response.headers["connection"] = "close"
        await response(scope, receive, send)
