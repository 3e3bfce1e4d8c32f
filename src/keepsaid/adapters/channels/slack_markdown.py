"""Markdown for Slack: cut into messages, blocks of code closed and opened again, and nobody notified by a text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from keepsaid.adapters.channels.abilities import SLACK
from keepsaid.text.styled import PartLimits, StyledText, split, utf16_units

MARKDOWN_CHARS_MAX = SLACK.chars_max
"""The length of one message."""

_PLAIN_CHARS_MAX = 4_000 - 20
"""The length of a plain text, with room for the line that marks a repeat."""

_FENCE_CHARS_MAX = 80
"""Room for the fences that close a block of code at the end of a part, and open it again in the next."""

_NAMED_LETTERS = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_WIDEST = {letter: len(name) for letter, name in _NAMED_LETTERS.items()}
_MEANT = re.compile(r"<(?=[@#!])|&(?=(?:amp|lt|gt);)")
"""Where Slack reads a mention, or a letter that is written by its name."""

_NAMES = re.compile(r"&(amp|lt|gt);")
_LETTERS = {"amp": "&", "lt": "<", "gt": ">"}
_SPECIAL = re.compile(r"[&<>]")
_FENCE = re.compile(r"[ \t]*(`{3,20}|~{3,20})([^\n]*)")
_LANGUAGE = re.compile(r"[\w+#.-]{0,40}")


def escaped(markdown: str) -> str:
    """Markdown in which Slack finds no mention: `<!channel>` is shown, and notifies nobody."""
    return _MEANT.sub(lambda found: _NAMED_LETTERS[found.group()], markdown)


def markdown_parts(markdown: str) -> Iterator[str]:
    """Cut Markdown into parts of at most 11,000 characters, as they are sent; joined they have the words of the whole.

    A part ends between paragraphs, lines or words where one of these is near. None is empty but of an empty text.
    """
    limits = PartLimits(MARKDOWN_CHARS_MAX - 2 * _FENCE_CHARS_MAX, 1, _chars)
    opening, begins_line = "", True
    for piece in split(StyledText(markdown), limits):
        still_open = _open_fence(piece.text, opening, begins_line=begins_line)
        head = f"{opening}\n" if opening else ""
        tail = f"{'' if piece.text.endswith(chr(10)) else chr(10)}{_marks(still_open)}" if still_open else ""
        yield escaped(f"{head}{piece.text}{tail}")
        opening, begins_line = still_open, piece.text.endswith("\n")


def plain_parts(part: str) -> Iterator[str]:
    """The texts of at most 4,000 characters that replace a part which Slack refuses as Markdown.

    They show its source, in which nothing has a meaning for Slack.
    """
    source = _NAMES.sub(lambda found: _LETTERS[found.group(1)], part)
    for piece in split(StyledText(source), PartLimits(_PLAIN_CHARS_MAX, 1, _chars)):
        yield _SPECIAL.sub(lambda found: _NAMED_LETTERS[found.group()], piece.text)


def _chars(letter: str) -> int:
    """The characters that a letter takes at most when it is sent."""
    return _WIDEST.get(letter, 0) or utf16_units(letter)


def _open_fence(text: str, opening: str, *, begins_line: bool) -> str:
    """The line that opened the block of code in which a piece ends; "" outside of one. `opening` is that before it."""
    for number, line in enumerate(text.split("\n")):
        found = _FENCE.match(line) if number or begins_line else None
        if found is None:
            continue
        marks, info = found.group(1), found.group(2).strip()
        if not opening:
            if marks[0] != "`" or "`" not in info:
                language = _LANGUAGE.match(info)
                opening = f"{marks}{language.group() if language else ''}"
        elif not info and marks[0] == opening[0] and len(marks) >= len(_marks(opening)):
            opening = ""
    return opening


def _marks(opening: str) -> str:
    """The marks of a fence, which close it."""
    return opening[: len(opening) - len(opening.lstrip(opening[0]))]
