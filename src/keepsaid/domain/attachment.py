"""Attachments: what came with a message, by name and reference; the things themselves are never loaded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from keepsaid.domain.message import Content

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


@dataclass(frozen=True, slots=True)
class Attachment:
    """One thing: what it is called, its media type, and where the channel keeps it; each "" when not said."""

    name: str
    kind: str = ""
    ref: str = ""


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
            for one in listed if isinstance(listed, list) else ():
                if isinstance(one, dict):
                    yield _read(one, "file")
        for key in _SINGLE:
            one = part.get(key)
            largest = one[-1] if isinstance(one, list) and one else one
            if isinstance(largest, dict):
                yield _read(largest, key)


def _read(one: Mapping[str, object], what: str) -> Attachment:
    return Attachment(_first(one, _NAMES) or what, _first(one, _KINDS), _first(one, _REFS))


def _first(one: Mapping[str, object], keys: tuple[str, ...]) -> str:
    return next((str(one[key]) for key in keys if isinstance(one.get(key), str | int) and one[key] != ""), "")
