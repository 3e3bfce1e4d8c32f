"""Opened messages of Nostr as messages of the inbox: texts, files, reactions (NIP-17, NIP-25)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256

from keepsaid.adapters.channels.media import nostr as media
from keepsaid.adapters.channels.media.fields import MediaObject, attached
from keepsaid.adapters.channels.nostr.files import attachment_of, name_of
from keepsaid.adapters.channels.nostr.keys import DIRECT, FILE, LEGACY, REACTION, NostrRumor
from keepsaid.domain import message
from keepsaid.errors import InputError
from keepsaid.ports.channel import Incoming

NAME = "nostr"
_log = logging.getLogger("keepsaid.nostr")
_EMOJIS: Mapping[str, str] = {"+": "👍", "": "👍", "-": "👎"}
"""Likes and dislikes of NIP-25, which are not emojis."""

_TITLE_CHARS_MAX = 200


def incoming_of(rumor: NostrRumor, account: str, npub: str = "") -> Incoming | None:
    """The message in a rumor; None where it holds none, or one of the account itself.

    In a room a message is addressed to the account if it mentions its `npub` as `nostr:npub1...` (NIP-27). One that
    cannot be read is kept as it came, and is not answered.
    """
    if rumor.author == account:
        return None
    try:
        found = _read(rumor)
    except InputError as error:
        _log.warning("a message of Nostr cannot be read: %s", error.what, extra={"code": error.code})
        return unreadable(rumor, account)
    if isinstance(found, message.IgnoredUpdate):
        return None
    return Incoming(
        found.text,
        found.sender,
        found.conversation,
        found.delivery,
        found.provider_id or None,
        found.reply_to,
        name=found.name,
        direct=found.direct,
        payload=rumor.raw,
        conversation_name=found.conversation_name,
        account=account,
        event=found.event,
        addressed=found.direct or (bool(npub) and f"nostr:{npub}" in found.text),
        files=found.files,
    )


def unreadable(rumor: NostrRumor, account: str) -> Incoming:
    """A genuine message that cannot be read, as it came."""
    key = rumor.id or sha256(rumor.author.encode() + rumor.raw).hexdigest()
    event = message.UNREADABLE
    return Incoming("", NAME, "nostr:unreadable", f"nostr:{key}", payload=rumor.raw, event=event, account=account)


def _read(rumor: NostrRumor) -> message.MediaMessage | message.IgnoredUpdate:
    if not rumor.id:
        raise InputError("the message is not an event")
    source = MediaObject(rumor.source)
    kind, tags = source.number("kind"), source.tags("tags")
    if kind in (DIRECT, LEGACY):
        found = media.read(rumor.source)
    elif kind == FILE:
        found = _file(rumor, source, tags)
    elif kind == REACTION:
        found = _reaction(rumor, source, tags)
    else:
        return message.IgnoredUpdate(f"an event of kind {kind} is not a direct message")
    if isinstance(found, message.IgnoredUpdate):
        return found
    title = _tag(tags, "subject").strip()[:_TITLE_CHARS_MAX]
    return replace(found, conversation_name=title) if title else found


def _reaction(
    rumor: NostrRumor, source: MediaObject, tags: list[list[str]]
) -> message.MediaMessage | message.IgnoredUpdate:
    """A reaction: its target is named by its last `e` tag."""
    target = next((tag[1] for tag in reversed(tags) if tag[:1] == ["e"] and len(tag) > 1), None)
    if target is None:
        return message.IgnoredUpdate("the reaction names no message")
    given = (source.text("content") or "").strip()
    emoji = _EMOJIS.get(given, given)
    found = media.read({**rumor.source, "kind": DIRECT, "content": emoji})
    if isinstance(found, message.IgnoredUpdate):
        return found
    return replace(found, provider_id="", reply_to=target, event=message.REACTION)


def _file(
    rumor: NostrRumor, source: MediaObject, tags: list[list[str]]
) -> message.MediaMessage | message.IgnoredUpdate:
    """A file: a line that describes it, and what it is fetched by."""
    first = {tag[0]: tag[1] for tag in reversed(tags) if len(tag) > 1}
    found = media.read({**rumor.source, "kind": DIRECT, "content": _file_line(source, first)})
    if isinstance(found, message.IgnoredUpdate):
        return found
    return replace(found, files=(attachment_of(source.text("content") or "", first),))


def _file_line(source: MediaObject, tags: Mapping[str, str]) -> str:
    """The line that describes an encrypted file; its key is in the payload alone."""
    size = tags.get("size", "")
    shown = f"{int(size):,} bytes" if size.isascii() and size.isdecimal() and len(size) < 19 else ""
    return attached("file", name_of(tags), tags.get("file-type"), shown, (source.text("content") or "").strip())


def _tag(tags: list[list[str]], name: str) -> str:
    """The value of the first tag with a name; "" without one."""
    return next((tag[1] for tag in tags if tag[:1] == [name] and len(tag) > 1), "")
