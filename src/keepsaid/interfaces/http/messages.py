"""Messages over HTTP: put one in, see what became of it, wait for the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from keepsaid.app.instance import Instance
from keepsaid.domain.commits import Intake
from keepsaid.domain.ids import read
from keepsaid.domain.message import Inbound, Message, Trust
from keepsaid.domain.views import Story
from keepsaid.interfaces.http.acknowledge import Acknowledgement
from keepsaid.interfaces.http.bodies import body_of, fields_in
from keepsaid.interfaces.http.delivered import Delivered
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.inbound import inbound_of
from keepsaid.interfaces.http.problems import BadRequest, NotFound, Unauthorised
from keepsaid.interfaces.http.stages import RETRY_MS, SETTLED, Told, event
from keepsaid.interfaces.shapes import receipt_shape, story_shape
from keepsaid.ports.channel import Progress

_LOOK_S = 1.0
"""Seconds of silence before the store is asked: what is dropped, spawned or answered elsewhere tells nobody here.

A stop is noticed no later.
"""

_EVENTS = "text/event-stream"


class Messages:
    """The routes under /v1/messages; once `stopping` is set, nobody is kept waiting for an answer."""

    def __init__(self, instance: Instance, gate: Gate, stopping: asyncio.Event) -> None:
        self._instance = instance
        self._gate = gate
        self._stopping = stopping

    async def put(self, request: Request) -> Response:
        """Take a message in: 201 once it is on disk, 200 when it was there before, 409 on a conflict."""
        body, fields = await self.taken(request)
        inbound = inbound_of(self._instance.config, fields, body, request.headers.get("idempotency-key"))
        return await self.keep(request, inbound)

    async def taken(self, request: Request) -> tuple[bytes, dict[str, object]]:
        """The JSON object that a client sends, raw and read."""
        self._gate.client(request)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise BadRequest("the body must be application/json")
        body = await body_of(request, self._instance.config.buffer.payload_bytes_max)
        return body, await fields_in(request, body)

    async def keep(self, request: Request, inbound: Inbound) -> Response:
        """Store a message and say so."""
        channel = inbound.origin.channel
        if channel != "http" and not self._gate.is_operator(request):
            raise Unauthorised(f"only the owner may speak on the channel {channel!r}")
        if inbound.origin.trust is Trust.OWNER and not request.state.known:
            raise Unauthorised("the sender counts as the owner, and nobody speaks as the owner without a token")
        received = await self._instance.receive(inbound)
        request.app.state.refused_at = None
        answer = receipt_shape(received)
        status = 201 if received.intake is Intake.STORED else 200
        return Acknowledgement(answer, status, {"Location": f"/v1/messages/{answer['id']}"})

    async def get(self, request: Request) -> Response:
        """What became of a message, its reply included; a reply counts as pulled once the answer was sent whole."""
        self._gate.client(request)
        story = await self._story(request)
        if request.method == "HEAD":
            return JSONResponse(story_shape(story))
        return Delivered(story_shape(story), partial(self._pull, story))

    async def events(self, request: Request) -> Response:
        """Every stage of a message and the answer as it is written (server-sent events), at last the stored reply.

        The reply then counts as pulled. Who comes back with Last-Event-ID is told what is new; 204 when nothing is
        to come, so that a browser stays away.
        """
        self._gate.client(request)
        story = await self._story(request)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        if request.method == "HEAD":
            return Response(media_type=_EVENTS, headers=headers)
        told = Told(request.headers.get("last-event-id", ""))
        if told.has_all(story):
            await self._pull(story)
            return Response(status_code=204)
        return StreamingResponse(self._stream(story.message, told), media_type=_EVENTS, headers=headers)

    async def _stream(self, message: Message, told: Told) -> AsyncIterator[str]:
        yield f"retry: {RETRY_MS}\n\n"
        with self._instance.hub.listening(message.id, message.lane) as queue:
            while (story := await self._instance.operations.story(message.id)) is not None:
                for text in told.news(story):
                    yield text
                if story.state in SETTLED:
                    await self._pull(story)
                    return
                async for text in self._waited(queue, story, told):
                    yield text
                if self._stopping.is_set():
                    return

    async def _waited(self, queue: asyncio.Queue[Progress], story: Story, told: Told) -> AsyncIterator[str]:
        """What is heard until the store has to be asked again: after other news than words, or a silence."""
        while not self._stopping.is_set():
            try:
                progress = await asyncio.wait_for(queue.get(), _LOOK_S)
            except TimeoutError:
                yield ": still here\n\n"
                return
            if progress.kind == "settled":
                return
            if progress.kind == "waiting" or story.batch is None:
                story = await self._instance.operations.story(story.message.id) or story
                for text in told.news(story):
                    yield text
                if story.state in SETTLED:
                    return
            if progress.kind == "waiting":
                for text in told.waits(story, progress.text):
                    yield text
                return
            yield event("delta", {"text": progress.text})

    async def _story(self, request: Request) -> Story:
        message_id = read("message", request.path_params["id"])
        story = None if message_id is None else await self._instance.operations.story(message_id)
        if story is None or (story.message.lane.channel != "http" and not self._gate.is_operator(request)):
            what = f"there is no message {request.path_params['id']}; one that is done may have been pruned"
            raise NotFound(what, hint="keepsaid inbox ls")
        return story

    async def _pull(self, story: Story) -> None:
        if story.message.lane.channel != "http":
            return
        for reply in story.replies:
            if reply.state == "pending" and reply.draft.url is None:
                await self._instance.shown(reply.id)
