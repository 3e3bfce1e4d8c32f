"""Telegram's updates as messages, and whether the bot itself is named in one."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from keepsaid.adapters.channels.media import telegram as media
from keepsaid.domain.message import UNREADABLE, IgnoredUpdate, MediaMessage
from keepsaid.errors import InputError
from keepsaid.ports.channel import Incoming
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.telegram")
_ALBUM_MS, _CUT_MS = 1_000, 1_500
_CUT_UNITS = 4_000
"""A text that is not shorter may be a piece: apps cut at 4,096 units."""

CHAT = "telegram:chat:"
"""How a conversation begins; after it comes the id of the chat."""

IN_CHAT = "/"
"""Stands between the id of a chat and that of a message, where the chat is not that of the conversation."""

_COMMAND, _MENTION, _NAMED = "bot_command", "mention", "text_mention"


@frozen
class Bot:
    """Who reads: the id of the bot, and its name without the @."""

    id: str
    name: str

    def is_called(self, text: str) -> bool:
        """Whether a text is the name of the bot, in any case."""
        return bool(self.name) and text.casefold() == self.name.casefold()


def incoming_of(
    update: Mapping[str, object], bot: Bot, first_of: Callable[[int], int] = lambda chat: chat
) -> Incoming | None:
    """The message in an update; None where it holds none. One that cannot be read is kept, and answered by nobody.

    `first_of` gives the id that a group had first: its conversation stays the same.
    """
    raw = json.dumps(update, ensure_ascii=False).encode("utf-8", "surrogatepass")
    try:
        said = media.read_reaction(update) or media.read(update)
    except InputError as error:
        _log.warning("an update of Telegram cannot be read: %s", error.what, extra={"code": error.code})
        return unreadable(raw, f"telegram:update:{update.get('update_id')}", bot)
    if isinstance(said, IgnoredUpdate) or said.sender == bot.id:
        return None
    said = _at_home(said, first_of)
    message = next((one for one in update.values() if isinstance(one, dict)), {})
    called = [*_called(message)]
    if called and called[0][0] == _COMMAND and _is_for_another(called[0][1], bot):
        return None
    return Incoming(
        said.text,
        said.sender,
        said.conversation,
        said.delivery,
        said.provider_id or None,
        said.reply_to,
        said.topic,
        said.name,
        said.direct,
        raw,
        said.conversation_name,
        bot.id,
        said.event,
        addressed=_answers(message, bot) or any(_names(kind, name, bot) for kind, name in called),
        more_ms=_more_ms(message),
        by_bot=said.by_bot,
        files=said.files,
    )


def _at_home(said: MediaMessage, first_of: Callable[[int], int]) -> MediaMessage:
    """A message of a group that became another, in the conversation that it had. Ids of messages begin again there."""
    chat = said.conversation.removeprefix(CHAT)
    first = first_of(int(chat)) if chat.lstrip("-").isdecimal() else chat
    if str(first) == chat:
        return said
    number, answered = said.provider_id, said.reply_to
    return replace(
        said,
        conversation=f"{CHAT}{first}",
        provider_id=number and f"{chat}{IN_CHAT}{number}",
        reply_to=answered and f"{chat}{IN_CHAT}{answered}",
    )


def unreadable(raw: bytes, key: str, bot: Bot) -> Incoming:
    """What cannot be read, as it came: it is kept, and answered by nobody."""
    return Incoming("", "telegram", "telegram:unreadable", key, payload=raw, event=UNREADABLE, account=bot.id)


def _more_ms(message: Mapping[str, object]) -> int:
    """For how long more is waited for: the rest of an album, or of a long text that the sender's app has cut."""
    text = message.get("text")
    if isinstance(text, str) and len(_units(text)) >= 2 * _CUT_UNITS:
        return _CUT_MS
    return _ALBUM_MS if "media_group_id" in message else 0


def _called(message: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """What a message names by an entity: its kind, and the text of it or the id of the person."""
    for words, entities in (("text", "entities"), ("caption", "caption_entities")):
        text, found = message.get(words), message.get(entities)
        if not isinstance(text, str) or not isinstance(found, list):
            continue
        units = _units(text)
        for one in found:
            start, length = (one.get(name) for name in ("offset", "length")) if isinstance(one, dict) else (None, None)
            if not isinstance(start, int) or not isinstance(length, int):
                continue
            kind, named = one.get("type"), units[2 * start : 2 * (start + length)].decode("utf-16-le", "replace")
            person = one.get("user")
            if kind in (_COMMAND, _MENTION):
                yield kind, named
            elif kind == _NAMED and isinstance(person, dict):
                yield kind, str(person.get("id"))


def _units(text: str) -> bytes:
    """A text in UTF-16, in whose units Telegram counts: two bytes each."""
    return text.encode("utf-16-le", "surrogatepass")


def _names(kind: str, named: str, bot: Bot) -> bool:
    """Whether an entity names the bot."""
    if kind == _NAMED:
        return named == bot.id
    return bot.is_called(named.partition("@")[2])


def _is_for_another(command: str, bot: Bot) -> bool:
    """Whether a command says that it is for another bot: `/status@other_bot`."""
    name = command.partition("@")[2]
    return bool(name) and bool(bot.name) and not bot.is_called(name)


def _answers(message: Mapping[str, object], bot: Bot) -> bool:
    """Whether a message answers one of the bot."""
    answered = message.get("reply_to_message")
    author = answered.get("from") if isinstance(answered, dict) else None
    return isinstance(author, dict) and str(author.get("id")) == bot.id
