"""Telegram as a channel that answers: a reply is split into messages with entities, each sent once the one before is.

Without an answer nobody knows whether a message arrived, and nothing can be read back: it is sent again, and says so.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence

from keepsaid.adapters.channels.abilities import TELEGRAM
from keepsaid.adapters.channels.markdown import read_markdown
from keepsaid.adapters.channels.pace import SendingPace
from keepsaid.adapters.channels.sending import send_parts
from keepsaid.adapters.channels.telegram_api import (
    TelegramRefused,
    TelegramUnreachable,
    refused,
    unreachable,
    wait_ms,
)
from keepsaid.adapters.channels.telegram_line import TelegramAccount
from keepsaid.adapters.channels.telegram_reactions import set_reaction
from keepsaid.adapters.channels.telegram_updates import CHAT, IN_CHAT
from keepsaid.adapters.channels.telegram_uploads import FILE, field_of, file_body, instead_of, parameters_of, plainer
from keepsaid.adapters.channels.uploads import GONE, UploadSource, no_uploads, upload_of
from keepsaid.domain.message import Attachment, Lane, topic_of
from keepsaid.domain.reply import Delivered, Sending, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.errors import FileRefused, StoreError, ToolError
from keepsaid.ports.channel import ReactionTarget
from keepsaid.text.styled import PartLimits, Style, StyledText, split, utf16_units

NAME = "telegram"

_log = logging.getLogger("keepsaid.telegram")

_REPEATED = "(may be a repeat)\n"
_UNITS_MAX, _ENTITIES_MAX = TELEGRAM.chars_max - len(_REPEATED), 100
"""What one message takes, with room for the line that marks a repeat."""

_LIMITS = PartLimits(_UNITS_MAX, _ENTITIES_MAX, utf16_units)
_SHOWN_WITHIN_S = 5.0
_GENERAL = "1"
"""The topic of a forum that is named in no message that is sent there."""

_ENTITIES: Mapping[Style, str] = {
    Style.BOLD: "bold",
    Style.ITALIC: "italic",
    Style.STRIKE: "strikethrough",
    Style.CODE: "code",
    Style.BLOCK: "pre",
    Style.LINK: "text_link",
    Style.QUOTE: "blockquote",
}
_LINKED = ("http://", "https://", "tg://", "mailto:")
_INLINE_CHARS_MAX = 4_096
"""A longer text is read and split in a thread, so that it does not hold up the event loop."""


class TelegramChannel:
    """Sends by one bot; `drafts` says whether an answer is shown while it is written, `uploads` reads files."""

    name = NAME
    sending = Sending.PUSH
    abilities = TELEGRAM

    typing_ms = int(TELEGRAM.typing_s * 1_000)

    def __init__(
        self, bot: TelegramAccount, pace: SendingPace, uploads: UploadSource = no_uploads, *, drafts: bool = True
    ) -> None:
        self._api = bot.api
        self._bot = bot
        self._drafts = drafts
        self._pace = pace
        self._uploads = uploads
        self.account = bot.id

    async def send(self, reply: StoredReply) -> SendResult:
        """Send all parts at once, for what is only tried; never raises."""
        return await send_parts(self, reply)

    async def split(self, reply: StoredReply) -> Sequence[str]:
        """Each part as the parameters of `sendMessage`, in JSON; that of a file names it, and how it is sent."""
        if len(reply.draft.text) > _INLINE_CHARS_MAX:
            return await asyncio.to_thread(parts_of, reply)
        return parts_of(reply)

    async def send_part(self, reply: StoredReply, part: ReplyPart) -> SendResult:
        """Send a part once; never raises."""
        if reply.lane.account != self.account:
            return SendResult(Delivered.REFUSED, f"the bot {reply.lane.account} is not set up here any more")
        chat = reply.lane.conversation
        if (held_ms := await self._pace.enter(chat)) is not None:
            return SendResult(Delivered.RETRY, "the rate limit is reached", retry_after_ms=held_ms, outage=True)
        message = self._moved(json.loads(part.body))
        try:
            return await self._sent(reply, _marked(message) if part.possible_duplicate else message)
        except TelegramUnreachable as error:
            return unreachable(error)
        except TelegramRefused as error:
            if error.code == 429 and error.retry_after_s is not None:
                self._pace.hold(chat, wait_ms(error.retry_after_s))
            return refused(error)

    def fetch(self, account: str, file: Attachment) -> AsyncGenerator[bytes, None]:
        """The bytes of a file that came with a message to this bot."""
        if account != self.account:
            raise FileRefused(f"the bot {account} is not set up here any more")
        return self._api.fetch(file.ref)

    async def show_typing(self, lane: Lane) -> bool:
        """Show for five seconds that the bot types; never raises."""
        return await self._shown("sendChatAction", lane, self._moved({**_place(lane), "action": "typing"}))

    async def show_draft(self, lane: Lane, number: int, text: str) -> bool:
        """Show the end of an unfinished answer; in private chats alone. Never raises."""
        if not self._drafts or _is_group(lane):
            return False
        last = await asyncio.to_thread(_last_part, text) if len(text) > _INLINE_CHARS_MAX else _last_part(text)
        if not last.text.strip():
            return True
        draft = {**_place(lane), "draft_id": number, "text": last.text, "entities": _entities(last)}
        return await self._shown("sendMessageDraft", lane, draft)

    async def react(self, lane: Lane, target: ReactionTarget, emoji: str) -> None:
        """Give a message of the lane an emoji, in the place of the bot's former one; raises ToolError."""
        if lane.account != self.account:
            raise ToolError(f"the bot {lane.account} is not set up here any more")
        former, _, name = target.provider_id.rpartition(IN_CHAT)
        chat = _chat_id(former) if former else _chat_id(lane.conversation)
        if not name.isdecimal():
            raise ToolError("that message cannot get a reaction: it is not one of Telegram")
        await set_reaction(self._api, chat, int(name), emoji)

    async def _shown(self, method: str, lane: Lane, parameters: Mapping[str, object]) -> bool:
        """Whether something beside messages is shown; what Telegram refuses is not tried again in this turn."""
        if lane.account != self.account:
            return False
        try:
            await self._api.call(method, parameters, _SHOWN_WITHIN_S)
        except TelegramUnreachable:
            return True
        except TelegramRefused:
            return False
        return True

    async def close(self) -> None:
        await self._api.close()

    async def _sent(self, reply: StoredReply, message: dict[str, object]) -> SendResult:
        """Send a message: to the chat that its group has become, and plainer where Telegram refuses how it is made."""
        detail = ""
        while True:
            try:
                made = await self._post(reply, message)
            except TelegramRefused as error:
                chat, now = message["chat_id"], error.migrated_to
                if now is not None and isinstance(chat, int) and chat != now:
                    await self._follow(chat, now)
                    message, detail = {**message, "chat_id": now}, "the group has become a supergroup"
                elif (other := plainer(message, error)) is not None:
                    message, detail = other
                else:
                    raise
            else:
                number = made.get("message_id") if isinstance(made, dict) else None
                return SendResult(Delivered.CONFIRMED, detail, self._named(message["chat_id"], number))

    async def _post(self, reply: StoredReply, message: Mapping[str, object]) -> object:
        """Send a text, or a file; words in its place once it is not kept any more."""
        if FILE not in message:
            return await self._api.call("sendMessage", message)
        if (file := await upload_of(self._uploads, reply, message[FILE])) is None:
            return await self._api.call("sendMessage", instead_of(message, GONE))
        method = str(message["method"])
        return await self._api.upload(method, parameters_of(message), field_of(method), file)

    async def _follow(self, chat: int, now: int) -> None:
        try:
            await self._bot.follow(chat, now)
        except StoreError as error:
            _log.warning("which chat a group became is not kept: %s", error.what, extra={"code": error.code})

    def _moved(self, message: dict[str, object]) -> dict[str, object]:
        """A message for the chat that its group is now."""
        chat = message["chat_id"]
        return {**message, "chat_id": self._bot.moved.get(chat, chat)} if isinstance(chat, int) else message

    def _named(self, chat: object, number: object) -> str | None:
        """What answers to a message call it, as `telegram_updates` does."""
        if not isinstance(number, int):
            return None
        is_first = not isinstance(chat, int) or self._bot.first_of(chat) == chat
        return str(number) if is_first else f"{chat}{IN_CHAT}{number}"


