"""Reads the items of a large JSON array one at a time, and the objects of a file with one JSON object per line."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO, Any, NoReturn

from keepsaid.services.imports.files import ImportFiles, refused

ITEM_CHARS_MAX = 64_000_000
"""Characters of one item, such as a conversation: the memory that a file of any size takes follows from it."""

LINE_BYTES_MAX = 16_000_000
"""Bytes of one line."""

_CHUNK_BYTES = 1_000_000
_SPACE = re.compile(r"[ \t\r\n\ufeff]*")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


class _JsonText:
    """The text of a file from where it was read to; more is read on demand."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.text = ""
        self.at = 0
        self.is_whole = False

    def more(self) -> bool:
        """Read as much again as there is, at least a chunk; False at the end of the file."""
        if self.is_whole:
            return False
        self.text, self.at = self.text[self.at :], 0
        raw = self._file.read(max(_CHUNK_BYTES, len(self.text)))
        self.is_whole = not raw
        self.text += self._decoder.decode(raw, final=not raw)
        return True

    def mark(self) -> str:
        """The next character that is not space, which stays; "" at the end."""
        while True:
            found = _SPACE.match(self.text, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def value(self) -> Any:
        """The JSON value that starts here. Raises ValueError and RecursionError."""
        while True:
            try:
                value, self.at = _DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError:
                if len(self.text) - self.at > ITEM_CHARS_MAX:
                    raise ValueError(f"an item has more than {ITEM_CHARS_MAX:,} characters") from None
                if not self.more():
                    raise
            else:
                return value


def items_in(files: ImportFiles, name: str) -> Iterator[Any]:
    """The items of the array that a file holds, each decoded by itself.

    Raises InputError for a file that holds no array or is not whole; the items before were given by then.
    """
    with files.open(name) as file:
        try:
            yield from _items(_JsonText(file))
        except RecursionError as error:
            raise refused(f"{files.where(name)} is nested too deeply") from error
        except json.JSONDecodeError as error:
            raise refused(f"{files.where(name)} is not JSON, or is not whole") from error
        except ValueError as error:
            raise refused(f"{files.where(name)} is not JSON: {error}") from error


def _items(text: _JsonText) -> Iterator[Any]:
    if text.mark() != "[":
        raise ValueError("it is not a list")
    text.at += 1
    is_first = True
    while (mark := text.mark()) != "]":
        if not is_first:
            if mark != ",":
                raise ValueError("a list is not whole" if not mark else "two items are not apart")
            text.at += 1
            text.mark()
        is_first = False
        yield text.value()
    text.at += 1
    if text.mark():
        raise ValueError("something follows its list")


def objects_in(files: ImportFiles, name: str) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """The number of each line that is not empty, from 1, and its object; None for a line that holds none."""
    with files.open(name) as file:
        number = 0
        while line := file.readline(LINE_BYTES_MAX + 1):
            number += 1
            if len(line) > LINE_BYTES_MAX:
                raise refused(f"{files.where(name)}: line {number} has more than {LINE_BYTES_MAX:,} bytes")
            if line.strip():
                yield number, _object(line)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = _DECODER.decode(line.decode("utf-8-sig").strip())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
