"""What happened, over HTTP: CloudEvents as they come, read on from wherever a reader was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from starlette.responses import JSONResponse, Response, StreamingResponse

from keepsaid.app.instance import Instance
from keepsaid.domain.event import Event, wants
from keepsaid.domain.ids import read
from keepsaid.events.catalog import topics_of
from keepsaid.interfaces.fields import Shape
from keepsaid.interfaces.http.calls import OwnerCall, OwnerRoute
from keepsaid.interfaces.http.messages import RETRY_MS
from keepsaid.interfaces.http.responses import BadRequest, NotFound
from keepsaid.interfaces.transfer import cloud_event

_LINES_MAX = 200
_LOOK_MS = 10_000
"""So often a reader hears that it is still told, whatever happens."""
_BATCH = "application/cloudevents-batch+json"


async def list_events(stopping: asyncio.Event, instance: Instance, call: OwnerCall) -> Response:
    """What happened after an event: `?after=ID` or Last-Event-ID, and only `?topics=turn.*,memory.*`.

    For who accepts server-sent events they go on as they happen, until `stopping` is set; without `after`, from now on.
    For others it is one list, oldest first: the next ones, or without `after` the newest.
    """
    request, journal = call.request, instance.telling.journal
    patterns = tuple(one.strip() for one in request.query_params.get("topics", "").split(",") if one.strip())
    patterns = topics_of(patterns) if patterns else ()
    after = _after(request.headers.get("last-event-id") or request.query_params.get("after"))
    if "text/event-stream" in request.headers.get("accept", ""):
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        newest = await journal.latest(1) if after is None else ()
        start = after if after is not None else max((one.id for one in newest), default=0)
        stream = _stream(instance, stopping, start, patterns)
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)
    found = await (journal.latest(_LINES_MAX) if after is None else journal.events(after, _LINES_MAX))
    return JSONResponse([cloud_event(one) for one in found if _matches_topics(patterns, one)], media_type=_BATCH)


async def _stream(
    instance: Instance, stopping: asyncio.Event, after: int, patterns: tuple[str, ...]
) -> AsyncIterator[str]:
    yield f"retry: {RETRY_MS}\n\n"
    with instance.telling.listening() as happened:
        while not stopping.is_set():
            found = await instance.telling.journal.events(after, _LINES_MAX)
            for one in found:
                if _matches_topics(patterns, one):
                    data = json.dumps(cloud_event(one), ensure_ascii=False)
                    yield f"event: {one.topic}\nid: {one.id}\ndata: {data}\n\n"
            if found:
                after = found[-1].id
                continue
            yield ": still here\n\n"
            await instance.clock.wait(happened, _LOOK_MS)


async def requeue_delivery(instance: Instance, call: OwnerCall) -> Shape:
    """Try a dead delivery again."""
    return {"decided": await instance.telling.decide(_delivery(call), again=True)}


async def dismiss_delivery(instance: Instance, call: OwnerCall) -> Shape:
    """Dismiss a dead delivery."""
    return {"decided": await instance.telling.decide(_delivery(call), again=False)}


def _delivery(call: OwnerCall) -> int:
    name = call.request.path_params["id"]
    number = read("delivery", name)
    if number is None:
        raise NotFound(f"there is no delivery {name}", hint="keepsaid events dead")
    return number


async def unsubscribe(instance: Instance, call: OwnerCall) -> Shape:
    """Remove a subscriber and its pending deliveries."""
    return {"unsubscribed": await instance.telling.unsubscribe(call.request.path_params["name"])}


def _matches_topics(patterns: tuple[str, ...], event: Event) -> bool:
    return not patterns or wants(patterns, event.topic)


def _after(said: str | None) -> int | None:
    if said is None:
        return None
    if not (said.isascii() and said.isdigit()) or len(said) > len(str(1 << 62)):
        raise BadRequest(f"{said!r} is no id of an event")
    return int(said)


ROUTES = (
    OwnerRoute("POST", "/v1/deliveries/{id}/requeue", requeue_delivery),
    OwnerRoute("POST", "/v1/deliveries/{id}/dismiss", dismiss_delivery),
    OwnerRoute("POST", "/v1/subscribers/{name}/unsubscribe", unsubscribe),
)
