"""Attachments: what came with the words of a message, as the payload names it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from keepsaid.domain.message import Attachment, Content
from keepsaid.text.normal import named_short, normalise

ATTACHMENTS_MAX = 10
"""Named of one message; more are counted."""

_BYTES_MAX = 64_000
_PLACES = ("", "data", "message", "event", "d")
_LISTS = ("attachments", "files", "media")
_SINGLE = ("document", "photo", "voice", "video", "audio", "animation", "sticker")
_HINTS = tuple(f'"{key}"'.encode() for key in (*_LISTS, *_SINGLE))
_NAMES = ("name", "file_name", "filename", "title")
_REFS = ("url", "url_private", "file_id", "id", "ref")
_KINDS = ("type", "mime_type", "content_type", "mimetype")


def described(content: Content) -> str:
    """What came with a text, in one line that can end no label it stands in; "" for nothing that it does not name."""
    text = content.text
    things = [one for one in attachments_of(content) if not (one.ref and one.ref in text)]
    names = [_described(one) for one in things[:ATTACHMENTS_MAX]]
    more = f" and {len(things) - ATTACHMENTS_MAX} more" if len(things) > ATTACHMENTS_MAX else ""
    return normalise("; ".join(names) + more)


def in_words(content: Content) -> str:
    """What a message says; of one without words what it brought."""
    if content.text.strip():
        return content.text
    brought = described(content)
    return f"(attached: {brought})" if brought else content.text


def _described(one: Attachment) -> str:
    about = ", ".join(named_short(fact) for fact in (one.kind, one.ref) if fact)
    return named_short(one.name) + (f" ({about})" if about else "")


def attachments_of(content: Content) -> tuple[Attachment, ...]:
    """What a payload says came with its text, as HTTP, Telegram, Discord and Slack write it; none of large ones."""
    raw = content.payload
    if len(raw) > _BYTES_MAX or not any(hint in raw for hint in _HINTS):
        return ()
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return ()
    return tuple(_found(body)) if isinstance(body, dict) else ()


def _found(body: Mapping[str, object]) -> Iterator[Attachment]:
    for place in _PLACES:
        part = body.get(place) if place else body
        if not isinstance(part, dict):
            continue
        for key in _LISTS:
            listed = part.get(key)
            if isinstance(listed, list):
                yield from (_read(one, "file") for one in listed if isinstance(one, dict))
        for key in _SINGLE:
            one = part.get(key)
            largest = one[-1] if isinstance(one, list) and one else one
            if isinstance(largest, dict):
                yield _read(largest, key)


def _read(one: Mapping[str, object], what: str) -> Attachment:
    return Attachment(_first(one, _NAMES) or what, _first(one, _KINDS), _first(one, _REFS))


def _first(one: Mapping[str, object], keys: tuple[str, ...]) -> str:
    return next((str(one[key]) for key in keys if isinstance(one.get(key), str | int) and one[key] != ""), "")
