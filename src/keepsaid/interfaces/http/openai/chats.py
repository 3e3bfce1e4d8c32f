"""Chats over the OpenAI protocol: a call becomes a message of its sender, and its answer is followed to the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import field, replace
from typing import NamedTuple

from starlette.requests import ClientDisconnect, Request

from keepsaid.app.instance import Instance
from keepsaid.domain import views
from keepsaid.domain.client_history import ClientCall
from keepsaid.domain.client_tools import CallOfClient
from keepsaid.domain.ids import show
from keepsaid.domain.message import Lane
from keepsaid.domain.principal import Principal
from keepsaid.domain.receipt import chosen_in, missing_in
from keepsaid.domain.turn import CUT, StepKind, Usage
from keepsaid.errors import InputError, KeyConflict, Stopping
from keepsaid.interfaces.http.bodies import run_on_reader
from keepsaid.interfaces.http.gate import KeyWatch
from keepsaid.interfaces.http.openai.chat_requests import ChatBody, Fields
from keepsaid.interfaces.http.openai.conversation import (
    answer_name,
    header_text,
    is_temporary,
    message_key,
    named_conversation,
)
from keepsaid.interfaces.http.responses import NotAnswered
from keepsaid.interfaces.http.sent_files import FILES, read_files, receive_with_files
from keepsaid.pipeline.prompt.client_parts import ClientContext
from keepsaid.services.inbox import SETTLED, AnswerProgress
from keepsaid.text.normal import cut
from keepsaid.values import frozen

_AGAIN = "the same call again gets the answer"
_OUTAGE_MS = 5_000
"""Milliseconds until the next try of a turn for which a client is kept waiting."""


class ChatSite(NamedTuple):
    """Where a call came in: its instance, its request, its caller; `stopping` is set when the server stops.

    `watch` checks that the key of the call is still let in.
    """

    instance: Instance
    request: Request
    who: Principal
    stopping: asyncio.Event
    watch: KeyWatch


NOTHING_ASKED = ChatBody(())
"""The request of a message that is only looked at."""


@frozen
class StoredCall:
    """A message that waits for its answer, or has it: of whom, in which lane, since when (milliseconds UTC)."""

    message_id: int
    lane: Lane
    at: int
    request: ChatBody = field(repr=False)

    @property
    def headers(self) -> Mapping[str, str]:
        """What every answer says of it in its headers."""
        named = {"X-Keepsaid-Message": show("message", self.message_id), "X-Keepsaid-Lane": header_text(self.lane.key)}
        if self.request.ignored:
            named["X-Keepsaid-Ignored"] = header_text(", ".join(self.request.ignored))
        return named


@frozen
class Answered:
    """How a message was answered: the text, "" for silence, the turn and what it cost.

    `missing` names what recall went without. `is_cut` says that the model ended at the limit of its tokens.
    """

    text: str
    story: views.Story
    usage: Usage = Usage()
    memories: int = 0
    is_cut: bool = False
    missing: tuple[str, ...] = ()

    @property
    def headers(self) -> Mapping[str, str]:
        """What an answer that is whole says of its turn."""
        if self.story.turn_id is None:
            return {}
        named = {"X-Keepsaid-Turn": show("turn", self.story.turn_id), "X-Keepsaid-Memories": str(self.memories)}
        if self.missing:
            named["X-Keepsaid-Degraded"] = header_text("; ".join(self.missing))
        return named


@frozen
class PendingCalls:
    """The calls that the client is to make before the answer comes, and what the model cost since its last calls."""

    calls: tuple[CallOfClient, ...]
    usage: Usage = Usage()


async def begin(site: ChatSite, wanted: ChatBody, call: ClientCall, *, goes_on: bool = False) -> StoredCall:
    """Put a call's message in, unless it is there already. Raises InputError, KeyConflict and StoreError.

    With `goes_on`, the client leaves the history of the conversation to the server.
    """
    instance, who = site.instance, site.who
    chats = instance.services.chats
    if wanted.results:
        return await _with_results(site, wanted, call)
    if wanted.instructions and instance.config.openai.client_instructions == "ignore":
        wanted = replace(wanted, instructions="", ignored=(*wanted.ignored, "instructions"))
    place = await (chats.goes_on if goes_on else chats.place)(who, call)
    if (stored := place.stored) is not None:
        return StoredCall(stored.id, stored.lane, stored.received_at, wanted)
    fields = {FILES: [part.as_field for part in wanted.parts]}
    sent = None
    if wanted.parts and place.repeats is None:
        sent = await run_on_reader(site.request, lambda _: read_files(fields, instance.config.files.bytes_max))
    named = {FILES: sent.named} if sent is not None else {}
    context = ClientContext(wanted.instructions, wanted.tools, wanted.tokens_max)
    inbound = await chats.inbound(who, place, context, named)
    files, contents = (sent.files, sent.contents) if sent is not None else ((), ())
    inbound = replace(inbound, files=files, incognito=call.temporary)
    await chats.leave_before(place, wanted.late_results)
    try:
        received = await receive_with_files(site.request, instance, inbound, contents)
    except KeyConflict as error:
        if not call.key:
            raise
        what = f"the name {cut(call.key, 80)!r} of this message was used before for another one"
        raise KeyConflict(what, safe=error.safe, hint=error.hint) from error
    return StoredCall(received.id, received.lane, instance.clock.now_ms(), wanted)


async def _with_results(site: ChatSite, wanted: ChatBody, call: ClientCall) -> StoredCall:
    """Go on with the turn that waits for the results of its client's tools. Raises InputError where none does."""
    chats = site.instance.services.chats
    stored = call.follows
    if stored is None and call.lines:
        # the same answer, whatever the client calls it: its tools belong to the newest
        stored = (await chats.place(site.who, replace(call, answer=""))).stored
    if stored is None and call.conversation:
        stored = await chats.last(site.who, call.conversation)
    if stored is None:
        ids = ", ".join(repr(cut(one.call_id, 80)) for one in wanted.results)
        raise InputError(f"no turn waits for the results of these calls: {ids}", safe="Nothing was changed.")
    await chats.deliver(stored.id, wanted.results, together=wanted.parallel)
    return StoredCall(stored.id, stored.lane, stored.received_at, wanted)


