"""Discord: a message of the gateway or of the REST interface."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from keepsaid.adapters.channels.media.fields import MediaObject, attached, lines, sized
from keepsaid.domain.message import EDITED, REACTION, Attachment, IgnoredUpdate, MediaMessage

_SAID = (0, 19, 20, 23)
"""Types of messages that somebody said; the others are notices: joins, pins, threads begun."""

_REPLY = 19
_FORWARD = 1
_DIRECT, _THREADS = 1, (10, 11, 12)


def read(source: Mapping[str, object]) -> MediaMessage | IgnoredUpdate:
    """The message in a dispatch of the gateway (`t` and `d`), or a bare message.

    A thread is a topic of the channel it belongs to. A message itself does not say which that is: hand the thread's
    channel object over with it as `channel`. Without, a thread is a conversation of its own.
    """
    given = MediaObject(source)
    dispatched = given.text("t") if "d" in given else None
    if dispatched is not None and dispatched not in ("MESSAGE_CREATE", "MESSAGE_UPDATE"):
        return IgnoredUpdate(f"{dispatched} is not a message")
    message = given.needed("d") if "d" in given else given
    kind = message.number("type")
    if kind is not None and kind not in _SAID:
        return IgnoredUpdate(f"a notice of Discord's own (type {kind})")
    message.needed("author")
    if not (text := lines(_words(message), *_attachments(message))):
        return IgnoredUpdate("the message has no words and nothing that could be named")
    return _posted(message, text, from_gateway=dispatched is not None)


def read_reaction(source: Mapping[str, object]) -> MediaMessage | None:
    """The reaction in a dispatch: who gave which emoji to which message; None where it holds none.

    The same emoji by the same person on one message is one delivery. Raises InputError.
    """
    given = MediaObject(source)
    if given.text("t") != "MESSAGE_REACTION_ADD":
        return None
    told = given.needed("d")
    emoji, member = told.needed("emoji"), told.inside("member")
    place, topic, direct = _place(told, from_gateway=True)
    number, sender, called = told.id("message_id"), told.id("user_id"), emoji.text("name") or emoji.id("id")
    person = member.inside("user") if member is not None else None
    return MediaMessage(
        conversation=f"discord:{place}",
        sender=sender,
        text=called,
        provider_id="",
        delivery=f"discord:{number}:{sender}:{called}",
        name=_name(person, member) if person is not None else "",
        direct=direct,
        topic=topic,
        reply_to=number,
        event=REACTION,
        conversation_name=_title(told),
    )


def _posted(message: MediaObject, text: str, *, from_gateway: bool) -> MediaMessage:
    author, number, edited = message.needed("author"), message.id("id"), message.text("edited_timestamp")
    place, topic, direct = _place(message, from_gateway=from_gateway)
    return MediaMessage(
        conversation=f"discord:{place}",
        sender=author.id("id"),
        text=text,
        provider_id=number,
        delivery=f"discord:{number}:{edited}" if edited else f"discord:{number}",
        name=_name(author, message.inside("member")),
        direct=direct,
        topic=topic,
        reply_to=_reply_to(message),
        event=EDITED if edited else "",
        conversation_name=_title(message),
        by_bot=author.flag("bot") or "webhook_id" in message,
        files=tuple(_files(message)),
    )


def _title(message: MediaObject) -> str:
    """Names of the server and the channel, where they are handed over; a thread is only named after its server."""
    channel, guild = message.inside("channel"), message.inside("guild")
    server = guild.text("name") if guild is not None else None
    named = channel is not None and channel.number("type") not in _THREADS
    place = channel.text("name") if channel is not None and named else None
    return " - ".join(filter(None, (server, place)))


def _place(message: MediaObject, *, from_gateway: bool) -> tuple[str, str | None, bool]:
    """Conversation, topic, and whether only two are there."""
    channel, place = message.inside("channel"), message.id("channel_id")
    if channel is None:
        # The REST interface leaves the guild out of every message, so that only the gateway's silence tells.
        return place, None, from_gateway and "guild_id" not in message
    if channel.number("type") in _THREADS:
        return channel.id("parent_id"), place, False
    return place, None, channel.number("type") == _DIRECT


def _reply_to(message: MediaObject) -> str | None:
    """What it answers. Forwards, pins and posts followed from elsewhere refer to messages too, and answer none."""
    target = message.inside("message_reference")
    if target is None or "message_id" not in target or target.number("type") == _FORWARD:
        return None
    if message.number("type") not in (None, _REPLY):
        return None
    elsewhere = "channel_id" in target and target.id("channel_id") != message.id("channel_id")
    return None if elsewhere else target.id("message_id")


def _name(person: MediaObject, member: MediaObject | None) -> str:
    here = member.first(("nick",)) if member is not None else ""
    return here or person.first(("global_name", "username"))


def _words(message: MediaObject) -> str:
    """What was said, with names instead of numbers."""
    text = message.text("content") or ""
    for person in message.objects("mentions"):
        named, number = f"@{_name(person, person.inside('member'))}", person.id("id")
        text = text.replace(f"<@{number}>", named).replace(f"<@!{number}>", named)
    return text


def _files(message: MediaObject) -> Iterator[Attachment]:
    """What can be fetched; with the message that it came with, which has a new address when this one is not valid."""
    for file in message.objects("attachments"):
        if not (url := file.text("url")):
            continue
        number = file.id("id") if "id" in file else ""
        place = {"url": url, "id": number, "channel": message.id("channel_id"), "message": message.id("id")}
        size = int(file.number("size") or 0)
        yield Attachment(file.text("filename") or "file", file.text("content_type") or "", json.dumps(place), size)


def _attachments(message: MediaObject) -> Iterator[str]:
    for file in message.objects("attachments"):
        told = (file.text("filename"), file.text("content_type"), sized(file.number("size")), file.text("url"))
        yield attached("file", *told)
    for sticker in message.objects("sticker_items"):
        yield attached("sticker", sticker.text("name"))
    if (poll := message.inside("poll")) is not None:
        question = poll.inside("question")
        yield attached("poll", question.text("text") if question is not None else "")
    if not message.text("content"):
        for card in message.objects("embeds"):
            yield attached("embed", card.text("title"), card.text("url"))
