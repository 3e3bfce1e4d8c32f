"""Media types of files: what the first bytes of a file show it to be, whatever was said of it."""

from __future__ import annotations

import re

PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Media types that models take."""

_STARTS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
    (b"MZ\x90", "application/x-msdownload"),
    (b"\x7fELF", "application/x-executable"),
)
_FORMS = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_BOX = b"ftyp"
_AUDIO_BRANDS = (b"M4A ", b"M4B ")
_FAMILIES = {
    "audio/ogg": ("audio/", "video/", "application/ogg"),
    "application/zip": ("application/",),
    "video/webm": ("audio/", "video/"),
    "video/mp4": ("audio/", "video/"),
}
"""Containers hold more than one kind of thing: there the declared type is believed within these."""

_FORM = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+_-]{0,80}")
"""What a declared type may look like; it stands in prompts."""

_LOOKED_AT = 512
_BINARY = "application/octet-stream"


def kind_of(head: bytes, declared: str) -> str:
    """The media type of a file as its first bytes show it; what is declared counts only where they do not contradict.

    A file that lies about its type has that of its bytes: nothing is shown or read as what it is not.
    """
    said = declared.partition(";")[0].strip().lower()
    said = said if _FORM.fullmatch(said) else ""
    found = _signature(head)
    if found:
        return said if any(said.startswith(one) for one in _FAMILIES.get(found, ())) else found
    if _is_text(head):
        return said if said.startswith("text/") or said in _TEXTS else "text/plain"
    is_shown = said.startswith("text/") or said in _TEXTS or said in PICTURES
    return said if said and not is_shown else _BINARY


_TEXTS = frozenset({"application/json", "application/xml", "application/x-yaml", "application/toml", "message/rfc822"})
"""Media types of text beside text/..."""


def is_text(kind: str) -> bool:
    """Whether a file of this type can be read as text."""
    return kind.startswith("text/") or kind in _TEXTS


def _signature(head: bytes) -> str:
    if head[:4] == b"RIFF" and head[8:12] in _FORMS:
        return _FORMS[head[8:12]]
    if head[4:8] == _BOX:
        return "audio/mp4" if head[8:12] in _AUDIO_BRANDS else "video/mp4"
    return next((kind for start, kind in _STARTS if head.startswith(start)), "")


def _is_text(head: bytes) -> bool:
    """Whether it begins as UTF-8 text does; a letter may be cut at the end of what is looked at."""
    looked = head[:_LOOKED_AT]
    if not looked or b"\0" in looked:
        return False
    try:
        looked.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(looked) - 3 and len(head) > _LOOKED_AT
    return True
