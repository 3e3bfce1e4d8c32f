"""The memory proxy: a call passes through to a provider's model, with memory before the user's last message (A9)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from keepsaid.app.instance import Instance
from keepsaid.app.upstreams import proxy_memory_of, upstreams_of
from keepsaid.config.openai import ProxyConfig
from keepsaid.domain.chat_call import ChatCall, ChatTurn, read_call
from keepsaid.domain.principal import Principal
from keepsaid.errors import KeepsaidError, ModelUnavailable
from keepsaid.interfaces.http.bodies import FREE_BYTES, run_on_reader
from keepsaid.interfaces.http.openai.chats import ChatSite
from keepsaid.interfaces.http.openai.conversation import conversation_of, header_text, is_background, is_temporary
from keepsaid.interfaces.http.openai.models import PROXY, proxy_named
from keepsaid.interfaces.http.openai.problems import error_body
from keepsaid.interfaces.http.openai.tee import StreamTee, whole_answer
from keepsaid.interfaces.http.responses import TooManyCalls, client_left, while_there
from keepsaid.ports.upstream import UpstreamAnswer
from keepsaid.services.proxy import ProxyContext
from keepsaid.values import frozen

_PATH = "/chat/completions"
_EVENTS = "text/event-stream"
_ANSWER_MAX = 64_000_000
_RECORDED_WITHIN_S = 1.0
_CHECK_S = 1.0
"""Seconds between two looks at whether the key of a stream is still let in."""

Record = Callable[[str], Awaitable[None]]
"""Records the call with the assistant's text, "" for none that is whole."""


@frozen
class _Plan:
    """How one call is forwarded: in which conversation, with which memory, and whether it is recorded."""

    settings: ProxyConfig
    call: ChatCall
    conversation: str = ""
    turn: ChatTurn | None = None
    context: ProxyContext = ProxyContext()

    def headers(self) -> dict[str, str]:
        """What the answer says of memory."""
        named = {"X-Keepsaid-Memories": str(self.context.memories)}
        if self.conversation:
            named["X-Keepsaid-Lane"] = header_text(self.conversation)
        if self.context.degraded:
            named["X-Keepsaid-Degraded"] = header_text(self.context.degraded)
        return named


class MemoryProxy:
    """Forwards the calls of one server; `close` waits for what is being recorded."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._upstreams = upstreams_of(instance.config)
        self._memory = proxy_memory_of(instance)
        self._running = dict.fromkeys(self._upstreams, 0)

    async def close(self) -> None:
        """End the connections to providers."""
        await self._memory.settle()
        await asyncio.gather(*(one.close() for one in self._upstreams.values()))

    async def answer(self, site: ChatSite, raw: bytes, fields: Mapping[str, object]) -> Response:
        """Forward a call of the model that `fields` names. Raises NoSuchModel, NotAllowed, TooManyCalls, ModelError."""
        request, who, name = site.request, site.who, str(fields["model"])
        settings, place = proxy_named(self._instance, who, name), name.removeprefix(PROXY)
        if self._running[place] >= settings.concurrent_max:
            raise TooManyCalls(f"{settings.concurrent_max} calls of {name} run")
        self._running[place] += 1
        streams = False
        try:
            plan = await self._planned(request, who, settings, await _read(request, raw, fields))
            body = await _forwarded(request, plan)
            sending = self._upstreams[place].post(_PATH, body, dict(request.headers))
            response = await self._relayed(site, await while_there(request, sending), plan, place)
            streams = isinstance(response, RelayedStream)
            return response
        finally:
            if not streams:
                self._running[place] -= 1

    async def _planned(self, request: Request, who: Principal, settings: ProxyConfig, call: ChatCall) -> _Plan:
        """Decide what memory has to do with a call, and recall for it."""
        plan, turn, openai = _Plan(settings, call), call.turn, self._instance.config.openai
        if turn is None or settings.memory == "off" or is_background(request, openai, turn):
            return plan
        conversation = conversation_of(request, openai, who, turn)
        is_recorded = settings.writes and not is_temporary(request)
        plan = replace(plan, conversation=conversation, turn=turn if is_recorded else None)
        if not settings.reads:
            return plan
        return replace(plan, context=await self._memory.recall(who, conversation, turn, settings.tokens_max))

    async def _relayed(self, site: ChatSite, upstream: UpstreamAnswer, plan: _Plan, place: str) -> Response:
        headers = {**upstream.headers, **plan.headers()}
        turn, conversation, who = plan.turn, plan.conversation, site.who  # not the plan: it holds the whole body

        async def record(answer: str) -> None:
            if turn is not None:
                task = self._memory.record(who, conversation, turn, answer)
                await asyncio.wait((task,), timeout=_RECORDED_WITHIN_S)

        def end() -> None:
            self._running[place] -= 1

        if upstream.status == 200 and upstream.headers.get("content-type", "").startswith(_EVENTS):
            headers |= {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
            return RelayedStream(upstream, headers, record, end, site.watch.check)
        try:
            body = await while_there(site.request, _whole(upstream))
        finally:
            await upstream.close()
        if upstream.status >= 400:
            return Response(upstream.without_key(body), upstream.status, headers)
        if upstream.status == 200 and (answer := await _answer_in(body)) is not None:
            return RelayedAnswer(body, headers, record, answer)
        return Response(body, upstream.status, headers)


class RelayedAnswer(Response):
    """A whole answer, which is recorded before its last byte is sent."""

    def __init__(self, body: bytes, headers: Mapping[str, str], record: Record, answer: str) -> None:
        super().__init__(body, 200, headers)
        self._record, self._answer = record, answer

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send it."""
        recording = asyncio.ensure_future(self._record(self._answer))
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": bytes(self.body)[:-1], "more_body": True})
        await recording
        await send({"type": "http.response.body", "body": bytes(self.body)[-1:], "more_body": False})


