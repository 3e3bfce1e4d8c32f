"""Discord as a channel that answers: a reply is split into messages, each sent once the one before is.

A message is sent under a nonce. For some minutes Discord returns the first message to whoever sends the nonce again;
later, the channel is read for the message before it is sent again, marked.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from keepsaid.adapters.channels.abilities import DISCORD
from keepsaid.adapters.channels.discord_api import DiscordApi, DiscordRefused, DiscordUnreachable, refused, unreachable
from keepsaid.adapters.channels.discord_files import DiscordFiles
from keepsaid.adapters.channels.discord_markdown import REPEATED, discord_parts
from keepsaid.adapters.channels.discord_places import DiscordPlaces
from keepsaid.adapters.channels.discord_reactions import add_reaction
from keepsaid.adapters.channels.discord_updates import snowflake_at
from keepsaid.adapters.channels.discord_uploads import FILE, file_body, has_content, instead_of, plainer, upload_form
from keepsaid.adapters.channels.pace import SendingPace
from keepsaid.adapters.channels.sending import send_parts
from keepsaid.adapters.channels.uploads import GONE, UploadSource, no_uploads, upload_of
from keepsaid.domain.message import Attachment, Lane, topic_of
from keepsaid.domain.reply import Delivered, Sending, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.errors import FileRefused, ToolError
from keepsaid.ports.channel import ReactionTarget
from keepsaid.ports.runtime import Clock

NAME = "discord"
CHANNEL = "discord:"
"""How a conversation begins; after it comes the id of the channel."""

_NONCE_MS = int(DISCORD.keyed_s * 1_000)
"""Milliseconds after the first try in which Discord returns the first message of a nonce."""

_FIND_BEFORE_MS = 60_000
"""How much earlier than the first try a message is looked for: the clocks may differ."""

_PAGES_MAX, _PAGE = 5, 100
_SENT_KEPT = 2_000
"""Messages that are known to be other parts, and are not taken for the one that is looked for."""

_SUPPRESS_EMBEDS = 4
_SHOWN_WITHIN_S = 5.0
_INLINE_CHARS_MAX = 4_096
"""A longer text is read and split in a thread, so that it does not hold up the event loop."""

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class DiscordChannel:
    """Sends by one bot; `account` is its id, `uploads` reads files."""

    name = NAME
    sending = Sending.PUSH
    abilities = DISCORD

    typing_ms = int(DISCORD.typing_s * 1_000)

    def __init__(
        self,
        api: DiscordApi,
        pace: SendingPace,
        places: DiscordPlaces,
        clock: Clock,
        uploads: UploadSource = no_uploads,
    ) -> None:
        self._api = api
        self._files = DiscordFiles(api)
        self._pace = pace
        self.account = places.bot
        self._places = places
        self._clock = clock
        self._uploads = uploads
        self._known: deque[str] = deque(maxlen=_SENT_KEPT)

    async def send(self, reply: StoredReply) -> SendResult:
        """Send all parts at once, for what is only tried; never raises."""
        return await send_parts(self, reply)

    async def split(self, reply: StoredReply) -> Sequence[str]:
        """Each part as the parameters of a message, in JSON; that of a file names it."""
        is_direct = self._places.is_direct(place_of_lane(reply.lane))
        if len(reply.draft.text) > _INLINE_CHARS_MAX:
            return await asyncio.to_thread(message_bodies, reply, is_direct=is_direct)
        return message_bodies(reply, is_direct=is_direct)

    async def send_part(self, reply: StoredReply, part: ReplyPart) -> SendResult:
        """Send a part once; never raises."""
        if reply.lane.account != self.account:
            return SendResult(Delivered.REFUSED, f"the bot {reply.lane.account} is not set up here any more")
        place = place_of_lane(reply.lane)
        if not place.isdecimal():
            return SendResult(Delivered.DEAD, f"{reply.lane.conversation} is not a channel of Discord")
        if (held_ms := await self._pace.enter(place)) is not None:
            return SendResult(Delivered.RETRY, "the rate limit is reached", retry_after_ms=held_ms, outage=True)
        message = json.loads(part.body)
        try:
            if part.possible_duplicate and self._clock.due_ms() - _first_try(reply) > _NONCE_MS:
                if (found := await self._find(reply, place, message)) is not None:
                    return SendResult(Delivered.CONFIRMED, "an earlier try arrived", self._sent(found))
                message["content"] = f"{REPEATED}{message['content']}"
        except (DiscordUnreachable, DiscordRefused) as error:
            return _unread(error)
        try:
            return await self._post(reply, place, {**message, "nonce": nonce_of(part), "enforce_nonce": True})
        except DiscordUnreachable as error:
            return unreachable(error)
        except DiscordRefused as error:
            return refused(error)

    def fetch(self, account: str, file: Attachment) -> AsyncGenerator[bytes, None]:
        """The bytes of a file that came with a message to this bot."""
        if account != self.account:
            raise FileRefused(f"the bot {account} is not set up here any more")
        return self._files.fetch(file)

    async def show_typing(self, lane: Lane) -> bool:
        """Show for some seconds that the bot types; never raises."""
        place = place_of_lane(lane)
        if lane.account != self.account or not place.isdecimal():
            return False
        try:
            await self._api.call("POST", f"/channels/{place}/typing", {}, _SHOWN_WITHIN_S)
        except DiscordUnreachable:
            return True
        except DiscordRefused as error:
            return error.status == 429
        return True

    async def show_draft(self, lane: Lane, number: int, text: str) -> bool:  # noqa: ARG002 - the protocol's signature
        """Show nothing: Discord has no drafts, and a real message would have to be delivered as one."""
        return False

    async def react(self, lane: Lane, target: ReactionTarget, emoji: str) -> None:
        """Give a message of the lane an emoji; raises ToolError."""
        place = place_of_lane(lane)
        if lane.account != self.account:
            raise ToolError(f"the bot {lane.account} is not set up here any more")
        if not place.isdecimal() or not target.provider_id.isdecimal():
            raise ToolError("that message cannot get a reaction: it is not one of Discord")
        await add_reaction(self._api, place, target.provider_id, emoji)

    async def close(self) -> None:
        await self._files.close()
        await self._api.close()

    async def _post(self, reply: StoredReply, place: str, message: dict[str, Any]) -> SendResult:
        """Send a message, plainer where Discord refuses how it is made."""
        detail = ""
        while True:
            try:
                made = await self._create(reply, f"/channels/{place}/messages", message)
            except DiscordRefused as error:
                if (other := plainer(message, error)) is None:
                    raise
                message, detail = other
            else:
                number = made.get("id") if isinstance(made, dict) else None
                return SendResult(Delivered.CONFIRMED, detail, self._sent(number))

    async def _create(self, reply: StoredReply, path: str, message: Mapping[str, Any]) -> object:
        """Send a text, or a file; words in its place once it is not kept any more."""
        if FILE not in message:
            return await self._api.call("POST", path, message)
        if (file := await upload_of(self._uploads, reply, message[FILE])) is None:
            return await self._api.call("POST", path, instead_of(message, GONE))
        return await self._api.upload(path, await asyncio.to_thread(upload_form, message, file))

    def _sent(self, number: object) -> str | None:
        if not isinstance(number, str):
            return None
        self._known.append(number)
        return number

    async def _find(self, reply: StoredReply, place: str, message: Mapping[str, object]) -> str | None:
        """The id of a message that an earlier try sent; None if there is none, or the bot may not read there."""
        after = snowflake_at(_first_try(reply) - _FIND_BEFORE_MS)
        if (answered := reply.draft.reply_to) is not None and answered.isdecimal():
            after = max(after, int(answered))
        for _ in range(_PAGES_MAX):
            try:
                page = await self._api.get(f"/channels/{place}/messages?after={after}&limit={_PAGE}")
            except DiscordRefused as error:
                if error.status == 403:
                    return None
                raise
            found = [one for one in page if isinstance(one, dict)] if isinstance(page, list) else []
            ids = [int(one["id"]) for one in found if str(one.get("id")).isdecimal()]
            ours = (str(one.get("id")) for one in reversed(found) if self._is_ours(one, message))
            if (number := next((one for one in ours if one not in self._known), None)) is not None:
                return number
            if len(found) < _PAGE or not ids:
                return None
            after = max(ids)
        return None

    def _is_ours(self, told: Mapping[str, Any], message: Mapping[str, Any]) -> bool:
        """Whether a message is by the bot, has this content, perhaps marked, and answers no other message."""
        author = told.get("author")
        if not isinstance(author, dict) or str(author.get("id")) != self.account:
            return False
        if not has_content(told, message):
            return False
        answered, expected = (one.get("message_reference") or {} for one in (told, message))
        return not answered or answered.get("message_id") == expected.get("message_id")


def message_bodies(reply: StoredReply, *, is_direct: bool) -> Sequence[str]:
    """The parameters of the messages of a reply, in JSON: the first answers a message, except in direct ones."""
    has_words = bool(reply.draft.text.strip()) or not reply.files
    given: list[dict[str, object]] = [{"content": one} for one in discord_parts(reply.draft.text)] if has_words else []
    given += map(file_body, reply.files)
    bodies: list[str] = []
    for one in given:
        message = {**one, "allowed_mentions": {"parse": []}, "flags": _SUPPRESS_EMBEDS}
        answered = reply.draft.reply_to
        if not bodies and answered and answered.isdecimal() and not is_direct:
            message["message_reference"] = {"message_id": answered, "fail_if_not_exists": False}
        bodies.append(json.dumps(message))
    return bodies


def place_of_lane(lane: Lane) -> str:
    """The id of the thread of a lane, or of its channel."""
    return topic_of(lane) or lane.conversation.removeprefix(CHANNEL)


def nonce_of(part: ReplyPart) -> str:
    """The nonce of a part, at most 25 characters: `k`, the id of the reply in base 36, and the number of the part."""
    digits, left = "", part.reply_id
    while left:
        left, digit = divmod(left, 36)
        digits = _DIGITS[digit] + digits
    return f"k{digits or '0'}.{part.n}"


def _first_try(reply: StoredReply) -> int:
    """When the first try to send a reply began, milliseconds UTC."""
    return reply.tried_from or reply.created_at


def _unread(error: DiscordRefused | DiscordUnreachable) -> SendResult:
    """The result of a try that could not read whether an earlier one arrived: nothing was sent now."""
    if isinstance(error, DiscordRefused):
        result = refused(error)
        if result.outcome is not Delivered.DOUBT:
            return result
    return SendResult(Delivered.RETRY, f"whether it arrived could not be read: {error}", outage=True)
