"""Matrix as a channel that answers: a reply is split into messages, each sent once the one before is.

A message is sent under a transaction id, which belongs to the device of the token: for some time the server answers the
same request again with the first event. Later, or from another device, the room is read for the message before it is
sent again, marked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from keepsaid.adapters.channels.abilities import MATRIX
from keepsaid.adapters.channels.matrix.api import MatrixRefused, MatrixUnreachable, path_of, refused, unreachable
from keepsaid.adapters.channels.matrix.events import MESSAGE, ROOM, THREAD
from keepsaid.adapters.channels.matrix.find import KEY, find_sent
from keepsaid.adapters.channels.matrix.html import MatrixText, html_of, matrix_texts
from keepsaid.adapters.channels.matrix.line import MatrixAccount
from keepsaid.adapters.channels.matrix.reactions import reason_of, send_reaction
from keepsaid.adapters.channels.matrix.updates import NAME
from keepsaid.adapters.channels.pace import SendingPace
from keepsaid.adapters.channels.sending import send_parts
from keepsaid.domain.message import Attachment, Lane, topic_of
from keepsaid.domain.reply import Delivered, Sending, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.errors import FileRefused, FileUnavailable, ToolError
from keepsaid.ports.channel import ReactionTarget
from keepsaid.ports.runtime import Clock
from keepsaid.text.emoji import is_emoji

REPEATED: Final = "(may be a repeat)\n"
_TRANSACTION_MS = int(MATRIX.keyed_s * 1_000)
"""Milliseconds after the first try in which a server returns the first event of a transaction."""

_INLINE_CHARS_MAX = 4_096
"""A longer text is read and split in a thread, so that it does not hold up the event loop."""

_SHOWN_WITHIN_S = 5.0
_TYPING_MS = 30_000
_ENCRYPTED = "the room is encrypted, and nothing is sent there as plain text"


class MatrixChannel:
    """Sends by one account."""

    name = NAME
    sending = Sending.PUSH
    abilities = MATRIX

    typing_ms = int(MATRIX.typing_s * 1_000)

    def __init__(self, account: MatrixAccount, pace: SendingPace, clock: Clock) -> None:
        self._bot = account
        self._api = account.api
        self._pace = pace
        self._clock = clock

    @property
    def account(self) -> str:
        """The user id of the account; "" until it is known."""
        return self._bot.id

    async def send(self, reply: StoredReply) -> SendResult:
        """Send all parts at once, for what is only tried; never raises."""
        return await send_parts(self, reply)

    async def split(self, reply: StoredReply) -> Sequence[str]:
        """Each part as its room, the device that is to send it, and the content of its event, in JSON."""
        device, is_direct = "", False
        try:
            user = await self._bot.user()
            device, is_direct = user.device, (await self._bot.rooms.place(_room_of(reply.lane), None, user)).direct
        except (MatrixRefused, MatrixUnreachable):
            pass  # what is not known now is looked up when it is sent: without a device, a repeat is marked
        if len(reply.draft.text) > _INLINE_CHARS_MAX:
            return await asyncio.to_thread(part_bodies, reply, device, is_direct=is_direct)
        return part_bodies(reply, device, is_direct=is_direct)

    async def send_part(self, reply: StoredReply, part: ReplyPart) -> SendResult:
        """Send a part once, unless it is found in its room; never raises."""
        room, sent_by = _room_of(reply.lane), json.loads(part.body)
        if not room.startswith("!"):
            return SendResult(Delivered.DEAD, f"{reply.lane.conversation} is not a room of Matrix")
        content, note = sent_by["content"], ""
        try:
            user = await self._bot.user()
            if reply.lane.account != user.id:
                return SendResult(Delivered.REFUSED, f"the account {reply.lane.account} is not set up here any more")
            if (held_ms := await self._pace.enter(room)) is not None:
                return SendResult(Delivered.RETRY, "the rate limit is reached", retry_after_ms=held_ms, outage=True)
            if await self._bot.rooms.is_encrypted(room):
                return SendResult(Delivered.DEAD, f"{_ENCRYPTED}; nothing is sent elsewhere")
            if part.possible_duplicate and not self._is_remembered(reply, sent_by.get("device"), user.device):
                found, note = await self._find(reply, part, room)
                if found is not None:
                    return SendResult(Delivered.CONFIRMED, "an earlier try arrived", found)
                content = _marked(content)
        except MatrixUnreachable as error:
            return SendResult(Delivered.RETRY, f"not sent: {error}", outage=True)
        except MatrixRefused as error:
            return self._not_sent(error)
        result = await self._put(room, part.key, content)
        return replace(result, detail="; ".join(filter(None, (result.detail, note))))

    async def fetch(self, account: str, file: Attachment) -> AsyncGenerator[bytes, None]:
        """The bytes of a file that came with a message to this account."""
        try:
            user = await self._bot.user()
        except MatrixUnreachable:
            raise FileUnavailable("the homeserver cannot be reached") from None
        except MatrixRefused as error:
            wait_s = None if error.retry_after_ms is None else error.retry_after_ms / 1_000
            raise FileUnavailable(f"the homeserver does not say whose the token is: {error}", wait_s) from None
        if account != user.id:
            raise FileRefused(f"the account {account} is not set up here any more")
        async with aclosing(self._api.fetch(file)) as pieces:
            async for piece in pieces:
                yield piece

    async def show_typing(self, lane: Lane) -> bool:
        """Show for half a minute that the account types; never raises."""
        room = _room_of(lane)
        if not self.account or lane.account != self.account or not room.startswith("!"):
            return False
        path = path_of("rooms", room, "typing", self.account)
        try:
            await self._api.call("PUT", path, {"typing": True, "timeout": _TYPING_MS}, timeout_s=_SHOWN_WITHIN_S)
        except MatrixUnreachable:
            return True
        except MatrixRefused as error:
            return error.passes
        return True

    async def show_draft(self, lane: Lane, number: int, text: str) -> bool:  # noqa: ARG002 - the port's signature
        """Show nothing: at Matrix an unfinished answer would be a message."""
        return False

    async def react(self, lane: Lane, target: ReactionTarget, emoji: str) -> None:
        """Give an event of the room an emoji; raises ToolError."""
        room = _room_of(lane)
        if not room.startswith("!") or not target.provider_id.startswith("$"):
            raise ToolError("that message cannot get a reaction: it is not an event of a room of Matrix")
        if not is_emoji(emoji):
            raise ToolError("emoji must be one emoji of Unicode")
        try:
            user, is_encrypted = await self._bot.user(), await self._bot.rooms.is_encrypted(room)
        except MatrixUnreachable:
            raise ToolError("the homeserver does not answer; nothing was done") from None
        except MatrixRefused as error:
            raise ToolError(reason_of(error)) from None
        if lane.account != user.id:
            raise ToolError(f"the account {lane.account} is not set up here any more")
        if is_encrypted:
            raise ToolError(_ENCRYPTED)
        if await self._pace.enter(room) is not None:
            raise ToolError("the rate limit of this room is reached; nothing was done")
        await send_reaction(self._api, room, target.provider_id, emoji)

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    def _is_remembered(self, reply: StoredReply, device: object, device_now: str) -> bool:
        """Whether the server still knows the transaction of the first try to send a reply."""
        first = reply.tried_from or reply.created_at
        return bool(device) and device == device_now and self._clock.due_ms() - first <= _TRANSACTION_MS

    async def _find(self, reply: StoredReply, part: ReplyPart, room: str) -> tuple[str | None, str]:
        """The event of a part that arrived, or why nobody could look. Raises MatrixRefused and MatrixUnreachable."""
        first = reply.tried_from or reply.created_at
        try:
            return await find_sent(self._api, room, self.account, part.key, first), ""
        except MatrixRefused as error:
            if error.passes:
                raise
            return None, f"nobody could look whether it had arrived: {error}"

    def _not_sent(self, error: MatrixRefused) -> SendResult:
        """The result of a try in which something was looked up in vain; the message itself was not sent."""
        result = self._refused(error)
        if result.outcome is Delivered.DEAD:
            return result
        return replace(result, outcome=Delivered.RETRY, outage=True)

    def _refused(self, error: MatrixRefused) -> SendResult:
        """The result of a refusal; a rate limit holds the whole account, as servers count by user."""
        result = refused(error)
        if error.is_throttled and result.retry_after_ms is not None:
            self._pace.hold("", result.retry_after_ms)
        if error.is_bad_token:
            self._bot.forget()
        return result

    async def _put(self, room: str, key: str, content: Mapping[str, object]) -> SendResult:
        """Send a message under its key; as plain text where the server refuses its form."""
        detail = ""
        path = path_of("rooms", room, "send", MESSAGE, key)
        while True:
            try:
                made = await self._api.call("PUT", path, content)
            except MatrixUnreachable as error:
                return unreachable(error)
            except MatrixRefused as error:
                if error.is_format and not detail and len(plain := _plain(content)) < len(content):
                    detail, content = f"sent as plain text: {error}", plain
                    continue
                return self._refused(error)
            number = made.get("event_id")
            if not isinstance(number, str):
                return SendResult(Delivered.DOUBT, "the homeserver names no event")
            return SendResult(Delivered.CONFIRMED, detail, number)


def part_bodies(reply: StoredReply, device: str, *, is_direct: bool) -> Sequence[str]:
    """The parts of a reply in JSON: in the thread of its lane; elsewhere the first answers a message, if not direct."""
    room, thread, answered = _room_of(reply.lane), topic_of(reply.lane), reply.draft.reply_to
    answered = answered if answered is not None and answered.startswith("$") else None
    bodies: list[str] = []
    for n, text in enumerate(matrix_texts(reply.draft.text)):
        content: dict[str, object] = {**_words(text), KEY: ReplyPart(reply.id, n, "").key}
        if thread is not None:
            related = {"rel_type": THREAD, "event_id": thread, "is_falling_back": True}
            content["m.relates_to"] = {**related, "m.in_reply_to": {"event_id": answered or thread}}
        elif answered is not None and n == 0 and not is_direct:
            content["m.relates_to"] = {"m.in_reply_to": {"event_id": answered}}
        bodies.append(json.dumps({"room": room, "device": device, "content": content}))
    return bodies


def _words(text: MatrixText) -> dict[str, object]:
    """The text in the content of a message. The empty `m.mentions` says that nobody is mentioned, nor the room."""
    content: dict[str, object] = {"msgtype": "m.text", "body": text.body, "m.mentions": {}}
    if text.html:
        content |= {"format": "org.matrix.custom.html", "formatted_body": text.html}
    return content


def _marked(content: Mapping[str, object]) -> dict[str, object]:
    """A content that says that it may be a repeat."""
    marked = {**content, "body": f"{REPEATED}{content['body']}"}
    if "formatted_body" in content:
        marked["formatted_body"] = f"{html_of(REPEATED)}{content['formatted_body']}"
    return marked


def _plain(content: Mapping[str, object]) -> dict[str, object]:
    """A content without HTML, and outside of a thread without the message it answers."""
    related = content.get("m.relates_to")
    dropped = {"format", "formatted_body"}
    if isinstance(related, Mapping) and related.get("rel_type") != THREAD:
        dropped.add("m.relates_to")
    return {name: one for name, one in content.items() if name not in dropped}


def _room_of(lane: Lane) -> str:
    """The id of the room of a lane."""
    return lane.conversation.removeprefix(ROOM)
