"""What happened, over HTTP: CloudEvents as they come, read on from wherever a reader was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from keepsaid.app.instance import Instance
from keepsaid.domain.event import Event, wants
from keepsaid.domain.ids import read
from keepsaid.events.catalog import topics_of
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.messages import RETRY_MS
from keepsaid.interfaces.http.responses import BadRequest, NotFound
from keepsaid.interfaces.transfer import cloud_event

_LINES_MAX = 200
_LOOK_MS = 10_000
"""So often a reader hears that it is still told, whatever happens."""
_BATCH = "application/cloudevents-batch+json"


class EventRoutes:
    """The routes of the journal, for the owner; once `stopping` is set, streams end."""

    def __init__(self, instance: Instance, gate: Gate, stopping: asyncio.Event) -> None:
        self._instance = instance
        self._gate = gate
        self._stopping = stopping

    async def events(self, request: Request) -> Response:
        """What happened after an event: `?after=ID` or Last-Event-ID, and only `?topics=turn.*,memory.*`.

        For who accepts server-sent events they go on as they happen; without `after`, from now on. For others it is
        one list, oldest first: the next ones, or without `after` the newest.
        """
        self._gate.operator(request)
        named = request.query_params.get("topics", "")
        patterns = tuple(one.strip() for one in named.split(",") if one.strip())
        patterns = topics_of(patterns) if patterns else ()
        after = _after(request.headers.get("last-event-id") or request.query_params.get("after"))
        if "text/event-stream" in request.headers.get("accept", ""):
            headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
            stream = self._stream(await self._start(after), patterns)
            return StreamingResponse(stream, media_type="text/event-stream", headers=headers)
        found = await self._found(after)
        return JSONResponse([cloud_event(one) for one in found if _matches_topics(patterns, one)], media_type=_BATCH)

    async def requeue(self, request: Request) -> Response:
        """Try a delivery again that was given up."""
        return await self._decided(request, again=True)

    async def dismiss(self, request: Request) -> Response:
        """Let a delivery be that was given up."""
        return await self._decided(request, again=False)

    async def unsubscribe(self, request: Request) -> Response:
        """Tell a subscriber of nothing any more."""
        self._gate.operator(request)
        done = await self._instance.telling.unsubscribe(request.path_params["name"])
        return JSONResponse({"unsubscribed": done})

    async def _decided(self, request: Request, *, again: bool) -> Response:
        self._gate.operator(request)
        number = read("delivery", request.path_params["id"])
        if number is None:
            raise NotFound(f"there is no delivery {request.path_params['id']}", hint="keepsaid events dead")
        return JSONResponse({"decided": await self._instance.telling.decide(number, again=again)})

    async def _found(self, after: int | None) -> Sequence[Event]:
        journal = self._instance.telling.journal
        return await (journal.latest(_LINES_MAX) if after is None else journal.events(after, _LINES_MAX))

    async def _start(self, after: int | None) -> int:
        newest = await self._instance.telling.journal.latest(1) if after is None else ()
        return after if after is not None else max((one.id for one in newest), default=0)

    async def _stream(self, after: int, patterns: tuple[str, ...]) -> AsyncIterator[str]:
        yield f"retry: {RETRY_MS}\n\n"
        with self._instance.telling.listening() as told:
            while not self._stopping.is_set():
                found = await self._instance.telling.journal.events(after, _LINES_MAX)
                for one in found:
                    if _matches_topics(patterns, one):
                        yield f"event: {one.topic}\nid: {one.id}\ndata: {_text(one)}\n\n"
                if found:
                    after = found[-1].id
                    continue
                yield ": still here\n\n"
                await self._instance.clock.wait(told, _LOOK_MS)


def _matches_topics(patterns: tuple[str, ...], event: Event) -> bool:
    return not patterns or wants(patterns, event.topic)


def _text(event: Event) -> str:
    return json.dumps(cloud_event(event), ensure_ascii=False)


def _after(said: str | None) -> int | None:
    if said is None:
        return None
    if not (said.isascii() and said.isdigit()) or len(said) > len(str(1 << 62)):
        raise BadRequest(f"{said!r} is no id of an event")
    return int(said)
