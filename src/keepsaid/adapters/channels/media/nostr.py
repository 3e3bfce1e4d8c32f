"""Nostr: an event as relays pass it on. Its signature is for whoever talks to the relays to check."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b

from keepsaid.adapters.channels.media.fields import MediaObject, lines
from keepsaid.domain.message import IgnoredUpdate, MediaMessage
from keepsaid.errors import InputError

_NOTE, _COMMENT, _CHANNEL_MESSAGE = 1, 1_111, 42
_DIRECT = (4, 14)
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)
_MARKED = ("root", "reply", "mention")

Tags = Sequence[Sequence[str]]


def read(source: Mapping[str, object]) -> MediaMessage | IgnoredUpdate:
    """The event: a note, a comment, a message of a public channel, or a direct message that was opened before.

    Notes and comments: the thread is conversation and topic, named by its root, and all of it is one lane. In a
    channel the root is the conversation, and replies are replies. Markers go before places (NIP-10).
    """
    event = MediaObject(source)
    number, author, kind = _key(event, "id"), _key(event, "pubkey"), event.number("kind")
    if kind is None:
        raise InputError("the field 'kind' is missing")
    tags, text = event.tags("tags"), lines(event.text("content") or "")
    if kind not in (_NOTE, _COMMENT, _CHANNEL_MESSAGE, *_DIRECT):
        return IgnoredUpdate(f"an event of kind {kind:g} is not a message")
    if not text:
        return IgnoredUpdate("the event has no words")
    root, reply_to = _comment(tags) if kind == _COMMENT else _thread(tags)
    if kind in _DIRECT:
        people = sorted({author, *(tag[1] for tag in tags if tag[:1] == ["p"] and len(tag) > 1)})
        # the same whoever of them writes
        room = f"nostr:direct:{blake2b(' '.join(people).encode(), digest_size=16).hexdigest()}"
        return MediaMessage(room, author, text, number, f"nostr:{number}", direct=len(people) < 3, reply_to=reply_to)
    if kind == _CHANNEL_MESSAGE:
        if root is None:
            raise InputError("the field 'tags' must name the channel: an e tag marked root")
        answers = None if reply_to == root else reply_to
        return MediaMessage(f"nostr:channel:{root}", author, text, number, f"nostr:{number}", reply_to=answers)
    thread = root or number
    return MediaMessage(f"nostr:{thread}", author, text, number, f"nostr:{number}", topic=thread, reply_to=reply_to)


def _thread(tags: Tags) -> tuple[str | None, str | None]:
    """Root and parent by the markers of the e tags; without markers the first and the last of them."""
    linked = [(tag[1], tag[3] if len(tag) > 3 else "") for tag in tags if tag[0:1] == ["e"] and len(tag) > 1]
    marked = {mark: number for number, mark in reversed(linked) if mark in _MARKED}
    root, reply = marked.get("root"), marked.get("reply")
    if root is None and reply is None:
        placed = [number for number, mark in linked if mark not in _MARKED]
        return (placed[0], placed[-1]) if placed else (None, None)
    return root or reply, reply or root


def _comment(tags: Tags) -> tuple[str | None, str | None]:
    """Root and parent of a comment: the root by a tag in capitals, whatever it is a comment on (NIP-22)."""
    root = next((tag[1] for tag in tags if tag[0:1] in (["E"], ["A"], ["I"]) and len(tag) > 1), None)
    parent = next((tag[1] for tag in tags if tag[0:1] == ["e"] and len(tag) > 1), None)
    return root or parent, parent


def _key(event: MediaObject, name: str) -> str:
    value = event.id(name)
    if not _HEX.fullmatch(value):
        raise InputError(f"the field {name!r} must be 64 digits of lower-case hexadecimal")
    return value
