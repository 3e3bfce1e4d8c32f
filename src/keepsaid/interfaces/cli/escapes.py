"""Escapes: outside text as a terminal may show it, with every character that is invisible or a control written out.

Controls, bidirectional overrides and zero-width characters become `\\u{202e}` in text and `\\u202e` in JSON. Text
keeps the few that ordinary writing needs: a joiner inside an emoji or inside a word of an Indic or Arabic script, one
variation selector after a symbol or an ideograph, the tags of the three flags that Unicode recommends, and the
zero-width space between letters of scripts that write no spaces. JSON escapes those too.
"""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from keepsaid.text.patterns import lazy

_HIDDEN = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
_BLACK_FLAG = "\U0001f3f4"
_FLAGS = tuple(
    _BLACK_FLAG + "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)
_HELD_BACK = 16
"""Characters that a streamed text withholds at most, because the next piece may complete them."""

_UNSAFE = lazy(rf"\r\n|{'|'.join(_FLAGS)}|[\x00-\x08\x0b-\x1f\x7f-\x9f{_HIDDEN}]")
_UNSAFE_IN_JSON = lazy(rf"[\x7f-\x9f{_HIDDEN}]")
_UNDECIDED = lazy(rf"[\r{_BLACK_FLAG}{_HIDDEN}]{{1,{_HELD_BACK}}}\Z")

_ZWSP, _ZWNJ, _ZWJ = "\u200b", "\u200c", "\u200d"
_PLAIN_SIGN, _PICTURE = "\ufe0e", "\ufe0f"
_KEYCAPS = frozenset("#*0123456789")
_JOINING = lazy(
    r"[\u0620-\u06ff\u0700-\u08ff\u0900-\u0dff\u0f40-\u0fbc\u1000-\u109f\u1780-\u17d3\u1820-\u18aa\u1b00-\u1b7f"
    r"\ua840-\ua8ff\ua980-\ua9df\uaa60-\uaa7f\ufb50-\ufdff\ufe70-\ufefc\U00011000-\U000119ff]"
)
_SPACELESS = lazy(r"[\u0e01-\u0e4e\u0e81-\u0ecd\u1000-\u109f\u1780-\u17d3]")
_IDEOGRAPH = lazy(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_MONGOLIAN = lazy(r"[\u1820-\u18aa]")


def visible(text: str) -> str:
    """The text with every control and hidden character but tab and line feed as `\\u{..}`; CR LF becomes LF."""
    return _escaped(text, 0)


def json_line(shape: Mapping[str, Any], default: Callable[[Any], Any] | None = None) -> str:
    """The JSON on one line; every control and hidden character is a `\\u....` escape, so a reader gets it back."""
    return _UNSAFE_IN_JSON.sub(_json_escape, json.dumps(shape, ensure_ascii=False, default=default))


class VisibleStream:
    """Makes a text visible that comes in pieces, as if it had come whole."""

    def __init__(self) -> None:
        self._seen = ""
        self._waiting = ""

    def feed(self, piece: str) -> str:
        """What can be shown of the text so far and was not yet."""
        text = self._seen + self._waiting + piece
        held = _UNDECIDED.search(text, max(len(self._seen), len(text) - _HELD_BACK))
        end = len(text) if held is None else held.start()
        shown = _escaped(text, len(self._seen), end)
        self._seen, self._waiting = text[max(0, end - 2) : end], text[end:]
        return shown

    def end(self) -> str:
        """What was withheld, now that nothing follows it."""
        shown = _escaped(self._seen + self._waiting, len(self._seen))
        self._seen = self._waiting = ""
        return shown


class VisibleRecord(logging.Formatter):
    """Formats log records that reach stderr because a command keeps no log file."""

    def format(self, record: logging.LogRecord) -> str:
        """The record and its traceback, made visible."""
        return visible(super().format(record))


def _escaped(text: str, start: int, end: int | None = None) -> str:
    """`text[start:end]` made visible, judged with the characters around it."""
    end = len(text) if end is None else end
    parts, done = [], start
    for found in _UNSAFE.finditer(text, start, end):
        parts += [text[done : found.start()], _shown(text, *found.span())]
        done = found.end()
    return "".join([*parts, text[done:end]]) if parts else text[start:end]


def _shown(text: str, start: int, end: int) -> str:
    hidden = text[start:end]
    if hidden == "\r\n":
        return "\n"
    if end - start > 1 or _is_writing(hidden, text[max(0, start - 2) : start], text[end : end + 1]):
        return hidden
    return f"\\u{{{ord(hidden):x}}}"


def _is_writing(hidden: str, before: str, after: str) -> bool:
    """Whether one hidden character is a part of ordinary writing between these characters."""
    last = before[-1:]
    if hidden == _ZWSP:
        return bool(_SPACELESS.match(last) and _SPACELESS.match(after))
    if hidden in (_ZWNJ, _ZWJ) and _JOINING.match(last):
        return bool(_JOINING.match(after))
    if hidden == _ZWJ:
        base = before[:1] if last == _PICTURE else last
        return _is_symbol(base) and _is_symbol(after)
    if hidden in (_PLAIN_SIGN, _PICTURE):
        return _is_symbol(last) or (last in _KEYCAPS and after == "\u20e3")
    if "\U000e0100" <= hidden <= "\U000e01ef":
        return _IDEOGRAPH.match(last) is not None
    if "\u180b" <= hidden <= "\u180f":
        return _MONGOLIAN.match(last) is not None
    return False


def _is_symbol(letter: str) -> bool:
    """Whether a character is a picture or a sign, such as those that emoji are made of."""
    return len(letter) == 1 and letter > "\x7f" and unicodedata.category(letter) in ("So", "Sm", "Sk", "Po", "Pd")


def _json_escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