async def follow(site: ChatSite, chat: StoredCall) -> AsyncGenerator[AnswerProgress, None]:
    """What happens to a message until it is settled.

    Raises Stopping where the server stops before that, NotAnswered where the answer waits for the end of an outage or
    a pause, and the error of the gate where the key is not let in any more.
    """
    asking, over = site.instance.services.asking, site.stopping.is_set
    async with aclosing(asking.follow(chat.message_id, chat.lane, over)) as progress:
        async for one in progress:
            await site.watch.check()
            _check_not_held(one, site.instance.clock.due_ms())
            yield one
            if one.story.state in SETTLED:
                return
    raise Stopping("the server stops before the answer is there", safe="The message is stored.", hint=_AGAIN)


def _check_not_held(progress: AnswerProgress, now: int) -> None:
    """Raise NotAnswered where a client would wait for long, at `now` (milliseconds): its next call asks again."""
    if progress.kind == "waiting" and progress.paused:
        raise NotAnswered(f"the conversation is paused until a message says /resume; {_AGAIN} then")
    batch = progress.story.batch
    if batch is not None and batch.state == "queued" and batch.deferrals and batch.ready_at - now > _OUTAGE_MS:
        raise NotAnswered(f"the model does not answer now, and is asked again later; {_AGAIN} once it is there")


