"""Telegram as a channel that answers: a reply is split into messages with entities, each sent once the one before is.

Without an answer nobody knows whether a message arrived, and nothing can be read back: it is sent again, and says so.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence

from keepsaid.adapters.channels.markdown import read_markdown
from keepsaid.adapters.channels.pace import SendingPace
from keepsaid.adapters.channels.telegram_api import (
    TelegramApi,
    TelegramRefused,
    TelegramUnreachable,
    refused,
    unreachable,
    wait_ms,
)
from keepsaid.domain.message import topic_of
from keepsaid.domain.reply import Delivered, Sending, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.text.styled import PartLimits, Style, StyledText, split, utf16_units

NAME = "telegram"
CHAT = "telegram:chat:"
"""How a conversation begins; after it comes the id of the chat."""

_REPEATED = "(may be a repeat)\n"
_UNITS_MAX, _ENTITIES_MAX = 4_096 - len(_REPEATED), 100
"""What one message takes, with room for the line that marks a repeat."""

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
    """Sends by one bot; `account` is the id of the bot."""

    name = NAME
    sending = Sending.PUSH

    def __init__(self, api: TelegramApi, pace: SendingPace, account: str) -> None:
        self._api = api
        self._pace = pace
        self.account = account

    async def send(self, reply: StoredReply) -> SendResult:
        """Send all parts at once, remembering of none whether it arrived: for what is only tried."""
        result = SendResult(Delivered.CONFIRMED)
        for n, body in enumerate(await self.split(reply)):
            result = await self.send_part(reply, ReplyPart(reply.id, n, body))
            if result.outcome is not Delivered.CONFIRMED:
                break
        return result

    async def split(self, reply: StoredReply) -> Sequence[str]:
        """Each part as the parameters of `sendMessage`, in JSON."""
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
        message = json.loads(part.body)
        try:
            return await self._sent(_marked(message) if part.possible_duplicate else message)
        except TelegramUnreachable as error:
            return unreachable(error)
        except TelegramRefused as error:
            if error.code == 429 and error.retry_after_s is not None:
                self._pace.hold(chat, wait_ms(error.retry_after_s))
            return refused(error)

    async def close(self) -> None:
        await self._api.close()

    async def _sent(self, message: dict[str, object]) -> SendResult:
        """Send a message: to the chat that its group has become, and without styles where Telegram refuses them."""
        detail = ""
        while True:
            try:
                made = await self._api.call("sendMessage", message)
            except TelegramRefused as error:
                if error.migrated_to is not None and message["chat_id"] != error.migrated_to:
                    message, detail = {**message, "chat_id": error.migrated_to}, "the group has become a supergroup"
                elif error.code == 400 and "entit" in error.what.lower() and message.pop("entities", None):
                    detail = f"sent without styles: {error}"
                else:
                    raise
            else:
                number = made.get("message_id") if isinstance(made, dict) else None
                return SendResult(Delivered.CONFIRMED, detail, str(number) if isinstance(number, int) else None)


def parts_of(reply: StoredReply) -> Sequence[str]:
    """The bodies of the parts of a reply."""
    place: dict[str, object] = {"chat_id": _chat_id(reply.lane.conversation)}
    if (topic := topic_of(reply.lane)) is not None and topic != _GENERAL:
        place["message_thread_id"] = int(topic) if topic.isdecimal() else topic
    place["link_preview_options"] = {"is_disabled": True}
    bodies: list[str] = []
    limits = PartLimits(_UNITS_MAX, _ENTITIES_MAX, utf16_units)
    for part in split(read_markdown(reply.draft.text), limits):
        if not part.text.strip():
            continue
        message = {**place, "text": part.text, "entities": _entities(part)}
        if not bodies and reply.draft.reply_to and _is_group(reply):
            answered = int(reply.draft.reply_to) if reply.draft.reply_to.isdecimal() else reply.draft.reply_to
            message["reply_parameters"] = {"message_id": answered, "allow_sending_without_reply": True}
        bodies.append(json.dumps(message))
    return bodies or [json.dumps({**place, "text": "(no words)"})]


def _chat_id(conversation: str) -> int | str:
    name = conversation.removeprefix(CHAT)
    return int(name) if name.lstrip("-").isdecimal() else name


def _is_group(reply: StoredReply) -> bool:
    """Whether a reply goes to a group: its id is negative."""
    return reply.lane.conversation.startswith(f"{CHAT}-")


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
    entities = message.get("entities")
    moved = [
        {**entity, "offset": entity["offset"] + len(_REPEATED)}
        for entity in (entities if isinstance(entities, list) else ())
    ]
    return {**message, "text": f"{_REPEATED}{message['text']}", "entities": moved}
