"""The stream of a conversation: one connection over which a page hears all that is said and answered there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from keepsaid.app.instance import Instance
from keepsaid.domain.ids import show, when
from keepsaid.domain.message import StoredMessage
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.messages import EVENTS, RETRY_MS, event
from keepsaid.interfaces.http.responses import BadRequest, NotFound
from keepsaid.interfaces.shapes import Shape, fields_of, reply_shape
from keepsaid.services.conversations import ConversationEvent, ReadMark
from keepsaid.services.files import open_file

_NAME_CHARS_MAX = 512
_MARK = re.compile(r"m([0-9]{1,19})\.r([0-9]{1,19})", re.ASCII)


class Conversations:
    """The routes under /v1/conversations and /v1/files; once `stopping` is set its streams end."""

    def __init__(self, instance: Instance, gate: Gate, stopping: asyncio.Event) -> None:
        self._following = instance.services.conversations
        self._files = instance.operations.files
        self._gate = gate
        self._stopping = stopping

    async def events(self, request: Request) -> Response:
        """Stream what comes in a conversation of the channel `http` (server-sent events).

        A reader with Last-Event-ID receives what came after it; `Last-Event-ID: m0.r0` asks for all that is kept.
        """
        self._gate.client(request)
        name = request.path_params["conversation"]
        if not 0 < len(name) <= _NAME_CHARS_MAX:
            raise BadRequest(f"the name of a conversation has 1 to {_NAME_CHARS_MAX} characters")
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        if request.method == "HEAD":
            return Response(media_type=EVENTS, headers=headers)
        since = _mark_in(request.headers.get("last-event-id", ""))
        return StreamingResponse(self._stream(name, since), media_type=EVENTS, headers=headers)

    async def file(self, request: Request) -> Response:
        """The bytes of a file that came with a message, or goes with a reply; never shown as a page of our own.

        Without the operator's token those of the channel `http` alone: who has another may read its conversations.
        """
        self._gate.client(request)
        handle = f"{request.path_params['owner']}/{request.path_params['number']}"
        if (file := await open_file(self._files, handle)) is None:
            raise NotFound("there is no such file")
        if file.channel != "http":
            self._gate.operator(request)
        headers = {
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name)}",
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "sandbox",
            "Cache-Control": "no-store",
        }
        return Response(file.content, media_type=file.kind, headers=headers)

    async def _stream(self, name: str, since: ReadMark | None) -> AsyncIterator[str]:
        yield f"retry: {RETRY_MS}\n\n"
        following = self._following.follow(("http", name), since, self._stopping.is_set)
        async with aclosing(following) as news:
            async for one in news:
                yield _written(one)


def _mark_in(text: str) -> ReadMark | None:
    """How far a reader has read, by the id of the last event; None for a new one. Raises BadRequest."""
    if not text:
        return None
    if (found := _MARK.fullmatch(text)) is None:
        raise BadRequest("the Last-Event-ID is none of this stream")
    return ReadMark(int(found[1]), int(found[2]))


def _written(one: ConversationEvent) -> str:
    mark = f"m{one.mark.message}.r{one.mark.reply}"
    if one.message is not None:
        return event("message", _message_shape(one.message), mark)
    if one.reply is not None:
        return event("reply", {**reply_shape(one.reply), "lane": one.reply.lane.key}, mark)
    if one.kind == "silence":
        return ": still here\n\n"
    return event(one.kind, {"name" if one.kind == "tool" else "text": one.text})


def _message_shape(said: StoredMessage) -> Shape:
    return {
        "id": show("message", said.id),
        "number": said.number,
        "lane": said.lane.key,
        **fields_of(said.inbound.origin, "sender", "name"),
        "event": said.inbound.content.event,
        "text": said.text,
        "received_at": when(said.received_at),
    }
