"""Routes for messages: put one in (JSON, or raw as its medium sent it), read what happened to it, await the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from difflib import get_close_matches
from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from keepsaid.app.channels import MEDIA, url_refused
from keepsaid.app.instance import Instance
from keepsaid.config import Config
from keepsaid.domain import commits, ids, quotation, views
from keepsaid.domain.files import FILES_MAX
from keepsaid.domain.message import Content, IgnoredUpdate, Inbound, Origin, ProviderMarks, StoredMessage, Trust
from keepsaid.domain.principal import Principal, Scope
from keepsaid.errors import InputError, KeepsaidError, UnknownChannel
from keepsaid.interfaces.fields import text_field
from keepsaid.interfaces.http.bodies import body_of, fields_in, run_on_reader
from keepsaid.interfaces.http.gate import Gate, KeyWatch
from keepsaid.interfaces.http.responses import (
    Acknowledgement,
    BadRequest,
    ConfirmedResponse,
    NotFound,
    Unauthorised,
    read_query,
)
from keepsaid.interfaces.http.sent_files import FILES, SentFiles, read_files, receive_with_files
from keepsaid.interfaces.schema import ANY, FLAG, TEXT, many, named, perhaps, takes
from keepsaid.interfaces.shapes import Shape, batch_shape, fields_of, next_try, receipt_shape, story_shape
from keepsaid.services.inbox import SETTLED, AnswerProgress
from keepsaid.text.normal import cut
from keepsaid.values import frozen

_TEXTS = ("text", "channel", "account", "sender", "conversation", "name")
_OPTIONAL = ("provider_id", "reply_to", "topic", "reply_url", "conversation_name", quotation.FIELD)
_KNOWN = (*_TEXTS, *_OPTIONAL, "direct", "data", FILES)
_KEY_CHARS_MAX = 512
_QUOTED_MAX = 80
"""Characters of a caller's own text that an answer quotes; a nearest name is looked for in no more."""


