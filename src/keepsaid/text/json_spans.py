"""Places of values in a JSON document: where the members of an object and the items of a list begin and end.

A document is changed in place with these: everything outside of a span stays byte for byte as it came.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

_SPACE = re.compile(rb"[ \t\n\r]*+")
_MARK = re.compile(rb'["\[\]{}]')
_SCALAR = re.compile(rb"[^,\]}\s]++")
_BOM = b"\xef\xbb\xbf"
_INSIDE = re.compile(rb'(?:[^"\\]{1,4096}+|\\.){1,64}+', re.DOTALL)
"""A part of a string; bounded, so that no step holds the interpreter lock for long."""

_QUOTE, _COMMA, _OPENERS = 0x22, 0x2C, (0x7B, 0x5B)


class ByteSpan(NamedTuple):
    """Offsets of a value in bytes: its first, and the one after its last."""

    start: int
    end: int


def members(raw: bytes, at: int = 0) -> dict[str, ByteSpan]:
    """The values of the object that begins at offset `at`, or after space there, by the names of its members.

    The document must be valid: `json_reader.read_json` has read it.
    """
    found: dict[str, ByteSpan] = {}
    at = _opened(raw, at)
    while raw[at] == _QUOTE:
        end = _string_end(raw, at)
        name = json.loads(raw[at:end])
        start = _after_space(raw, _after_space(raw, end) + 1)
        found[name] = ByteSpan(start, _value_end(raw, start))
        at = _next(raw, found[name].end)
    return found


def items(raw: bytes, at: int) -> list[ByteSpan]:
    """The items of the list that begins at offset `at`. The document must be valid."""
    found: list[ByteSpan] = []
    at = _opened(raw, at)
    while raw[at] != 0x5D:
        found.append(ByteSpan(at, _value_end(raw, at)))
        at = _next(raw, found[-1].end)
    return found


def replaced(raw: bytes, changes: list[tuple[ByteSpan, bytes]]) -> bytes:
    """The document with other bytes at spans that do not overlap; an empty span inserts."""
    parts: list[bytes | memoryview] = []
    view, at = memoryview(raw), 0
    for span, value in sorted(changes):
        parts += (view[at : span.start], value)
        at = span.end
    return b"".join([*parts, view[at:]])


def _opened(raw: bytes, at: int) -> int:
    if at == 0 and raw.startswith(_BOM):
        at = len(_BOM)
    return _after_space(raw, _after_space(raw, at) + 1)


def _next(raw: bytes, at: int) -> int:
    at = _after_space(raw, at)
    return _after_space(raw, at + 1) if raw[at] == _COMMA else at


def _after_space(raw: bytes, at: int) -> int:
    found = _SPACE.match(raw, at)
    return found.end() if found else at


def _value_end(raw: bytes, at: int) -> int:
    if raw[at] == _QUOTE:
        return _string_end(raw, at)
    if raw[at] not in _OPENERS:
        scalar = _SCALAR.match(raw, at)
        assert scalar is not None, "the document is valid"
        return scalar.end()
    depth = 0
    while True:
        mark = _MARK.search(raw, at)
        assert mark is not None, "the document is valid"
        at = mark.end()
        if raw[mark.start()] == _QUOTE:
            at = _string_end(raw, mark.start())
        elif raw[mark.start()] in _OPENERS:
            depth += 1
        else:
            depth -= 1
            if not depth:
                return at


def _string_end(raw: bytes, at: int) -> int:
    """The offset after the quote that ends a string."""
    at += 1
    while (inside := _INSIDE.match(raw, at)) is not None:
        at = inside.end()
    return at + 1