def parts_of(reply: StoredReply) -> Sequence[str]:
    """The bodies of the parts of a reply."""
    place = {**_place(reply.lane), "link_preview_options": {"is_disabled": True}}
    if topic_of(reply.lane) == _GENERAL:
        del place["message_thread_id"]
    bodies: list[str] = []
    for part in split(read_markdown(reply.draft.text), _LIMITS):
        if not part.text.strip():
            continue
        message = {**place, "text": part.text, "entities": _entities(part)}
        if not bodies and reply.draft.reply_to and _is_group(reply.lane):
            answered = _numbered(reply.draft.reply_to.rpartition(IN_CHAT)[2])
            message["reply_parameters"] = {"message_id": answered, "allow_sending_without_reply": True}
        bodies.append(json.dumps(message))
    bodies += [json.dumps(file_body(place, file)) for file in reply.files]
    return bodies or [json.dumps({**place, "text": "(no words)"})]


def _last_part(text: str) -> StyledText:
    """What one message takes of the end of an unfinished answer."""
    *_, last = (StyledText(""), *split(read_markdown(text), _LIMITS))
    return last


def _place(lane: Lane) -> dict[str, object]:
    """The chat of a lane, and the topic in it."""
    place: dict[str, object] = {"chat_id": _chat_id(lane.conversation)}
    if (topic := topic_of(lane)) is not None:
        place["message_thread_id"] = _numbered(topic)
    return place


def _chat_id(conversation: str) -> int | str:
    name = conversation.removeprefix(CHAT)
    return int(name) if name.lstrip("-").isdecimal() else name


def _numbered(name: str) -> int | str:
    """A name that Telegram gave, as the number that it is."""
    return int(name) if name.isdecimal() else name


def _is_group(lane: Lane) -> bool:
    """Whether others are in the chat of a lane: its id is negative."""
    return lane.conversation.startswith(f"{CHAT}-")


def _entities(part: StyledText) -> list[dict[str, object]]:
    """The styles of a part, in units of UTF-16."""
    at = [0]
    for letter in part.text:
        at.append(at[-1] + utf16_units(letter))
    made = []
    for span in part.spans:
        if span.style is Style.LINK and not span.detail.startswith(_LINKED):
            continue
        entity: dict[str, object] = {"type": _ENTITIES[span.style], "offset": at[span.start]}
        entity["length"] = at[span.end] - at[span.start]
        if span.style is Style.LINK:
            entity["url"] = span.detail
        elif span.style is Style.BLOCK and span.detail:
            entity["language"] = span.detail
        made.append(entity)
    return made


def _marked(message: dict[str, object]) -> dict[str, object]:
    """A message that says it may be a repeat."""
    if FILE in message:
        return {**message, "caption": _REPEATED}
    entities = message.get("entities")
    moved = [
        {**entity, "offset": entity["offset"] + len(_REPEATED)}
        for entity in (entities if isinstance(entities, list) else ())
    ]
    return {**message, "text": f"{_REPEATED}{message['text']}", "entities": moved}
