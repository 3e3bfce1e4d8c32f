"""Chats of clients that keep the history themselves: where a call belongs, and the message that it puts in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from keepsaid.domain import event
from keepsaid.domain.client_history import (
    CHAIN_MAX,
    ChainedMessage,
    ClientCall,
    HistoryLine,
    KnownMessages,
    Placement,
    is_answer_shown,
    placement,
    shown_answer,
)
from keepsaid.domain.client_tools import CallOfClient, ResultOfClient
from keepsaid.domain.commits import Tell
from keepsaid.domain.ids import show
from keepsaid.domain.message import Content, Inbound, ProviderMarks
from keepsaid.domain.principal import Principal
from keepsaid.domain.process import ENDLESSLY, Note
from keepsaid.domain.quotation import FIELD as QUOTED
from keepsaid.domain.regeneration import FIELD as ANSWERED
from keepsaid.domain.regeneration import REGENERATE, answered_by
from keepsaid.domain.turn import Usage
from keepsaid.errors import InputError
from keepsaid.pipeline.prompt.client_parts import ClientContext, ClientParts
from keepsaid.pipeline.tools.client import ClientTools
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import Store
from keepsaid.text.normal import normalise

_UNSEEN_CHARS_MAX = 8_000
_COMPARED_MAX = 10
"""Answers to one message that are compared with what a client shows."""

_EDITED = "the client shows another answer than ours, and ours is kept"


class ChatService:
    """Places the calls of clients among what is stored."""

    def __init__(self, store: Store, clock: Clock, tools: ClientTools | None) -> None:
        self._store = store
        self._clock = clock
        self._parts = ClientParts(store, clock)
        self._tools = tools

    async def place(self, who: Principal, call: ClientCall) -> Placement:
        """Where a call belongs; the same call again is that of the message that is stored already."""
        here = who.channel, who.name, call.conversation
        histories, chain = self._store.histories, call.chain
        newest = await histories.newest(here) if call.conversation else None
        known = list(await histories.chained(here, chain[-CHAIN_MAX:]))
        last = next((one for one in known if one.place == chain[-1]), None)
        if last is None:
            known, edited = await self._as_shown(call, known)
            return replace(placement(call, KnownMessages(known, newest), self._clock.now_ms()), edited=edited)
        if len(call.lines) == 1:
            known = [replace(last, is_fetched=await self._is_fetched(last.id))]
        versions = await histories.versions(last.lane[:3], chain[-1]) if call.answer else ()
        if call.answer and not call.conversation:
            # another answer belongs to the conversation of the message, whatever other chats begin alike
            known = [last, *await histories.chained(last.lane[:3], chain[-CHAIN_MAX:-1])]
        return placement(call, KnownMessages(known, newest, versions), self._clock.now_ms())

    async def _as_shown(
        self, call: ClientCall, known: list[ChainedMessage]
    ) -> tuple[list[ChainedMessage], ChainedMessage | None]:
        """The known messages, the last of them with the answer that the client shows, if it has several.

        And that message, if the client shows an answer that is none of ours.
        """
        if (shown := shown_answer(call, known)) is None:
            return known, None
        (before, text), is_answered = shown, False
        for one in (await self._store.histories.versions(before.lane[:3], before.place))[:_COMPARED_MAX]:
            answer = await self._answer_to(one.id)
            if answer and is_answer_shown(text, answer):
                return [one if each.id == before.id else each for each in known], None
            is_answered = is_answered or bool(answer)
        return known, before if is_answered else None

    async def goes_on(self, who: Principal, call: ClientCall) -> Placement:
        """Where a call belongs whose client leaves the history to the server, and names the conversation alone.

        The text of its last message again is the same call until the answer was fetched.
        """
        last = await self._store.histories.newest((who.channel, who.name, call.conversation))
        if last is None:
            return await self.place(who, call)
        if await self._repeats(last, call):
            return Placement(last)
        return await self.place(who, replace(call, follows=last))

    async def message(self, who: Principal, message_id: int) -> ChainedMessage:
        """A message of a conversation of the caller, said by it, whose response was not deleted.

        Raises InputError for any other.
        """
        found = await self._store.histories.chained_one(message_id, who.channel, who.name)
        story = None if found is None else await self._store.story(message_id)
        is_own = story is not None and story.message.inbound.origin.sender == who.sender
        if found is None or not is_own or await self._store.note(_deleted(message_id), self._clock.now_ms()):
            raise InputError("there is no such response in a conversation of this key", safe="Nothing was stored.")
        return found

    async def delete_response(self, who: Principal, message_id: int) -> None:
        """Let a message of the caller be found as a response no more; it and its answer stay in the conversation.

        Raises InputError for any other message, and for one whose response was deleted before.
        """
        await self.message(who, message_id)
        now = self._clock.now_ms()
        await self._store.apply(Note(_deleted(message_id), str(now), ENDLESSLY, now))

    async def inbound(
        self, who: Principal, place: Placement, sent: ClientContext, files: Mapping[str, object]
    ) -> Inbound:
        """The message that a call puts in; `files` are the fields that name what comes with it."""
        body: dict[str, object] = {**files, **await self._parts.keep(sent)}
        kind, placing = "", tuple[tuple[int, str], ...]()
        if (last := place.repeats) is None:
            body["text"] = place.text
        else:
            kind, body[ANSWERED] = REGENERATE, await self._said_at(last)
            asks = f"it asks for another answer to {show('message', last.id)}"
            placing = ((0, asks), (last.id, f"replaced: another answer was asked for, in the lane of {place.topic}"))
        if (edited := place.edited) is not None:
            placing = tuple((number, f"client edited: {_EDITED}") for number in (0, edited.id))
        if place.unseen:
            body[QUOTED] = _as_text(place.unseen)
        payload = json.dumps(body, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")
        return Inbound(
            who.origin(place.conversation),
            Content(payload, place.text, kind),
            ProviderMarks(place.key, place.place),
            topic=place.topic or None,
            forks_after=place.after,
            whole=True,
            placing=placing,
        )

    async def last(self, who: Principal, conversation: str) -> ChainedMessage:
        """The last message of a conversation of the caller. Raises InputError where there is none."""
        found = await self._store.histories.newest((who.channel, who.name, conversation))
        if found is None:
            raise InputError("nothing was said in this conversation yet", safe="Nothing was stored.")
        return found

    async def deliver(self, message_id: int, results: Sequence[ResultOfClient], *, together: bool = True) -> None:
        """Take in what the client's tools returned for a message's turn: of calls made `together` all or none.

        Raises InputError where none waits for one of them, or some are missing.
        """
        if self._tools is not None:
            await self._tools.deliver(message_id, results, together=together)

    async def leave_before(self, place: Placement, results: Sequence[ResultOfClient]) -> None:
        """Let the turn before a new message end, if it waits for tools of the client, which goes on without waiting.

        `results` are those that the client has nevertheless. Otherwise the new message would wait behind that turn.
        A message that came under the same key keeps its turn.
        """
        if self._tools is not None and place.behind is not None and place.behind.key != place.key:
            await self._tools.leave(place.behind.id, results)

    async def pending(self, message_id: int) -> tuple[CallOfClient, ...]:
        """The calls that a message's turn waits for its client to make."""
        return () if self._tools is None else await self._tools.pending(message_id)

    async def note_background(self, who: Principal, task: str, usage: Usage) -> None:
        """Write to the journal that a background call of the caller was answered. Raises StoreError."""
        fact = event.answered_in_background(who.name, task, usage)
        payload = json.dumps(dict(fact.payload))
        await self._store.apply(Tell(fact.topic, payload, self._clock.now_ms(), fact.about))

    async def _said_at(self, last: ChainedMessage) -> int:
        """The message that has the words of one which may be a request for another answer itself."""
        story = await self._store.story(last.id)
        return (None if story is None else answered_by(story.message)) or last.id

    async def _answer_to(self, message_id: int) -> str:
        story = await self._store.story(message_id)
        return "" if story is None else "\n\n".join(reply.draft.text for reply in story.replies)

    async def _is_fetched(self, message_id: int) -> bool:
        story = await self._store.story(message_id)
        return story is not None and any(reply.state == "sent" for reply in story.replies)

    async def _repeats(self, last: ChainedMessage, call: ClientCall) -> bool:
        if call.key:
            return last.said_key == call.stored_key
        story = await self._store.story(last.id)
        said = " ".join(call.lines[-1].text.split())
        is_same = story is not None and " ".join(story.message.text.split()) == normalise(said)
        return is_same and not await self._is_fetched(last.id)


def _deleted(message_id: int) -> str:
    return f"client-deleted:{message_id}"


def _as_text(lines: Sequence[HistoryLine]) -> str:
    """What a client showed before, which is stored nowhere: the newest of it."""
    return "\n".join(f"{line.side}: {line.text}" for line in lines)[-_UNSEEN_CHARS_MAX:]