def inbound_of(config: Config, fields: Mapping[str, object], body: bytes, key: str | None) -> Inbound:
    """The message in a JSON body; raises InputError naming the field that is wrong.

    `text`, `sender` and `conversation` are needed; null in any other field is as if it were not there. `key` is
    the Idempotency-Key. `data` may hold anything: it is kept with the raw body, and rules can read it. So is
    `reply_to_text`, which the prompt quotes from there. `files` are read by `read_files`.
    """
    for field in fields:
        if field not in _KNOWN:
            name = cut(field, _QUOTED_MAX)
            near = get_close_matches(name, _KNOWN, 1)
            raise BadRequest(f"unknown field {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    text = text_field(fields, "text", None)
    channel = text_field(fields, "channel", "http")
    settings = config.channels.get(channel)
    if settings is None or not settings.enabled:
        known = ", ".join(sorted(name for name, one in config.channels.items() if one.enabled))
        raise UnknownChannel(f"there is no channel {cut(channel, _QUOTED_MAX)!r}; known: {known}")
    if key is not None and not 0 < len(key) <= _KEY_CHARS_MAX:
        raise InputError(f"the Idempotency-Key needs 1 to {_KEY_CHARS_MAX} characters")
    said_by = text_field(fields, "sender", None)
    place = text_field(fields, "account", "default"), text_field(fields, "conversation", None)
    called, direct = text_field(fields, "name", ""), False if fields.get("direct") is None else fields["direct"]
    if not isinstance(direct, bool):
        raise InputError("the field 'direct' must be true or false")
    origin = Origin(channel, *place, said_by, called, direct)
    origin = replace(origin, trust=config.trust_of(origin))
    optional = (None if fields.get(name) is None else text_field(fields, name, None) for name in _OPTIONAL)
    provider_id, reply_to, topic, reply_url, title, _ = optional
    if reply_url is not None:
        _check_url(reply_url, channel, settings.reply_hosts)
    marks = ProviderMarks(key, provider_id, reply_to)
    content = Content(body, text)
    return Inbound(origin, content, marks, settings.priority, topic, reply_url, conversation_name=title or "")


def _check_url(url: str, channel: str, hosts: tuple[str, ...]) -> None:
    if (reason := url_refused(url, hosts)) is not None:
        raise InputError(reason, hint=f"an address of a host in channels.{channel}.reply_hosts")


RETRY_MS = 1_000
"""How soon a browser comes back when the connection ends without a word."""

_ORDER = ("received", "batched", "waiting", "settled")


@frozen
class MessageEvent:
    """One event; `id` names it over all connections: its kind, and which of several of that kind."""

    id: str
    data: Shape

    @property
    def kind(self) -> str:
        return self.id.partition("-")[0]


def event(kind: str, data: object, stage: str = "") -> str:
    """One server-sent event; without the id of a stage it does not count for who comes back."""
    named = f"id: {stage}\n" if stage else ""
    return f"event: {kind}\n{named}data: {json.dumps(data, ensure_ascii=False)}\n\n"


class SentEvents:
    """The stages sent to one reader, who may reconnect with the id of the last stage that arrived."""

    def __init__(self, last: str) -> None:
        self._ids = {last}
        kind = last.partition("-")[0]
        self._before = _ORDER[: _ORDER.index(kind)] if kind in _ORDER else ()

    def knows(self, stage: MessageEvent) -> bool:
        return stage.id in self._ids or (stage.kind in self._before and stage.kind != "waiting")

    def news(self, *stages: MessageEvent) -> Iterator[str]:
        """The stages the reader does not have, as they are sent."""
        for stage in stages:
            if not self.knows(stage):
                self._ids.add(stage.id)
                yield event(stage.kind, stage.data, stage.id)


def _stages(story: views.Story) -> Iterator[MessageEvent]:
    message, batch = story.message, story.batch
    place = {"number": message.number, "conversation": message.lane.conversation, "lane": message.lane.key}
    received = {"id": ids.show("message", message.id), **place, "received_at": ids.when(message.received_at)}
    yield MessageEvent("received", received)
    if batch is not None:
        yield MessageEvent("batched", batch_shape(batch))
        again = next_try(batch)
        if again is not None and batch.error:
            told = f"{batch.error}; trying again at {ids.when(again)}"
            yield _waiting(story, told, next_try_at=ids.when(again))
    if story.state in SETTLED:
        yield _settled(story)


def _waiting(story: views.Story, text: str, *, next_try_at: str | None = None, paused: bool = False) -> MessageEvent:
    name = f"waiting-{story.batch.fence if story.batch else 0}"
    return MessageEvent(name, {"text": text, "next_try_at": next_try_at, "paused": paused})


def _settled(story: views.Story) -> MessageEvent:
    """Its end, of which there may be several: a person can queue it again."""
    return MessageEvent(f"settled-{story.state}-{story.batch.fence if story.batch else 0}", story_shape(story))


EVENTS = "text/event-stream"
"""The type of a stream of server-sent events."""


def _fields_of_key(who: Principal, fields: Mapping[str, object]) -> dict[str, object]:
    """The fields of a message of a key: it speaks as its sender alone. Raises BadRequest where they say otherwise."""
    own = {"channel": who.channel, "account": who.name, "sender": who.sender, "direct": who.direct}
    for name, value in own.items():
        if fields.get(name) not in (None, value):
            raise BadRequest(f"{name} is {value!r} for the key {who.name}: leave the field out")
    return {**fields, **own}


RAW_QUERY = ("channel", "account", "reply_url")
_FILE = takes("name", "content", **named(TEXT, "name", "type", "content"))
FIELDS = takes(
    *("text", "sender", "conversation"),
    **named(TEXT, *_TEXTS),
    **named(perhaps(TEXT), *_OPTIONAL),
    direct=perhaps(FLAG),
    data=ANY,
    files=perhaps(many(_FILE, FILES_MAX)),
)
"""The fields of a message; the sender of a key is known by its key."""

_POSTED = ("text", "sender", "conversation", "name", "direct", "topic", "provider_id", "reply_to", "conversation_name")


class Messages:
    """The routes under /v1/messages and /v1/media; once `stopping` is set, nobody is kept waiting for an answer."""

    def __init__(self, instance: Instance, gate: Gate, stopping: asyncio.Event) -> None:
        self._instance = instance
        self._gate = gate
        self._stopping = stopping
        self._asking = instance.services.asking

    async def put(self, request: Request) -> Response:
        """Take a message in: 201 once it and its files are on disk, 200 when they were before, 409 on a conflict.

        Who holds a key speaks as its sender, in a conversation of its own.
        """
        who = self._gate.talker(request)
        body, fields = await self._taken(request)
        if who is not None:
            fields = _fields_of_key(who, fields)
        key, sent = request.headers.get("idempotency-key"), await self._files_in(request, fields)
        inbound = inbound_of(self._instance.config, fields, body if sent is None else sent.payload, key)
        if who is not None:
            inbound = replace(inbound, origin=replace(inbound.origin, trust=who.trust))
        if sent is None:
            return await self._keep(request, inbound, who)
        return await self._keep(request, replace(inbound, files=sent.files), who, sent.contents)

    async def _files_in(self, request: Request, fields: Mapping[str, object]) -> SentFiles | None:
        """The files of a message; None for none."""
        if not fields.get(FILES):
            return None
        settings = self._instance.config.files
        sent = await run_on_reader(request, lambda _: read_files(fields, settings.bytes_max))
        if settings.fetch:
            return sent
        return SentFiles(sent.payload, sent.named, tuple(replace(one, ref="") for one in sent.files), ())

    async def put_raw(self, request: Request) -> Response:
        """Take the message of a medium's raw object in, as any other; 200 with the reason where it holds none."""
        self._gate.client(request)
        body, fields = await self._taken(request)
        medium = request.path_params["medium"]
        if medium not in MEDIA:
            hint = "webhooks of GitHub go to /hooks/github" if medium == "github" else "see docs/use/reference/http.md"
            raise NotFound(f"there is no medium {medium!r}; known: {', '.join(sorted(MEDIA))}", hint=hint)
        query = read_query(request, *RAW_QUERY)
        posted = MEDIA[medium](fields)
        if isinstance(posted, IgnoredUpdate):
            return JSONResponse({"ignored": posted.reason})
        fields = {**fields_of(posted, *_POSTED), **query}
        key = request.headers.get("idempotency-key", posted.delivery)
        inbound = inbound_of(self._instance.config, fields, body, key)
        if posted.by_bot and not self._instance.config.takes_bots(inbound.origin.channel):
            return JSONResponse({"ignored": "a bot said it"})
        inbound = replace(inbound, content=replace(inbound.content, event=posted.event), by_bot=posted.by_bot)
        return await self._keep(request, inbound)

    async def _taken(self, request: Request) -> tuple[bytes, dict[str, object]]:
        """The JSON object that a client sends, raw and read."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise BadRequest("the body must be application/json")
        body = await body_of(request, self._instance.config.buffer.payload_bytes_max)
        return body, await fields_in(request, body)

    async def _keep(
        self, request: Request, inbound: Inbound, who: Principal | None = None, contents: Sequence[bytes] = ()
    ) -> Response:
        channel = inbound.origin.channel
        if channel != "http" and who is None and not self._gate.is_operator(request):
            raise Unauthorised(f"only the owner may speak on the channel {channel!r}")
        if inbound.origin.trust is Trust.OWNER and not request.state.known:
            raise Unauthorised("the sender counts as the owner, and nobody speaks as the owner without a token")
        received = await receive_with_files(request, self._instance, inbound, contents)
        answer = receipt_shape(received)
        status = 201 if received.intake is commits.IntakeResult.STORED else 200
        return Acknowledgement(answer, status, {"Location": f"/v1/messages/{answer['id']}"})

    async def get(self, request: Request) -> Response:
        """The outcome of a message with its reply; a reply counts as pulled once the answer is sent completely."""
        story = await self._story(request)
        if request.method == "HEAD":
            return JSONResponse(story_shape(story))
        return ConfirmedResponse(story_shape(story), partial(self._pull, story))

    async def events(self, request: Request) -> Response:
        """Every stage of a message and the answer as it is written (server-sent events), at last the stored reply.

        The reply then counts as pulled. A reader with Last-Event-ID receives the events after it; 204 when no
        event will follow, so that a browser does not reconnect.
        """
        story = await self._story(request)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        if request.method == "HEAD":
            return Response(media_type=EVENTS, headers=headers)
        told = SentEvents(request.headers.get("last-event-id", ""))
        if story.state in SETTLED and told.knows(_settled(story)):
            await self._pull(story)
            return Response(status_code=204)
        watch = KeyWatch(self._gate, self._instance.keys, request, (Scope.TALK,))
        return StreamingResponse(self._stream(story.message, told, watch), media_type=EVENTS, headers=headers)

    async def _stream(self, message: StoredMessage, told: SentEvents, watch: KeyWatch) -> AsyncIterator[str]:
        yield f"retry: {RETRY_MS}\n\n"
        async with aclosing(self._asking.follow(message.id, message.lane, self._stopping.is_set)) as progress:
            async for heard in progress:
                try:
                    await watch.check()
                except KeepsaidError as error:
                    yield event("refused", {"title": error.what, "code": error.code, "hint": error.hint})
                    return
                for text in _written(heard, told):
                    yield text
                if heard.kind == "story" and heard.story.state in SETTLED:
                    await self._pull(heard.story)

    async def _story(self, request: Request) -> views.Story:
        who, message_id = self._gate.talker(request), ids.read("message", request.path_params["id"])
        story = None if message_id is None else await self._asking.story(message_id)
        if story is None or not self._may_see(request, who, story):
            what = f"there is no message {request.path_params['id']}; one that is done may have been pruned"
            raise NotFound(what, hint="keepsaid inbox ls")
        return story

    def _may_see(self, request: Request, who: Principal | None, story: views.Story) -> bool:
        lane = story.message.lane
        if who is not None:
            return who.owns(lane)
        return lane.channel == "http" or self._gate.is_operator(request)

    async def _pull(self, story: views.Story) -> None:
        lane = story.message.lane
        if lane.channel == "http" or lane.account in self._instance.keys.by_name:
            await self._asking.mark_seen(story)


def _written(heard: AnswerProgress, told: SentEvents) -> Iterator[str]:
    """The events to send to one reader for a step of progress."""
    if heard.kind == "story":
        yield from told.news(*_stages(heard.story))
    elif heard.kind == "silence":
        yield ": still here\n\n"
    elif heard.kind == "waiting":
        yield from told.news(_waiting(heard.story, heard.text, paused=heard.paused))
    elif heard.kind == "tool":
        yield event("tool", {"name": heard.text})
    else:
        yield event("delta", {"text": heard.text})
