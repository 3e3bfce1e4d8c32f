"""Text rules at the door: what is stored for search, and hashes that name things."""

from __future__ import annotations

import unicodedata
from hashlib import blake2b

_NAME_CHARS_MAX = 120
_ROUND = str.maketrans("[]", "()")
_KINDS = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
_UNSTORABLE = dict.fromkeys([0, *range(0xD800, 0xE000)], 0xFFFD)


def normalise(text: str) -> str:
    """Searchable text: NFC, with NUL and lone surrogates replaced by U+FFFD (PostgreSQL and UTF-8 refuse them)."""
    if text.isascii():
        return text.replace("\0", "�")
    return unicodedata.normalize("NFC", text.translate(_UNSTORABLE))


def kind_of(value: object) -> str:
    """What a value read from JSON is, in words that its sender knows."""
    return _KINDS.get(type(value), "null")


def digest(*parts: str | bytes | None) -> bytes:
    """A 16-byte hash of the parts; parts cannot run into one another, and None differs from an empty part."""
    fields = []
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        fields.append(b"n" if raw is None else b"%d:%b" % (len(raw), raw))
    return blake2b(b"".join(fields), digest_size=16).digest()


def joined(separator: str, *parts: str) -> str:
    """The parts as one name, which no other parts give: `%` and the separator are escaped in all but the last."""
    code = f"%{ord(separator):02X}"
    escaped = [part.replace("%", "%25").replace(separator, code) for part in parts[:-1]]
    return separator.join([*escaped, *parts[-1:]])


def parted(separator: str, name: str, count: int) -> tuple[str, ...]:
    """The `count` parts that `joined` made a name of; fewer when it was made of fewer."""
    code = f"%{ord(separator):02X}"
    *escaped, last = name.split(separator, count - 1)
    return (*(part.replace(code, separator).replace("%25", "%") for part in escaped), last)


def named_short(name: str) -> str:
    """A name from outside as it stands inside a label of ours: short, on one line, and unable to end it."""
    return cut(" ".join(name.translate(_ROUND).split()), _NAME_CHARS_MAX)


def cut(text: str, limit: int) -> str:
    """The text, at most `limit` characters, with a mark where it was cut."""
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"
