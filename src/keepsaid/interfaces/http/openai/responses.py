"""`/v1/responses`: the agent as a model, which keeps the history itself where a client leaves it to the server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from starlette.responses import JSONResponse, Response, StreamingResponse

from keepsaid.app.instance import Instance
from keepsaid.domain.client_history import ChainedMessage
from keepsaid.domain.client_tools import CallOfClient
from keepsaid.domain.ids import read, show
from keepsaid.domain.principal import Principal
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.errors import InputError, KeepsaidError
from keepsaid.interfaces.http.openai import chats
from keepsaid.interfaces.http.openai.background import background_task, complete_in_background
from keepsaid.interfaces.http.openai.chat_requests import ChatBody, Fields, response_request
from keepsaid.interfaces.http.openai.completions import STREAM_HEADERS, event, pieces
from keepsaid.interfaces.http.openai.models import AGENT
from keepsaid.interfaces.http.openai.problems import BadParameter, NoEarlierResponse
from keepsaid.interfaces.http.responses import ConfirmedResponse, NotFound
from keepsaid.services.inbox import SETTLED

_PREFIX = "resp_"


class _Named(NamedTuple):
    """What a response is called by, when it was asked for (milliseconds UTC), and its conversation, "" for none."""

    number: str
    at: int
    conversation: str
    parallel: bool

    @property
    def item_id(self) -> str:
        """The id of the message in it."""
        return f"item_{self.number}"

    @classmethod
    def of(cls, chat: chats.StoredCall) -> _Named:
        """The response to a message."""
        number = show("message", chat.message_id).partition("_")[2]
        return cls(number, chat.at, chat.lane.conversation, chat.request.parallel)


async def respond(site: chats.ChatSite, fields: Fields) -> Response:
    """Answer the input. With `conversation` or `previous_response_id` it goes on where that was.

    Raises InputError, NotFound for another model, NotAnswered.
    """
    wanted = response_request(fields)
    if task := background_task(site, wanted):
        return _background_response(site, wanted, await complete_in_background(site, wanted, task))
    named = _conversation(fields)
    call = chats.call_of(site, wanted, fields, named)
    if earlier := _text(fields, "previous_response_id"):
        if named:
            raise BadParameter("previous_response_id and conversation exclude each other: send one", "conversation")
        before = await _earlier(site, earlier)
        call = replace(call, conversation=before.lane.conversation, follows=before)
    chat = await chats.begin(site, wanted, call, goes_on=bool(named))
    shape = {**_head(_Named.of(chat)), "previous_response_id": earlier or None}
    if wanted.stream:
        stream = _stream(site, chat, shape)
        headers = {**chat.headers, **STREAM_HEADERS}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)
    answer = await chats.whole_answer(site, chat)
    if isinstance(answer, chats.PendingCalls):
        done = {"status": "completed", "output": [*map(_call, answer.calls)], "usage": _usage(answer.usage)}
        return JSONResponse({**shape, **done}, headers=chat.headers)
    response = ConfirmedResponse(
        {**shape, **_finished(_Named.of(chat), answer)}, partial(site.instance.services.asking.mark_seen, answer.story)
    )
    response.headers.update({**chat.headers, **answer.headers})
    return response


def _background_response(site: chats.ChatSite, wanted: ChatBody, answer: ModelAnswer) -> Response:
    """The answer to a call that belongs to no conversation; it cannot be fetched by its id."""
    named = _Named("background", site.instance.clock.now_ms(), "", wanted.parallel)
    shape = {**_head(named), "previous_response_id": None}
    if not wanted.stream:
        return JSONResponse({**shape, **_finished(named, answer)})
    events = _Events(named, shape)
    sent = [*events.begin(), *events.text(answer.text), *events.end(answer)]
    return Response("".join(sent), media_type="text/event-stream", headers=STREAM_HEADERS)


async def delete(instance: Instance, who: Principal, response_id: str) -> Response:
    """Delete a response, not the message that it answers. Raises NotFound, also for one that was deleted before."""
    try:
        await instance.services.chats.delete_response(who, _number(response_id))
    except InputError as error:
        raise NotFound(error.what) from error
    return JSONResponse({"id": response_id, "object": "response", "deleted": True})


async def fetch(instance: Instance, who: Principal, response_id: str) -> Response:
    """A response as it is now. Raises NotFound for one that was deleted or is of another conversation, NotAnswered."""
    message_id = _number(response_id)
    try:
        found = await instance.services.chats.message(who, message_id)
    except InputError as error:
        raise NotFound(error.what) from error
    story = await instance.services.asking.story(found.id)
    if story is None:
        raise NotFound("the response was forgotten, or is so old that it was pruned")
    chat = chats.StoredCall(found.id, found.lane, found.received_at, chats.NOTHING_ASKED)
    named = _Named.of(chat)
    if story.state not in SETTLED:
        return JSONResponse(_head(named))
    answer = await chats.answer_of(instance, story)
    done = partial(instance.services.asking.mark_seen, story)
    return ConfirmedResponse({**_head(named), **_finished(named, answer)}, done)


async def _earlier(site: chats.ChatSite, response_id: str) -> ChainedMessage:
    """The message of an earlier response. Raises NoEarlierResponse for one that this caller does not have."""
    try:
        return await site.instance.services.chats.message(site.who, _number(response_id))
    except (InputError, NotFound) as error:
        raise NoEarlierResponse(error.what) from error


def _conversation(fields: Fields) -> str:
    """The conversation that the body names: its id, or an object with one. Raises BadParameter."""
    given = fields.get("conversation")
    given = given.get("id") if isinstance(given, dict) else given
    if given is not None and not isinstance(given, str):
        raise BadParameter("conversation must be the name of one, or an object with its id", "conversation")
    return given or ""


def _text(fields: Fields, name: str) -> str:
    given = fields.get(name)
    if given is not None and not isinstance(given, str):
        raise BadParameter(f"{name} must be text", name)
    return given or ""


def _number(response_id: str) -> int:
    number = read("message", f"msg_{response_id.removeprefix(_PREFIX)}") if response_id.startswith(_PREFIX) else None
    if number is None:
        raise NotFound("there is no such response in a conversation of this key")
    return number


def _head(named: _Named) -> dict[str, Any]:
    """A response that is not there yet."""
    return {
        "id": f"{_PREFIX}{named.number}",
        "object": "response",
        "created_at": named.at // 1_000,
        "status": "in_progress",
        "model": AGENT,
        "output": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": named.parallel,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": None,
        "conversation": {"id": named.conversation} if named.conversation else None,
    }


def _item(named: _Named, text: str, status: str = "completed") -> dict[str, Any]:
    content = [] if status == "in_progress" else [_content(text)]
    return {"type": "message", "id": named.item_id, "status": status, "role": "assistant", "content": content}


def _call(call: CallOfClient) -> dict[str, Any]:
    named = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
    return {"type": "function_call", "id": f"fc_{call.id}", "status": "completed", **named}


def _content(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _finished(named: _Named, answer: chats.Answered | ModelAnswer) -> Mapping[str, Any]:
    status = "incomplete" if answer.is_cut else "completed"
    ended = {"incomplete_details": {"reason": "max_output_tokens"}} if answer.is_cut else {}
    return {"status": status, **ended, "output": [_item(named, answer.text, status)], "usage": _usage(answer.usage)}


def _usage(usage: Usage) -> Mapping[str, Any]:
    return {
        "input_tokens": usage.tokens_in,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.tokens_out,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.tokens_in + usage.tokens_out,
    }


class _Events:
    """The events of one stream, in order; the message of the answer is opened by its first text."""

    def __init__(self, named: _Named, shape: Mapping[str, Any]) -> None:
        self._number = 0
        self._named, self._shape = named, shape
        self._texts = list[str]()
        self._place = {"item_id": named.item_id, "output_index": 0, "content_index": 0}

    def make(self, kind: str, **fields: Any) -> str:
        """The next event."""
        shape = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return f"event: {kind}\n{event(shape)}"

    def begin(self) -> Iterator[str]:
        """The response exists."""
        yield self.make("response.created", response=self._shape)
        yield self.make("response.in_progress", response=self._shape)

    def text(self, piece: str) -> Iterator[str]:
        """A piece of the answer."""
        if not self._texts:
            yield self.make("response.output_item.added", output_index=0, item=_item(self._named, "", "in_progress"))
            yield self.make("response.content_part.added", **self._place, part=_content(""))
        self._texts.append(piece)
        yield self.make("response.output_text.delta", **self._place, delta=piece, logprobs=[])

    def end(self, done: chats.Answered | ModelAnswer | chats.PendingCalls) -> Iterator[str]:
        """The answer is whole, or the client is to make calls first."""
        output = list[dict[str, Any]]()
        if not isinstance(done, chats.PendingCalls) and not self._texts:
            yield from self.text("")
        if self._texts:
            whole = "".join(self._texts)
            is_cut = not isinstance(done, chats.PendingCalls) and done.is_cut
            output.append(_item(self._named, whole, "incomplete" if is_cut else "completed"))
            yield self.make("response.output_text.done", **self._place, text=whole, logprobs=[])
            yield self.make("response.content_part.done", **self._place, part=_content(whole))
            yield self.make("response.output_item.done", output_index=0, item=output[0])
        for call in done.calls if isinstance(done, chats.PendingCalls) else ():
            yield from self._call(call, len(output))
            output.append(_call(call))
        finished: Mapping[str, Any] = {"status": "completed", "usage": _usage(done.usage)}
        if not isinstance(done, chats.PendingCalls):
            finished = _finished(self._named, done)
        yield self.make(f"response.{finished['status']}", response={**self._shape, **finished, "output": output})

    def fail(self, error: KeepsaidError) -> str:
        """The answer does not come."""
        failure = {"code": "server_error", "message": f"{error.what} ({error.code})"}
        return self.make("response.failed", response={**self._shape, "status": "failed", "error": failure})

    def _call(self, call: CallOfClient, index: int) -> Iterator[str]:
        item = _call(call)
        place = {"item_id": item["id"], "output_index": index}
        begun = {**item, "arguments": "", "status": "in_progress"}
        yield self.make("response.output_item.added", output_index=index, item=begun)
        yield self.make("response.function_call_arguments.delta", **place, delta=call.arguments)
        yield self.make("response.function_call_arguments.done", **place, name=call.name, arguments=call.arguments)
        yield self.make("response.output_item.done", output_index=index, item=item)


async def _stream(site: chats.ChatSite, chat: chats.StoredCall, shape: Mapping[str, Any]) -> AsyncIterator[str]:
    events = _Events(_Named.of(chat), shape)
    for made in events.begin():
        yield made
    try:
        async with aclosing(pieces(site, chat)) as progress:
            async for one in progress:
                if isinstance(one, str):
                    for made in events.text(one) if one else [_STILL_HERE]:
                        yield made
                    continue
                if isinstance(one, chats.Answered):
                    await site.instance.services.asking.mark_seen(one.story)
                for made in events.end(one):
                    yield made
    except KeepsaidError as error:
        yield events.fail(error)


_STILL_HERE = ": still here\n\n"
