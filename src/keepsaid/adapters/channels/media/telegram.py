"""Telegram: an update or message of the Bot API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from keepsaid.adapters.channels.media.fields import MediaObject, attached, lines, sized
from keepsaid.domain.message import EDITED, FORWARDED, REACTION, Attachment, IgnoredUpdate, MediaMessage

_UPDATES = ("message", "channel_post", "business_message")
_EDITS = ("edited_message", "edited_channel_post", "edited_business_message")
_FILES = ("document", "audio", "video", "voice", "animation", "video_note", "sticker")


def read(source: Mapping[str, object]) -> MediaMessage | IgnoredUpdate:
    """The message in an update, or a bare message.

    A forum topic is a topic; in a chat without topics `message_thread_id` only repeats a reply and is left out.
    The conversation is the chat, with all its topics (seed 003).
    """
    given = MediaObject(source)
    if "update_id" not in given:
        return _message(given, edited="edit_date" in given)
    for name in (*_UPDATES, *_EDITS):
        if (message := given.inside(name)) is not None:
            return _message(message, edited=name in _EDITS)
    return IgnoredUpdate("the update holds no message")


def read_reaction(source: Mapping[str, object]) -> MediaMessage | None:
    """The reaction in an update: who gave which emoji to which message; None where it holds none.

    Without an emoji it was taken back. Raises InputError.
    """
    if (given := MediaObject(source).inside("message_reaction")) is None:
        return None
    chat, number = given.needed("chat"), given.id("message_id")
    person = given.inside("user") or given.needed("actor_chat")
    place, sender = chat.id("id"), person.id("id")
    emoji = [one.text("emoji") or one.text("custom_emoji_id") or "" for one in given.objects("new_reaction")]
    return MediaMessage(
        conversation=f"telegram:chat:{place}",
        sender=sender,
        text=" ".join(emoji),
        provider_id="",
        delivery=f"telegram:{place}:{number}:{given.id('date')}:{sender}",
        name=_name(person),
        direct=chat.text("type") == "private",
        reply_to=number,
        event=REACTION,
        conversation_name=chat.text("title") or "",
        by_bot=person.flag("is_bot"),
    )


def _message(message: MediaObject, *, edited: bool) -> MediaMessage | IgnoredUpdate:
    chat, number = message.needed("chat"), message.id("message_id")
    place = chat.id("id")
    person, speaking_for = message.inside("from"), message.inside("sender_chat")
    sender = speaking_for or person or message.needed("from")
    text = lines(*_forwarded(message), message.text("text") or message.text("caption") or "", *_attachments(message))
    if not text:
        return IgnoredUpdate("the message has no words and nothing that could be named")
    topic = message.id("message_thread_id") if message.flag("is_topic_message") else None
    delivery = f"telegram:{place}:{number}"
    return MediaMessage(
        conversation=f"telegram:chat:{place}",
        sender=sender.id("id"),
        text=text,
        provider_id=number,
        delivery=f"{delivery}:{message.id('edit_date')}" if edited else delivery,
        name=_name(sender),
        direct=chat.text("type") == "private",
        topic=topic,
        reply_to=_reply_to(message, topic),
        event=EDITED if edited else "",
        conversation_name=chat.text("title") or "",
        by_bot=person is not None and person.flag("is_bot") and speaking_for is None,
        files=tuple(_files(message)),
    )


def _reply_to(message: MediaObject, topic: str | None) -> str | None:
    """What it answers; the message that began a topic is named in all of it, and answered by none."""
    target = message.inside("reply_to_message")
    if target is None or "forum_topic_created" in target:
        return None
    number = target.id("message_id")
    return None if number == topic else number


def _name(person: MediaObject) -> str:
    full = " ".join(part for name in ("first_name", "last_name") if (part := person.text(name)))
    return full or person.first(("title", "username"))


def _forwarded(message: MediaObject) -> Iterator[str]:
    if (origin := message.inside("forward_origin")) is not None:
        who = (origin.inside(name) for name in ("sender_user", "sender_chat", "chat"))
        named = next((_name(one) for one in who if one is not None), origin.text("sender_user_name") or "")
        yield attached(FORWARDED, f"from {named}" if named else "")


_PLAIN = {"photo": "image/jpeg", "voice": "audio/ogg", "video_note": "video/mp4", "sticker": "image/webp"}
"""The media types of what Telegram gives none."""


def _files(message: MediaObject) -> Iterator[Attachment]:
    """What can be fetched: of a photo its largest size, of an animation not the document that repeats it."""
    found = [("photo", size) for size in message.objects("photo")[-1:]]
    kinds = [kind for kind in _FILES if not (kind == "document" and "animation" in message)]
    found += [(kind, file) for kind in kinds if (file := message.inside(kind)) is not None]
    for kind, file in found:
        name = file.text("file_name") or kind.replace("_", " ")
        told = file.text("mime_type") or _PLAIN.get(kind, "")
        yield Attachment(name, told, file.id("file_id"), int(file.number("file_size") or 0))


def _attachments(message: MediaObject) -> Iterator[str]:
    for size in message.objects("photo")[-1:]:
        yield attached("photo", sized(size.number("file_size")), size.id("file_id"))
    for kind in _FILES:
        if (file := message.inside(kind)) is not None:
            told = (file.text("emoji"), file.text("file_name"), file.text("mime_type"), sized(file.number("file_size")))
            yield attached(kind.replace("_", " "), *told, file.id("file_id"))
    if (spot := message.inside("location")) is not None:
        yield attached("location", spot.number("latitude"), spot.number("longitude"))
    if (venue := message.inside("venue")) is not None:
        yield attached("venue", venue.text("title"), venue.text("address"))
    if (contact := message.inside("contact")) is not None:
        yield attached("contact", _name(contact), contact.text("phone_number"))
    if (poll := message.inside("poll")) is not None:
        yield attached("poll", poll.text("question"), *(option.text("text") for option in poll.objects("options")))
    if (dice := message.inside("dice")) is not None:
        yield attached("dice", dice.text("emoji"), dice.number("value"))
