"""The server: every route of an instance, on a port of its own or called within this process."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator, Generator
from math import ceil
from urllib.parse import unquote, urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keepsaid.app.instance import Instance
from keepsaid.app.keys import KeyRing
from keepsaid.config.services import ServerConfig
from keepsaid.errors import HomeError
from keepsaid.interfaces.http import (
    bodies,
    calls,
    connections,
    mcp,
    openapi,
    routes,
)
from keepsaid.interfaces.http import gate as gates
from keepsaid.interfaces.http.openai.routes import OpenAIEndpoint, unrouted
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.http")

_WAITING_MAX = 512
"""Connections that the kernel keeps until they are accepted."""

_STOP_S = 1
"""Seconds that open requests get to end when the server stops."""


@frozen
class Address:
    """Where a running server listens."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """Its base URL; a server that listens everywhere is called over loopback."""
        name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - not bound here
        return f"http://[{name}]:{self.port}" if ":" in name else f"http://{name}:{self.port}"


class _QuietServer(uvicorn.Server):
    """uvicorn without signal handlers of its own: the program stops it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle no signal while the server runs."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen: few connections are accepted in one step, many may wait in the kernel for it."""
        await super().startup(sockets)
        for one in sockets or ():
            one.listen(_WAITING_MAX)


def _settings(app: Starlette, server: ServerConfig) -> uvicorn.Config:
    return uvicorn.Config(
        connections.BoundedHeads(app),
        http=connections.protocol_of(connections.Connections(connections.limits_of(server))),
        ws="none",
        log_config=None,
        access_log=False,
        lifespan="off",
        backlog=connections.ACCEPTED_AT_ONCE,
        h11_max_incomplete_event_size=connections.HEAD_BYTES_MAX,
        timeout_keep_alive=ceil(server.idle_timeout_s),
        timeout_graceful_shutdown=_STOP_S,
    )


class FreshKeys:
    """Follows the config file before a call with a token is judged."""

    def __init__(self, app: ASGIApp, ring: KeyRing) -> None:
        self._app, self._ring = app, ring

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on, with the keys as they are now."""
        if self._ring.is_due and any(name == b"authorization" for name, _ in scope.get("headers", ())):
            await self._ring.look()
        await self._app(scope, receive, send)


def application(instance: Instance, gate: gates.Gate, stopping: asyncio.Event) -> Starlette:
    handlers = {404: unrouted, 405: unrouted}
    door, openai = mcp.McpDoor(instance, gate), OpenAIEndpoint(instance, gate, stopping)
    described = (*routes.routes(instance, gate, stopping), *openai.routes(), *mcp.routes(door))
    served = (*described, openapi.route(described))
    bound = [one.bound(instance, gate) if isinstance(one, calls.OwnerRoute) else one.bound() for one in served]
    fresh = Middleware(FreshKeys, ring=instance.keys)
    app = Starlette(routes=bound, exception_handlers=handlers, middleware=[fresh])
    app.state.described = served
    app.state.mcp, app.state.openai = door, openai
    app.router.redirect_slashes = False
    app.state.refused_at = None
    app.state.bodies = bodies.Bodies(instance.config.server.bodies_bytes_max)
    return app


@contextlib.asynccontextmanager
async def listening(instance: Instance, port: int | None = None) -> AsyncIterator[Address]:
    """Serve the instance while the block runs, and leave address and token in its home.

    Raises ConfigError for a public address without a token, HomeError when the port is taken.
    """
    server = instance.config.server
    token = gates.operator_token(server)
    instance.redactor.learn(token)
    gate = gates.Gate(server.host, token, gates.client_token(server), instance.keys.by_token)
    bound = _bind(server.host, server.port if port is None else port)
    address = Address(server.host, bound.getsockname()[1])
    stopping = asyncio.Event()
    app = application(instance, gate, stopping)
    http = _QuietServer(_settings(app, server))
    serving = asyncio.create_task(http.serve(sockets=[bound]))
    try:
        _write(instance, address, token)
        yield address
    finally:
        instance.home.runtime_file.unlink(missing_ok=True)
        stopping.set()
        instance.telling.wake()
        http.should_exit = True
        await serving
        await app.state.mcp.close()
        await app.state.openai.close()
        app.state.bodies.readers.close()
        bound.close()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns off waiting for more to send (40 ms an answer) only where the protocol is named.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(_WAITING_MAX)
    except OSError as error:
        bound.close()
        taken, what = error.errno == errno.EADDRINUSE, f"port {port} of {host} cannot be used ({error.strerror})"
        there = "stop what listens there (a chat of another home listens, too), or: keepsaid serve --port 0"
        hint = there if taken else "keepsaid config show server"
        raise HomeError(what, safe="Nothing was changed.", hint=hint) from error
    bound.setblocking(False)
    return bound


def _write(instance: Instance, address: Address, token: str) -> None:
    file = instance.home.runtime_file
    partial_file = file.with_suffix(".partial")
    try:
        partial_file.unlink(missing_ok=True)
        descriptor = os.open(partial_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            json.dump({"url": address.url, "token": token, "pid": os.getpid(), "model": instance.model.name}, out)
        partial_file.replace(file)
    except OSError as error:
        raise HomeError(f"{file} cannot be written ({error.strerror})", safe="Nothing was changed.") from error


_HOST = "127.0.0.1"


async def call(instance: Instance, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
    """Post to a route; returns the status and the body of the response."""
    token = secrets.token_urlsafe()
    app = application(instance, gates.Gate(_HOST, token, None), asyncio.Event())
    sent = {"Host": _HOST, "Authorization": f"Bearer {token}", "Content-Type": "application/json", **headers}
    place = urlsplit(path)
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": unquote(place.path),
        "raw_path": place.path.encode(),
        "query_string": place.query.encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in sent.items()],
        "client": (_HOST, 0),
        "server": (_HOST, 0),
    }
    given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    answered: list[Message] = []

    async def receive() -> Message:
        return given.pop() if given else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        answered.append(message)

    try:
        await app(scope, receive, send)
    finally:
        app.state.bodies.readers.close()
    return answered[0]["status"], b"".join(one.get("body", b"") for one in answered[1:])
