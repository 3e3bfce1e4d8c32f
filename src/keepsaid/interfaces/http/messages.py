"""Messages over HTTP: put one in, see what became of it, wait for the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from keepsaid.app.instance import Instance
from keepsaid.domain.commits import Intake
from keepsaid.domain.ids import read, show
from keepsaid.domain.views import Story
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.inbound import inbound_of
from keepsaid.interfaces.http.problems import BadRequest, NotFound, Unauthorised, body_of, parsed
from keepsaid.interfaces.shapes import story_shape

_INLINE_BYTES_MAX = 64_000
_LOOK_S = 1.0
"""Seconds of silence before the store is asked: what is dropped, spawned or answered elsewhere tells nobody here.

A stop is noticed no later.
"""

_END = ("done", "dropped", "review", "dead")


class Messages:
    """The routes under /v1/messages; once `stopping` is set, nobody is kept waiting for an answer."""

    def __init__(self, instance: Instance, gate: Gate, stopping: asyncio.Event) -> None:
        self._instance = instance
        self._gate = gate
        self._stopping = stopping

    async def put(self, request: Request) -> Response:
        """Take a message in: 201 once it is on disk, 200 when it was there before, 409 on a conflict."""
        self._gate.client(request)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise BadRequest("the body must be application/json")
        body = await body_of(request, self._instance.config.buffer.payload_bytes_max)
        small = len(body) <= _INLINE_BYTES_MAX
        fields = parsed(body) if small else await asyncio.to_thread(parsed, body)
        inbound = inbound_of(self._instance.config, fields, body, request.headers.get("idempotency-key"))
        channel = inbound.origin.channel
        if channel != "http" and not self._gate.is_operator(request):
            raise Unauthorised(f"only the owner may speak on the channel {channel!r}")
        received = await self._instance.receive(inbound)
        answer = {"id": show("message", received.id), "intake": received.intake, "number": received.number}
        answer |= {"conversation": received.lane.conversation, "lane": received.lane.key}
        status = 201 if received.intake is Intake.STORED else 200
        return JSONResponse(answer, status, {"Location": f"/v1/messages/{answer['id']}"})

    async def get(self, request: Request) -> Response:
        """What became of a message, its reply included; a reply seen here counts as pulled."""
        self._gate.client(request)
        story = await self._story(request)
        if request.method != "HEAD":
            await self._pull(story)
        return JSONResponse(story_shape(story))

    async def events(self, request: Request) -> Response:
        """The answer as it is written (server-sent events), then the stored reply, then the end."""
        self._gate.client(request)
        story = await self._story(request)
        return StreamingResponse(self._stream(story.message.id), media_type="text/event-stream")

    async def _stream(self, message_id: int) -> AsyncIterator[str]:
        with self._instance.hub.listening(message_id) as queue:
            story = await self._instance.operations.story(message_id)
            while story is not None and story.state not in _END:
                if self._stopping.is_set():
                    return
                try:
                    progress = await asyncio.wait_for(queue.get(), _LOOK_S)
                except TimeoutError:
                    yield ": still here\n\n"
                else:
                    if progress.kind != "settled":
                        yield _event(progress.kind, {"text": progress.text})
                        continue
                story = await self._instance.operations.story(message_id)
        if story is not None:
            yield _event("settled", story_shape(story))

    async def _story(self, request: Request) -> Story:
        message_id = read("message", request.path_params["id"])
        story = None if message_id is None else await self._instance.operations.story(message_id)
        if story is None:
            raise NotFound(f"there is no message {request.path_params['id']}", hint="keepsaid inbox ls")
        if story.message.lane.channel != "http" and not self._gate.is_operator(request):
            raise NotFound(f"there is no message {request.path_params['id']}", hint="keepsaid inbox ls")
        return story

    async def _pull(self, story: Story) -> None:
        if story.message.lane.channel != "http":
            return
        for reply in story.replies:
            if reply.state == "pending" and reply.draft.url is None:
                await self._instance.shown(reply.id)


def _event(kind: str, data: object) -> str:
    return f"event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
