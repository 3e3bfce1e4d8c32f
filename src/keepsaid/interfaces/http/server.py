"""Stopping: a request that takes long is answered before the server goes, whatever it was at."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import secrets
import socket
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass
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
from keepsaid.errors import HomeError, Stopping, StoreFull
from keepsaid.interfaces.http.bodies import FREE_BYTES, Bodies, body_of, run_on_reader
from keepsaid.interfaces.http.connections import (
    ACCEPTED_AT_ONCE,
    HEAD_BYTES_MAX,
    BoundedHeads,
    Connections,
    limits_of,
    protocol_of,
)
from keepsaid.interfaces.http.events import EventRoutes
from keepsaid.interfaces.http.gate import Gate, client_token
from keepsaid.interfaces.http.memories import (
    PeopleRoutes,
    ReceiptRoutes,
    SearchRoutes,
    VersionRoutes,
    forget,
    settled,
    take_records,
    undo,
)
from keepsaid.interfaces.http.messages import Media, Messages
from keepsaid.interfaces.http.operator import CollectionRoutes, LaneRoutes, OperatorRoutes, reload
from keepsaid.interfaces.http.responses import Acknowledgement, Endpoint, NotFound, guarded, unrouted
from keepsaid.interfaces.http.tasks import ScheduleRoutes, task_routes
from keepsaid.ports.runtime import StopToken

_GRACE_S = 0.5
"""So long a request has to end by itself once a stop has begun; the server waits for twice that."""


def ending(endpoint: Endpoint, halt: StopToken) -> Endpoint:
    """An endpoint that is broken off soon after a stop has begun, with an answer that says so.

    What works in steps looks at `halt` by itself and tells how far it came; this is for the rest.
    """

    async def wrapped(request: Request) -> Response:
        work = asyncio.ensure_future(endpoint(request))
        stop = asyncio.ensure_future(halt.wait())
        try:
            await asyncio.wait((work, stop), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                await asyncio.wait((work,), timeout=_GRACE_S)
            if work.done():
                return work.result()
            raise Stopping(f"the runtime is stopping; {request.url.path} was broken off")
        finally:
            stop.cancel()
            work.cancel()

    return wrapped


_REFUSING_S = 10.0
"""Seconds after a full store refused a message in which the server is not ready, unless it takes another before."""

_WAITING_MAX = 512
"""Connections that the kernel keeps until they are accepted."""

_STOP_S = 1
"""Seconds that open requests get to end when the server stops."""


def routes(instance: Instance, gate: Gate, stopping: asyncio.Event) -> list[Route]:
    """Every route of the server; streams end soon after `stopping` is set, what takes long once a stop begins."""
    messages, owner = Messages(instance, gate, stopping), OperatorRoutes(instance, gate)
    lanes, receipts = LaneRoutes(instance, gate), ReceiptRoutes(instance, gate)
    people = PeopleRoutes(instance, gate)
    versions, search = VersionRoutes(instance, gate), SearchRoutes(instance, gate)
    collection = CollectionRoutes(instance, gate)
    events = EventRoutes(instance, gate, stopping)

    def long(endpoint: Endpoint) -> Endpoint:
        return guarded(ending(endpoint, instance.halt))

    return [
        Route("/healthz", guarded(partial(_health, instance)), methods=["GET"]),
        Route("/readyz", guarded(partial(_ready, instance)), methods=["GET"]),
        Route("/v1/messages", guarded(messages.put), methods=["POST"]),
        Route("/v1/messages/{id}", guarded(messages.get), methods=["GET"]),
        Route("/v1/messages/{id}/events", guarded(messages.events), methods=["GET"]),
        Route("/v1/media/{medium}", guarded(Media(instance.config, messages).put), methods=["POST"]),
        Route("/v1/replies", guarded(owner.replies), methods=["GET"]),
        Route("/v1/replies/{id}/seen", guarded(owner.seen), methods=["POST"]),
        Route("/v1/replies/{id}/resend", guarded(owner.resend), methods=["POST"]),
        Route("/v1/batches/{id}/requeue", guarded(owner.requeue), methods=["POST"]),
        Route("/v1/batches/{id}/drop", guarded(owner.drop), methods=["POST"]),
        Route("/v1/lanes/reset", guarded(lanes.reset), methods=["POST"]),
        Route("/v1/lanes/compact", long(lanes.compact), methods=["POST"]),
        Route("/v1/config/reload", guarded(partial(reload, instance, gate)), methods=["POST"]),
        Route("/v1/prune", long(owner.prune), methods=["POST"]),
        Route("/v1/memories", guarded(owner.remember), methods=["POST"]),
        Route("/v1/memories", guarded(search.search), methods=["GET"]),
        Route("/v1/memories/{id}", guarded(search.get), methods=["GET"]),
        Route("/v1/memories/{id}/turns", guarded(receipts.came_up), methods=["GET"]),
        Route("/v1/memories/archive", guarded(versions.archive), methods=["POST"]),
        Route("/v1/memories/maintain", long(owner.maintain), methods=["POST"]),
        Route("/v1/forget", long(partial(forget, instance, gate)), methods=["POST"]),
        Route("/v1/forget/undo", guarded(partial(undo, instance, gate)), methods=["POST"]),
        Route("/v1/forget/settled", long(partial(settled, instance, gate)), methods=["POST"]),
        Route("/v1/memories/import", guarded(partial(take_records, instance, gate)), methods=["POST"]),
        Route("/v1/memories/{id}/wrong", guarded(receipts.flag_memory), methods=["POST"]),
        Route("/v1/memories/{id}/widen", guarded(people.share_memory), methods=["POST"]),
        Route("/v1/collection/run", long(collection.run), methods=["POST"]),
        Route("/v1/collection/{id}/requeue", guarded(collection.requeue), methods=["POST"]),
        Route("/v1/people/join", guarded(people.join), methods=["POST"]),
        Route("/v1/people/split", guarded(people.split), methods=["POST"]),
        Route("/v1/memories/{id}/edit", guarded(versions.edit), methods=["POST"]),
        Route("/v1/memories/{id}/pin", guarded(versions.pin), methods=["POST"]),
        Route("/v1/memories/{id}/merge", guarded(versions.merge), methods=["POST"]),
        *task_routes(instance, gate),
        Route("/v1/events", guarded(events.events), methods=["GET"]),
        Route("/v1/deliveries/{id}/requeue", guarded(events.requeue), methods=["POST"]),
        Route("/v1/deliveries/{id}/dismiss", guarded(events.dismiss), methods=["POST"]),
        Route("/v1/subscribers/{name}/unsubscribe", guarded(events.unsubscribe), methods=["POST"]),
        *ScheduleRoutes(instance, gate).routes(),
        Route("/v1/turns/{id}", guarded(receipts.turn), methods=["GET"]),
        Route("/v1/turns/{id}/without/{memory}", guarded(receipts.absent), methods=["GET"]),
        Route("/hooks/{name}", guarded(partial(_hook, instance)), methods=["POST"]),
    ]


async def _health(instance: Instance, _request: Request) -> Response:
    if (failure := instance.failure) is not None:
        return JSONResponse({"ok": False, "code": failure.code}, 503)
    return JSONResponse({"ok": True})


async def _ready(instance: Instance, request: Request) -> Response:
    if (failure := instance.failure) is not None:
        return JSONResponse({"ready": False, "code": failure.code}, 503)
    state = request.app.state
    if state.refused_at is not None and asyncio.get_running_loop().time() - state.refused_at < _REFUSING_S:
        return JSONResponse({"ready": False, "code": StoreFull.code}, 503)
    ready = instance.running and not instance.reserve.reached
    return JSONResponse({"ready": ready}, 200 if ready else 503)


async def _hook(instance: Instance, request: Request) -> Response:
    """A webhook: proven first, stored before it is answered."""
    hook = instance.hooks.get(request.path_params["name"])
    if hook is None:
        raise NotFound(f"there is no hook {request.path_params['name']!r}")
    body = await body_of(request, instance.config.buffer.payload_bytes_max)
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if len(body) <= FREE_BYTES:
        inbound = await asyncio.to_thread(hook.read, headers, body)
    else:
        inbound = await run_on_reader(request, lambda _: hook.read(headers, body))
    if inbound is None:
        return JSONResponse({"ignored": "ping"})
    received = await instance.receive(inbound)
    request.app.state.refused_at = None
    return Acknowledgement({"id": show("message", received.id), "intake": received.intake}, 202)


@dataclass(frozen=True, slots=True)
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
        BoundedHeads(app),
        http=protocol_of(Connections(limits_of(server))),
        ws="none",
        log_config=None,
        access_log=False,
        lifespan="off",
        backlog=ACCEPTED_AT_ONCE,
        h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        timeout_keep_alive=ceil(server.idle_timeout_s),
        timeout_graceful_shutdown=_STOP_S,
    )


def application(instance: Instance, gate: Gate, stopping: asyncio.Event) -> Starlette:
    """The routes as an ASGI application."""
    app = Starlette(routes=routes(instance, gate, stopping), exception_handlers={404: unrouted, 405: unrouted})
    app.router.redirect_slashes = False
    app.state.refused_at = None
    app.state.bodies = Bodies(instance.config.server.bodies_bytes_max)
    return app


@asynccontextmanager
async def listening(instance: Instance, port: int | None = None) -> AsyncIterator[Address]:
    """Serve the instance while the block runs, and leave address and token in its home.

    Raises ConfigError for a public address without a token, HomeError when the port is taken.
    """
    server = instance.config.server
    token = secrets.token_urlsafe(32)
    instance.redactor.learn(token)
    gate = Gate(server.host, token, client_token(server))
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
        taken = error.errno == errno.EADDRINUSE
        raise HomeError(
            f"port {port} of {host} cannot be used ({error.strerror})",
            safe="Nothing was changed.",
            hint="stop what listens there, or: keepsaid serve --port 0" if taken else "keepsaid config show server",
        ) from error
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
    app = application(instance, Gate(_HOST, token, None), asyncio.Event())
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
