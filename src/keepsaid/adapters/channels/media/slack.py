"""Slack: a message, reaction or slash command of the Events API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from keepsaid.adapters.channels.media.fields import MediaObject, attached, lines, sized
from keepsaid.domain.message import EDITED, REACTION, Attachment, IgnoredUpdate, MediaMessage

_SAID = (None, "file_share", "thread_broadcast", "me_message")
_ELSEWHERE = ("external", "tombstone", "hidden_by_limit")
"""Modes of files that Slack does not have: they are at another provider, were deleted, or are held back."""

_ESCAPED = re.compile(r"<([@#!]?)([^|<>]*)(?:\|([^<>]*))?>")
_SIGNS = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


def read(source: Mapping[str, object]) -> MediaMessage | IgnoredUpdate:
    """The message in an `event_callback`, or a bare event.

    A thread is a topic, named by the `ts` of the message it hangs from, which stands in the channel itself.
    """
    given = MediaObject(source)
    event = given.needed("event") if given.text("type") == "event_callback" else given
    kind, subtype = event.text("type"), event.text("subtype")
    if kind not in ("message", "app_mention"):
        return IgnoredUpdate(f"{kind or 'an event without a type'} is not a message")
    if subtype == "message_changed":
        changed = event.needed("message")
        if "edited" in changed:
            return _message(changed, event, changed.needed("edited").id("ts"))
        if shared := _shared_late(changed, event):
            return _message(changed, event, f"files:{shared}")
        return IgnoredUpdate("only the preview of a message changed")
    # Slack sends a mention that an edit brings as `app_mention` with the `ts` of the message, beside the change itself
    edit = event.inside("edited") if kind == "app_mention" else None
    return _message(event, event, edit.id("ts") if edit is not None else None)


def read_reaction(source: Mapping[str, object]) -> MediaMessage | IgnoredUpdate | None:
    """The reaction in an `event_callback`, or a bare event; None where it holds none.

    The text is the name of the emoji, `:tada:`, and empty if it was taken back. Raises InputError.
    """
    given = MediaObject(source)
    event = given.needed("event") if given.text("type") == "event_callback" else given
    if (kind := event.text("type")) not in ("reaction_added", "reaction_removed"):
        return None
    item = event.needed("item")
    if item.text("type") != "message":
        return IgnoredUpdate("the reaction is not to a message")
    place, number, sender = item.id("channel"), item.id("ts"), event.id("user")
    emoji = event.id("reaction")
    return MediaMessage(
        conversation=f"slack:{place}",
        sender=sender,
        text=f":{emoji}:" if kind == "reaction_added" else "",
        provider_id="",
        delivery=f"slack:{place}:{number}:{event.id('event_ts')}:{sender}",
        direct=is_direct(place),
        reply_to=number,
        event=REACTION,
    )


def read_command(source: Mapping[str, object]) -> MediaMessage:
    """The slash command in its payload, as text: `/ask where is it?`. Raises InputError."""
    given = MediaObject(source)
    place = given.id("channel_id")
    text = f"{given.id('command')} {_words(given.text('text') or '')}"
    return MediaMessage(
        conversation=f"slack:{place}",
        sender=given.id("user_id"),
        text=text.strip(),
        provider_id="",
        delivery=f"slack:command:{given.id('trigger_id')}",
        name=given.text("user_name") or "",
        direct=is_direct(place),
    )


def is_direct(channel: str) -> bool:
    """Whether the id of a channel is that of a conversation with one person."""
    return channel.startswith("D")


def _shared_late(changed: MediaObject, event: MediaObject) -> str:
    """The ids of files that a message did not have before a change, as those that its text links to; "" for none."""
    before = event.inside("previous_message")
    if before is None:
        return ""
    known = {file.text("id") for file in before.objects("files")}
    return "+".join(number for file in changed.objects("files") if (number := file.text("id")) and number not in known)


def _message(message: MediaObject, event: MediaObject, edited_at: str | None) -> MediaMessage | IgnoredUpdate:
    subtype = message.text("subtype")
    by_bot = "bot_id" in message or subtype == "bot_message"
    if subtype not in (*_SAID, "bot_message"):
        return IgnoredUpdate(f"a notice of Slack's own ({subtype})")
    if not (text := lines(_words(message.text("text") or ""), *_attachments(message))):
        return IgnoredUpdate("the message has no words and nothing that could be named")
    place, number = event.id("channel"), message.id("ts")
    thread = message.id("thread_ts") if "thread_ts" in message else number
    return MediaMessage(
        conversation=f"slack:{place}",
        sender=message.id("user" if "user" in message or not by_bot else "bot_id"),
        text=text,
        provider_id=number,
        delivery=f"slack:{place}:{number}:{edited_at}" if edited_at else f"slack:{place}:{number}",
        name=_name(message),
        direct=event.text("channel_type") == "im",
        topic=None if thread == number else thread,
        event=EDITED if edited_at else "",
        by_bot=by_bot,
        files=tuple(_files(message)),
    )


def _name(message: MediaObject) -> str:
    profile = message.inside("user_profile")
    named = profile.first(("display_name", "real_name", "name")) if profile is not None else ""
    return named or message.first(("username",))


def _words(text: str) -> str:
    """What was said, as people read it: mentions and links without their signs, letters as they are."""
    shown = _ESCAPED.sub(_shown, text)
    for written, sign in _SIGNS:
        shown = shown.replace(written, sign)
    return shown


def _shown(found: re.Match[str]) -> str:
    sign, target, label = found.group(1), found.group(2), found.group(3)
    if sign in ("@", "#"):
        return f"{sign}{label or target}"
    if sign == "!":
        return f"@{label or target.partition('^')[0]}"
    return f"{label} ({target})" if label and label != target else target


def _files(message: MediaObject) -> Iterator[Attachment]:
    """What can be fetched."""
    for file in message.objects("files"):
        url = file.first(("url_private_download", "url_private"))
        if url and file.text("mode") not in _ELSEWHERE and not file.flag("is_external"):
            size = int(file.number("size") or 0)
            yield Attachment(file.first(("name", "title")) or "file", file.text("mimetype") or "", url, size)


def _attachments(message: MediaObject) -> Iterator[str]:
    for file in message.objects("files"):
        told = (file.text("name"), file.text("mimetype"), sized(file.number("size")))
        yield attached("file", *told, file.text("url_private") or file.text("id"))
