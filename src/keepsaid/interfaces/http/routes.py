"""Every route of a server: those that anybody, clients and providers call, and those of the owner and of keys."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.domain.ids import show
from keepsaid.domain.message import Inbound
from keepsaid.domain.principal import Scope
from keepsaid.domain.process import ProcessRole
from keepsaid.errors import InputError, StoreFull, StoreUnreachable
from keepsaid.interfaces.http import (
    agent_hooks,
    agents,
    batches,
    bodies,
    calls,
    channels,
    conversations,
    library,
    mem0,
    memories,
    messages,
    metrics,
    operator,
    responses,
)
from keepsaid.interfaces.http import gate as gates
from keepsaid.interfaces.http.calls import OpenRoute
from keepsaid.interfaces.schema import FLAG, OBJECT, TEXT, gives, many, ref, takes
from keepsaid.ports.channel import HookAnswer, PreparedHook

_log = logging.getLogger("keepsaid.http")

_REFUSING_S = 10.0
"""Seconds after a full store refused a message in which the server is not ready, unless it takes another before."""

_EVENTS = "text/event-stream"
_BATCH = "application/cloudevents-batch+json"
_READY = takes("ready", ready=FLAG, lines=many(gives(channel=TEXT, state=TEXT)), code=TEXT, role=TEXT)
_HEALTH = takes("ok", ok=FLAG, code=TEXT)
_STORED, _STREAM = (200, 201), (200, 204)


def routes(instance: Instance, gate: gates.Gate, stopping: asyncio.Event) -> tuple[OpenRoute | calls.OwnerRoute, ...]:
    """Every route of the server; streams end soon after `stopping` is set, what takes long once a stop begins."""
    chat = messages.Messages(instance, gate, stopping)
    talks = conversations.Conversations(instance, gate, stopping)
    list_events = partial(operator.list_events, stopping)
    stream = calls.OwnerRoute(
        "GET", "/v1/events", list_events, query=("topics", "after"), gives=many(OBJECT), media=_BATCH
    )
    hook, put = (calls.from_outside(instance, one) for one in (partial(_hook, instance), chat.put))
    put_raw, metric = calls.from_outside(instance, chat.put_raw), partial(metrics.show_metrics, instance, gate)
    talk, story = (Scope.TALK,), "/v1/messages/{id}"
    talking = "/v1/conversations/{conversation}/events"
    raw, ignored = messages.RAW_QUERY, {"anyOf": [ref("Receipt"), gives(ignored=TEXT)]}
    return (
        OpenRoute("GET", "/healthz", partial(_health, instance), "anybody", gives=_HEALTH),
        OpenRoute("GET", "/readyz", partial(_ready, instance), "anybody", gives=_READY),
        OpenRoute("GET", "/metrics", metric, "client", gives=TEXT, media="text/plain"),
        OpenRoute("POST", "/v1/messages", put, "client", talk, messages.FIELDS, gives=ref("Receipt"), statuses=_STORED),
        OpenRoute("GET", story, chat.get, "client", talk, gives=ref("Message")),
        OpenRoute("GET", f"{story}/events", chat.events, "client", talk, gives=TEXT, statuses=_STREAM, media=_EVENTS),
        OpenRoute("GET", talking, talks.events, "client", gives=TEXT, media=_EVENTS),
        OpenRoute("GET", "/v1/files/{owner}/{number}", talks.file, "client", gives=TEXT, media="*/*"),
        OpenRoute(
            "POST", "/v1/media/{medium}", put_raw, "client", takes=OBJECT, query=raw, gives=ignored, statuses=_STORED
        ),
        *agents.ROUTES,
        *agent_hooks.ROUTES,
        *memories.ROUTES,
        *memories.ENTITY_ROUTES,
        *mem0.ROUTES,
        *batches.ROUTES,
        *channels.ROUTES,
        *operator.ROUTES,
        *operator.TASK_ROUTES,
        stream,
        *operator.EVENT_ROUTES,
        *library.ROUTES,
        OpenRoute("POST", "/hooks/{name}", hook, "provider", takes=OBJECT, statuses=(200, 202)),
    )


async def _health(instance: Instance, _request: Request) -> Response:
    """Whether the disk works: 503 where it does not."""
    if (failure := instance.failure) is not None:
        return JSONResponse({"ok": False, "code": failure.code}, 503)
    return JSONResponse({"ok": True})


async def _ready(instance: Instance, request: Request) -> Response:
    """Whether messages are accepted: 503 where they are not."""
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
            taken = await instance.extending.host.receiver.take(hook.name, said)
        except InputError as error:
            # the provider would send it again for ever
            _log.warning("a message of %s is not taken: %s", hook.name, error.what, extra={"code": error.code})
            return JSONResponse({"ignored": error.what})
        if taken is None:
            return JSONResponse({"ignored": "a bot said it"})
        received = taken
    request.app.state.refused_at = None
    return responses.Acknowledgement({"id": show("message", received.id), "intake": received.intake}, 202)