class RelayedStream(Response):
    """A stream that passes through as it comes; what was said is recorded before its end is sent.

    If the client leaves, the provider breaks the stream off or `check` refuses the key, the rest is dropped, and the
    user's message is recorded without an answer.
    """

    def __init__(
        self,
        upstream: UpstreamAnswer,
        headers: Mapping[str, str],
        record: Record,
        end: Callable[[], None],
        check: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(None, 200, headers)
        del self.headers["content-length"]
        self._upstream, self._record, self._end, self._check = upstream, record, end, check
        self._tee = StreamTee()

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        pumping = asyncio.ensure_future(self._pumped(send))
        gone, refused = asyncio.ensure_future(client_left(receive)), asyncio.ensure_future(self._refused())
        try:
            await asyncio.wait((pumping, gone, refused), return_when=asyncio.FIRST_COMPLETED)
            if not pumping.done():
                pumping.cancel()
                await asyncio.wait((pumping,))
                if refused.done():
                    await self._break_off(send, refused.result())
            else:
                pumping.result()
            await self._record(self._tee.answer or "")
            if not gone.done():
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            for task in (pumping, gone, refused):
                task.cancel()
            self._end()
            await self._upstream.close()

    async def _pumped(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            async for chunk in self._upstream.chunks():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                self._tee.add(chunk)
        except KeepsaidError as error:
            await self._break_off(send, error)

    async def _break_off(self, send: Send, error: KeepsaidError) -> None:
        """Send an error as the last event."""
        event = b"\n\ndata: %b\n\n" % json.dumps(error_body(error)).encode()
        self._tee.add(event)
        await send({"type": "http.response.body", "body": event, "more_body": True})

    async def _refused(self) -> KeepsaidError:
        """Return why the key of the call is not let in any more, once that is so."""
        never = asyncio.Event()
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(never.wait(), _CHECK_S)
            try:
                await self._check()
            except KeepsaidError as error:
                return error


async def _read(request: Request, raw: bytes, fields: Mapping[str, object]) -> ChatCall:
    if len(raw) <= FREE_BYTES:
        return read_call(raw, fields)
    return await run_on_reader(request, lambda _: read_call(raw, fields))


async def _forwarded(request: Request, plan: _Plan) -> bytes:
    def make(_: object = None) -> bytes:
        return plan.call.forwarded(plan.settings.model, plan.settings.role, plan.context.text)

    return make() if len(plan.call.raw) <= FREE_BYTES else await run_on_reader(request, make)


async def _answer_in(body: bytes) -> str | None:
    return whole_answer(body) if len(body) <= FREE_BYTES else await asyncio.to_thread(whole_answer, body)


async def _whole(upstream: UpstreamAnswer) -> bytes:
    parts, size = list[bytes](), 0
    async for chunk in upstream.chunks():
        parts.append(chunk)
        size += len(chunk)
        if size > _ANSWER_MAX:
            raise ModelUnavailable("the provider's answer is too long")
    return b"".join(parts)