async def answer_of(instance: Instance, story: views.Story, request: ChatBody = NOTHING_ASKED) -> Answered:
    """The answer of a settled message, with the cost of its turn since the last calls of the request's tools.

    Raises NotAnswered where it waits for a person.
    """
    if story.state in ("review", "dead"):
        error = story.batch.error if story.batch is not None else ""
        raise NotAnswered(f"the message was not answered: {error or story.state}")
    text = "\n\n".join(reply.draft.text for reply in story.replies)
    turn = None if story.turn_id is None else await instance.operations.turn(story.turn_id)
    if turn is None:
        return Answered(text, story)
    usage = _usage_since_calls(turn, request) if request.tools else turn.usage
    last = next((step.output for step in reversed(turn.steps) if step.kind is StepKind.MODEL), None)
    is_cut = isinstance(last, dict) and last.get(CUT) is True
    return Answered(text, story, usage, len(chosen_in(turn.trace)), is_cut, missing_in(turn.trace))


def _usage_since_calls(turn: views.TurnStory, request: ChatBody) -> Usage:
    """What a turn cost after the last calls of its client that were made: each answer of a loop names its own part."""
    names, usage = {tool.name for tool in request.tools}, Usage()
    for step in turn.steps:
        made = step.kind is StepKind.TOOL and step.state == "finished" and step.subject in names
        usage = Usage() if made else usage + step.usage
    return usage


class CallWatch:
    """Looks for calls that a turn waits for its client to make: at once, and whenever progress may have led to some."""

    def __init__(self, site: ChatSite, chat: StoredCall) -> None:
        self._instance, self._chat = site.instance, chat
        self._looked = False

    async def after(self, progress: AnswerProgress) -> PendingCalls | None:
        """The calls that wait now, if there are any; one alone for a client that makes one at a time."""
        if self._looked and progress.kind not in ("tool", "silence"):
            return None
        self._looked = True
        if not (calls := await self._instance.services.chats.pending(self._chat.message_id)):
            return None
        request, story = self._chat.request, await self._instance.operations.story(self._chat.message_id)
        turn = None if story is None or story.turn_id is None else await self._instance.operations.turn(story.turn_id)
        usage = Usage() if turn is None else _usage_since_calls(turn, request)
        return PendingCalls(calls if request.parallel else calls[:1], usage)


async def whole_answer(site: ChatSite, chat: StoredCall) -> Answered | PendingCalls:
    """The answer once it is there, or the calls that the client is to make first.

    Raises ClientDisconnect if the client leaves before: then the answer waits for the next call.
    """
    watch = CallWatch(site, chat)
    async with aclosing(follow(site, chat)) as progress:
        async for one in progress:
            if one.story.state in SETTLED:
                return await answer_of(site.instance, one.story, chat.request)
            if (calls := await watch.after(one)) is not None:
                return calls
            if one.kind == "silence" and await site.request.is_disconnected():
                raise ClientDisconnect
    raise AssertionError("following ends with a settled message")


class AnswerPieces:
    """The pieces of one answer as a client got them, which cannot be taken back."""

    def __init__(self) -> None:
        self._sent = ""
        self._since = ""

    def piece(self, text: str) -> str:
        """A piece that the model wrote."""
        self._sent += text
        self._since += text
        return text

    def tool(self) -> None:
        """A tool runs: what the model wrote before does not belong to its answer."""
        self._since = ""

    def rest(self, answer: str) -> str:
        """What is missing once the answer is stored: all of it, on lines of its own, where another one was begun."""
        if answer.startswith(self._since) and (self._since or not self._sent):
            return answer[len(self._since) :]
        return f"\n\n{answer}" if answer and self._sent else answer


def call_of(site: ChatSite, wanted: ChatBody, fields: Fields, named: str = "") -> ClientCall:
    """The call of a request; `named` is the conversation that its body names. Raises BadParameter."""
    cached, settings = fields.get("prompt_cache_key"), site.instance.config.openai
    otherwise = cached if isinstance(cached, str) else ""
    conversation = named_conversation(site.request, settings, site.who, named, otherwise)
    speaker = site.who.sender if site.who.people else ""
    key, answer = message_key(site.request), answer_name(site.request)
    temporary = is_temporary(site.request, named)
    return ClientCall(wanted.lines, conversation, key, speaker=speaker, answer=answer, temporary=temporary)
