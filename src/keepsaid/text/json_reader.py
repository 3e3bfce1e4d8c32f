"""JSON reader for outside text: linear, in short steps, bounded in values and depth; finite numbers, storable text.

`json.loads` reads a body of 24 MB in one call, which holds the interpreter lock for 0.1 s to 4 s. The reader below
takes no step longer than a few thousand characters: it can run on a thread beside the event loop, and can be stopped.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

VALUES_MAX = 200_000
"""Values of one document: members of objects, items of lists and the document itself."""

DEPTH_MAX = 512
"""Levels of nesting of one document."""

_NUMBER_CHARS_MAX = 300
"""Characters of one number: any such integer can become a float."""

_QUOTED_CHARS_MAX = 80
_AT_ONCE_BYTES_MAX = 64_000
_SLOWLY_BYTES_MAX = 4_000
"""Documents up to these sizes are read in a few milliseconds: those that `json.loads` may read, and any."""

_LOOK_EVERY = 256
_BOM = b"\xef\xbb\xbf"
_SPACES = frozenset((b" ", b"\t", b"\n", b"\r"))
_NUMBER_MARKS = frozenset(b"%d" % digit for digit in range(10)) | {b"-"}
_SPACE = re.compile(rb"[ \t\n\r]{0,65536}")
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]{0,400})(\.[0-9]{1,400})?([eE][-+]?[0-9]{1,400})?")
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]{0,65536}')
_SHORT = re.compile(rb'"([ !#-\[\]-~]{0,256})"')
_ESCAPES = re.compile(
    rb"(?:(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[\"\\/bfnrt])"
    rb'[^"\\\x00-\x1f]{0,64}){1,1024}'
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_MAY_HOLD_SURROGATES = re.compile(rb"\xed[\xa0-\xbf]|\\u[dD][89a-fA-F]")
_WORDS = ((b"true", True), (b"false", False), (b"null", None))
_OPENERS = frozenset((b"{", b"["))
_OPENED = object()


class Unreadable(ValueError):
    """A document that is not JSON, or exceeds a limit; the text says what is wrong and where."""


class Abandoned(Exception):
    """Nobody waits for the document any more."""


def reads_at_once(raw: bytes) -> bool:
    """Whether a document is read within a few milliseconds, so that the event loop can do it."""
    return len(raw) <= _SLOWLY_BYTES_MAX or _is_short_and_plain(raw)


def read_json(raw: bytes, wanted: Callable[[], bool] | None = None) -> Any:
    """The value of a document in UTF-8.

    A name that stands twice in an object, NaN and Infinity, a number of more than 300 characters or beyond a float,
    more than VALUES_MAX values and more than DEPTH_MAX levels are refused with Unreadable. NUL stays; lone surrogates
    become U+FFFD. `wanted` is asked now and then; Abandoned is raised when it says no.
    """
    if _is_short_and_plain(raw):
        return _read_at_once(raw)
    return _Reader(raw, wanted or (lambda: True)).document()


def _is_short_and_plain(raw: bytes) -> bool:
    """Whether `json.loads` reads it as the reader below does, and soon."""
    if len(raw) > _AT_ONCE_BYTES_MAX:
        return False
    nested = len(raw) > DEPTH_MAX and raw.count(b"[") + raw.count(b"{") > DEPTH_MAX
    return not nested and _MAY_HOLD_SURROGATES.search(raw) is None


def _read_at_once(raw: bytes) -> Any:
    try:
        text = raw.removeprefix(_BOM).decode()
        return json.loads(
            text, object_pairs_hook=_members, parse_constant=_no_number, parse_float=_real, parse_int=_whole
        )
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise Unreadable(f"{error.msg} (character {error.pos})") from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                _twice(name)
            seen.add(name)
    return found


def _twice(name: str) -> NoReturn:
    raise Unreadable(f"{name[:_QUOTED_CHARS_MAX]!r} stands twice in one object")


def _no_number(name: str) -> NoReturn:
    raise Unreadable(f"{name} is not a number")


def _whole(literal: str) -> int:
    if len(literal) > _NUMBER_CHARS_MAX:
        raise Unreadable(f"a number has more than {_NUMBER_CHARS_MAX} characters")
    return int(literal)


def _real(literal: str) -> float:
    if len(literal) > _NUMBER_CHARS_MAX:
        raise Unreadable(f"a number has more than {_NUMBER_CHARS_MAX} characters")
    value = float(literal)
    if not math.isfinite(value):
        raise Unreadable(f"the number {literal[:_QUOTED_CHARS_MAX]} is too large")
    return value


class _Reader:
    """Reads one document without recursion, token by token."""

    def __init__(self, raw: bytes, wanted: Callable[[], bool]) -> None:
        self._raw = raw
        self._wanted = wanted
        self._at = len(_BOM) if raw.startswith(_BOM) else 0
        self._values = self._steps = 0
        self._open: list[list[Any] | dict[str, Any]] = []
        self._names: list[str] = []

    def document(self) -> Any:
        """The value; raises Unreadable or Abandoned."""
        value = self._value()
        while True:
            if value is _OPENED:
                value = self._close() if self._ends() else self._next()
            elif not self._open:
                if self._mark():
                    self._fail("the document goes on after its end")
                return value
            else:
                if isinstance(into := self._open[-1], dict):
                    into[self._names.pop()] = value
                else:
                    into.append(value)
                value = self._next() if self._goes_on() else self._close()

    def _next(self) -> Any:
        if isinstance(self._open[-1], dict):
            self._name(self._open[-1])
        return self._value()

    def _value(self) -> Any:
        self._step()
        self._values += 1
        if self._values > VALUES_MAX:
            raise Unreadable(f"it holds more than {VALUES_MAX:,} values")
        if (mark := self._mark()) == b'"':
            return self._text()
        if mark in _OPENERS:
            self._at += 1
            self._open.append({} if mark == b"{" else [])
            if len(self._open) > DEPTH_MAX:
                raise Unreadable("it is nested too deeply")
            return _OPENED
        return self._number() if mark in _NUMBER_MARKS else self._word()

    def _close(self) -> Any:
        self._at += 1
        return self._open.pop()

    def _ends(self) -> bool:
        """Whether the innermost object or list ends here."""
        return self._mark() == (b"}" if isinstance(self._open[-1], dict) else b"]")

    def _goes_on(self) -> bool:
        """Whether another member follows; else the innermost object or list ends here."""
        if self._ends():
            return False
        self._expect(b",")
        return True

    def _name(self, within: dict[str, Any]) -> None:
        if self._mark() != b'"':
            self._fail("a name in double quotes is missing")
        if (name := self._text()) in within:
            _twice(name)
        self._expect(b":")
        self._names.append(name)

    def _expect(self, mark: bytes) -> None:
        if self._mark() != mark:
            self._fail(f"{mark.decode()!r} is missing")
        self._at += 1

    def _mark(self) -> bytes:
        """The next byte that is not a space; b"" at the end."""
        while (mark := self._raw[self._at : self._at + 1]) in _SPACES:
            found = _SPACE.match(self._raw, self._at)
            self._at = self._at + 1 if found is None else found.end()
            self._step()
        return mark

    def _number(self) -> float:
        if (found := _NUMBER.match(self._raw, self._at)) is None:
            if self._raw.startswith(b"-Infinity", self._at):
                _no_number("-Infinity")
            self._fail("a number is cut off")
        self._at = found.end()
        literal = found.group().decode()
        return _real(literal) if found.group(1) or found.group(2) else _whole(literal)

    def _word(self) -> bool | None:
        for word, value in _WORDS:
            if self._raw.startswith(word, self._at):
                self._at += len(word)
                return value
        name = next((one for one in ("NaN", "Infinity") if self._raw.startswith(one.encode(), self._at)), None)
        return self._fail("a value is missing") if name is None else _no_number(name)

    def _text(self) -> str:
        if (short := _SHORT.match(self._raw, self._at)) is not None:
            self._at = short.end()
            return short.group(1).decode()
        pieces: list[str] = []
        self._at += 1
        while True:
            self._step()
            if (mark := self._raw[self._at : self._at + 1]) == b'"':
                self._at += 1
                return "".join(pieces)
            pieces.append(self._escapes() if mark == b"\\" else self._plain())

    def _plain(self) -> str:
        found = _PLAIN.match(self._raw, self._at)
        if found is None or found.end() == self._at:
            self._fail("a text is not closed" if self._at == len(self._raw) else "a text holds a control character")
        return self._taken(found.end())

    def _escapes(self) -> str:
        if (found := _ESCAPES.match(self._raw, self._at)) is None:
            self._fail("a text holds an invalid escape")
        return _SURROGATES.sub("\ufffd", json.loads(f'"{self._taken(found.end())}"'))

    def _taken(self, end: int) -> str:
        """The text up to `end`, or to the last character that ends there; it goes on behind it."""
        start, least = self._at, max(self._at + 1, end - 3)
        while end > least and self._raw[end : end + 1] and self._raw[end] & 0xC0 == 0x80:
            end -= 1
        self._at = end
        try:
            text = self._raw[start:end].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise Unreadable(f"it is not UTF-8 (byte {start + error.start})") from None
        return text if text.isascii() else _SURROGATES.sub("\ufffd", text)

    def _step(self) -> None:
        self._steps += 1
        if self._steps % _LOOK_EVERY == 0 and not self._wanted():
            raise Abandoned

    def _fail(self, what: str) -> NoReturn:
        if self._raw[self._at : self._at + 1] >= b"\x80":
            try:
                self._raw[self._at : self._at + 4].decode()
            except UnicodeDecodeError as error:
                what = what if error.start else "it is not UTF-8"
        raise Unreadable(f"{what} (byte {self._at})")
