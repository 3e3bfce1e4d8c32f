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
from functools import partial
from math import ceil
from urllib.parse import unquote, urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Message

from keepsaid.app.instance import Instance
from keepsaid.config.services import ServerConfig
from keepsaid.domain.ids import show
from keepsaid.domain.message import Inbound
from keepsaid.domain.process import ProcessRole
from keepsaid.errors import HomeError, InputError, StoreFull, StoreUnreachable
from keepsaid.interfaces.http import (
    agents,
    batches,
    bodies,
    calls,
    channels,
    connections,
    conversations,
    mcp,
    mem0,
    memories,
    messages,
    metrics,
    operator,
    responses,
)
from keepsaid.interfaces.http import gate as gates
from keepsaid.ports.channel import HookAnswer, PreparedHook
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.http")

_REFUSING_S = 10.0
"""Seconds after a full store refused a message in which the server is not ready, unless it takes another before."""

_WAITING_MAX = 512
"""Connections that the kernel keeps until they are accepted."""

_STOP_S = 1
"""Seconds that open requests get to end when the server stops."""


def routes(instance: Instance, gate: gates.Gate, stopping: asyncio.Event) -> list[Route]:
    """Every route of the server; streams end soon after `stopping` is set, what takes long once a stop begins."""
    chat = messages.Messages(instance, gate, stopping)
    talks = conversations.Conversations(instance, gate, stopping)
    stream = calls.OwnerRoute("GET", "/v1/events", partial(operator.list_events, stopping))
    owner = (
        *agents.ROUTES,
        *memories.ROUTES,
        *memories.ENTITY_ROUTES,
        *mem0.ROUTES,
        *batches.ROUTES,
        *channels.ROUTES,
        *operator.ROUTES,
        *operator.TASK_ROUTES,
        stream,
        *operator.EVENT_ROUTES,
    )
    return [
        Route("/healthz", responses.guarded(partial(_health, instance)), methods=["GET"]),
        Route("/readyz", responses.guarded(partial(_ready, instance)), methods=["GET"]),
        Route("/metrics", responses.guarded(partial(metrics.show_metrics, instance, gate)), methods=["GET"]),
        Route("/v1/messages", responses.guarded(_from_outside(instance, chat.put)), methods=["POST"]),
        Route("/v1/messages/{id}", responses.guarded(chat.get), methods=["GET"]),
        Route("/v1/messages/{id}/events", responses.guarded(chat.events), methods=["GET"]),
        Route("/v1/conversations/{conversation}/events", responses.guarded(talks.events), methods=["GET"]),
        Route("/v1/files/{owner}/{number}", responses.guarded(talks.file), methods=["GET"]),
        Route("/v1/media/{medium}", responses.guarded(_from_outside(instance, chat.put_raw)), methods=["POST"]),
        *(route.bound(instance, gate) for route in owner),
        Route("/hooks/{name}", responses.guarded(_from_outside(instance, partial(_hook, instance))), methods=["POST"]),
    ]


def _from_outside(instance: Instance, endpoint: responses.Endpoint) -> responses.Endpoint:
    """An endpoint that messages come in by; that of a worker takes none."""
    if instance.life.terms.role is not ProcessRole.WORKER:
        return endpoint

    async def refuse(_request: Request) -> Response:
        raise responses.NotFound("this process is a worker (--role worker), and takes no messages")

    return refuse


async def _health(instance: Instance, _request: Request) -> Response:
    if (failure := instance.failure) is not None:
        return JSONResponse({"ok": False, "code": failure.code}, 503)
    return JSONResponse({"ok": True})


async def _ready(instance: Instance, request: Request) -> Response:
    if (failure := instance.failure) is not None:
        return JSONResponse({"ready": False, "code": failure.code}, 503)
    if instance.life.terms.role is ProcessRole.WORKER:
        return JSONResponse({"ready": False, "role": "worker"}, 503)
    if not instance.life.is_sure:
        return JSONResponse({"ready": False, "code": StoreUnreachable.code}, 503)
    state = request.app.state
    if state.refused_at is not None and asyncio.get_running_loop().time() - state.refused_at < _REFUSING_S:
        return JSONResponse({"ready": False, "code": StoreFull.code}, 503)
    ready = instance.running and not instance.reserve.reached
    told: dict[str, object] = {"ready": ready}
    if lines := instance.lines.lines:
        # a line that is down holds up no message that comes in elsewhere
        told["lines"] = [{"channel": line.channel, "state": line.state} for line in lines]
    return JSONResponse(told, 200 if ready else 503)


async def _hook(instance: Instance, request: Request) -> Response:
    """A webhook: proven first, stored before it is answered."""
    if (hook := instance.hooks.get(request.path_params["name"])) is None:
        raise responses.NotFound(f"there is no hook {request.path_params['name']!r}")
    body = await bodies.body_of(request, instance.config.buffer.payload_bytes_max)
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if isinstance(hook, PreparedHook):
        await hook.prepare(headers, body)
    if len(body) <= bodies.FREE_BYTES:
        said = await asyncio.to_thread(hook.read, headers, body)
    else:
        said = await bodies.run_on_reader(request, lambda _: hook.read(headers, body))
    if said is None:
        return JSONResponse({"ignored": "ping"})
    if isinstance(said, HookAnswer):
        return Response(said.body, media_type=said.content_type)
    if isinstance(said, Inbound):
        received = await instance.receive(said)
    else:
        try:
            received = await instance.receive(instance.extending.host.inbound_of(hook.name, said))
        except InputError as error:
            # the provider would send it again for ever
            _log.warning("a message of %s is not taken: %s", hook.name, error.what, extra={"code": error.code})
            return JSONResponse({"ignored": error.what})
    request.app.state.refused_at = None
    return responses.Acknowledgement({"id": show("message", received.id), "intake": received.intake}, 202)


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


def application(instance: Instance, gate: gates.Gate, stopping: asyncio.Event) -> Starlette:
    handlers = {404: responses.unrouted, 405: responses.unrouted}
    door = mcp.McpDoor(instance, gate)
    app = Starlette(routes=[*routes(instance, gate, stopping), *mcp.routes(door)], exception_handlers=handlers)
    app.state.mcp = door
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
    gate = gates.Gate(server.host, token, gates.client_token(server), instance.config.principals())
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
