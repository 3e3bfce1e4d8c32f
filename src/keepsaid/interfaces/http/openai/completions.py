"""`POST /v1/chat/completions`: the agent as a model; its answer whole, or in pieces as the model writes it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from starlette.responses import JSONResponse, Response, StreamingResponse

from keepsaid.domain.client_tools import CallOfClient
from keepsaid.domain.ids import show
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.errors import KeepsaidError
from keepsaid.interfaces.http.openai import chats
from keepsaid.interfaces.http.openai.background import background_task, complete_in_background
from keepsaid.interfaces.http.openai.chat_requests import ChatBody, Fields, completion_request
from keepsaid.interfaces.http.openai.models import AGENT
from keepsaid.interfaces.http.openai.problems import error_body
from keepsaid.interfaces.http.responses import ConfirmedResponse
from keepsaid.services.inbox import SETTLED

STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_DONE = "data: [DONE]\n\n"
STILL_HERE_EACH = 10
"""Seconds of silence after which a comment is sent, so that nothing between here and the client gives up."""


async def complete(site: chats.ChatSite, fields: Fields) -> Response:
    """Answer the last message of a chat.

    The same call again returns the same answer. Raises InputError, NotFound for another model, NotAnswered.
    """
    wanted = completion_request(fields)
    if task := background_task(site, wanted):
        return _background_response(site, wanted, await complete_in_background(site, wanted, task))
    chat = await chats.begin(site, wanted, chats.call_of(site, wanted, fields))
    if wanted.stream:
        stream = _stream(site, chat)
        headers = {**chat.headers, **STREAM_HEADERS}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)
    answer = await chats.whole_answer(site, chat)
    message = {"role": "assistant", "content": None, "refusal": None}
    if isinstance(answer, chats.PendingCalls):
        choice = _choice({**message, "tool_calls": [_call(one) for one in answer.calls]}, "tool_calls")
        shape = {**_head(chat, "chat.completion"), "choices": [choice], "usage": _usage(answer.usage)}
        return JSONResponse(shape, headers=chat.headers)
    choice = _choice({**message, "content": answer.text}, _finish(answer))
    shape = {**_head(chat, "chat.completion"), "choices": [choice], "usage": _usage(answer.usage)}
    response = ConfirmedResponse(shape, partial(site.instance.services.asking.mark_seen, answer.story))
    response.headers.update({**chat.headers, **answer.headers})
    return response


def _background_response(site: chats.ChatSite, wanted: ChatBody, answer: ModelAnswer) -> Response:
    """The answer to a call that belongs to no conversation."""
    finish = "length" if answer.is_cut else "stop"
    head = {"id": "chatcmpl-background", "created": site.instance.clock.now_ms() // 1_000, "model": AGENT}
    if not wanted.stream:
        choice = _choice({"role": "assistant", "content": answer.text, "refusal": None}, finish)
        return JSONResponse({**head, "object": "chat.completion", "choices": [choice], "usage": _usage(answer.usage)})
    delta = {"index": 0, "delta": {"role": "assistant", "content": answer.text}, "finish_reason": finish}
    sent = [event({**head, "object": "chat.completion.chunk", "choices": [delta]})]
    if wanted.with_usage:
        sent.append(event({**head, "object": "chat.completion.chunk", "choices": [], "usage": _usage(answer.usage)}))
    return Response("".join([*sent, _DONE]), media_type="text/event-stream", headers=STREAM_HEADERS)


def _choice(message: Mapping[str, Any], finish: str) -> Mapping[str, Any]:
    return {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}


def _finish(answer: chats.Answered | chats.PendingCalls) -> str:
    """Why the model stopped, as the protocol calls it."""
    if isinstance(answer, chats.PendingCalls):
        return "tool_calls"
    return "length" if answer.is_cut else "stop"


def _call(call: CallOfClient) -> Mapping[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _head(chat: chats.StoredCall, kind: str) -> dict[str, Any]:
    number = show("message", chat.message_id).partition("_")[2]
    return {"id": f"chatcmpl-{number}", "object": kind, "created": chat.at // 1_000, "model": AGENT}


def _usage(usage: Usage) -> Mapping[str, int]:
    total = usage.tokens_in + usage.tokens_out
    return {"prompt_tokens": usage.tokens_in, "completion_tokens": usage.tokens_out, "total_tokens": total}


async def _stream(site: chats.ChatSite, chat: chats.StoredCall) -> AsyncIterator[str]:
    head = _head(chat, "chat.completion.chunk")
    if chat.request.with_usage:
        head["usage"] = None

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> str:
        return event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]})

    yield chunk({"role": "assistant", "content": ""})
    try:
        async with aclosing(pieces(site, chat)) as progress:
            async for one in progress:
                if isinstance(one, str):
                    yield chunk({"content": one}) if one else ": still here\n\n"
                    continue
                if isinstance(one, chats.PendingCalls):
                    yield chunk({"tool_calls": [{"index": n, **_call(call)} for n, call in enumerate(one.calls)]})
                yield chunk({}, _finish(one))
                if chat.request.with_usage:
                    yield event({**head, "choices": [], "usage": _usage(one.usage)})
                if isinstance(one, chats.Answered):
                    await site.instance.services.asking.mark_seen(one.story)
    except KeepsaidError as error:
        yield event(error_body(error))
    yield _DONE


async def pieces(
    site: chats.ChatSite, chat: chats.StoredCall
) -> AsyncGenerator[str | chats.Answered | chats.PendingCalls, None]:
    """The answer in pieces, "" for ten seconds of silence, and at last the whole or calls that the client is to make.

    Raises Stopping and NotAnswered.
    """
    sent, silent, watch = chats.AnswerPieces(), 0, chats.CallWatch(site, chat)
    async with aclosing(chats.follow(site, chat)) as progress:
        async for one in progress:
            silent = silent + 1 if one.kind == "silence" else 0
            if one.kind == "tool":
                sent.tool()
            if one.story.state in SETTLED:
                answer = await chats.answer_of(site.instance, one.story, chat.request)
                if rest := sent.rest(answer.text):
                    yield rest
                yield answer
            elif (calls := await watch.after(one)) is not None:
                yield calls
                return
            elif one.kind == "piece" and one.text:
                yield sent.piece(one.text)
            elif silent and silent % STILL_HERE_EACH == 0:
                yield ""


def event(data: object) -> str:
    """One server-sent event without a name."""
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"
