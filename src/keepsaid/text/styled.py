"""Styled text: words with spans of style, as media show them, and cut into parts that a medium takes."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from keepsaid.values import frozen


class Style(StrEnum):
    """How a span is shown."""

    BOLD = "bold"
    ITALIC = "italic"
    STRIKE = "strike"
    CODE = "code"
    BLOCK = "block"
    LINK = "link"
    QUOTE = "quote"


class StyleSpan(NamedTuple):
    """A span of a text, in characters; `detail` is the address of a link, or the language of a block of code."""

    start: int
    end: int
    style: Style
    detail: str = ""


@frozen
class StyledText:
    """A text without marks, and its spans in the order of their starts."""

    text: str
    spans: Sequence[StyleSpan] = ()

    def cut(self, start: int, end: int) -> StyledText:
        """A piece of it; a span that goes beyond is closed there, and goes on in the next piece."""
        held = (
            StyleSpan(max(span.start, start) - start, min(span.end, end) - start, span.style, span.detail)
            for span in self.spans
            if span.start < end and span.end > start
        )
        return StyledText(self.text[start:end], tuple(held))


class PartLimits(NamedTuple):
    """What a medium takes in one message: units of text, as `unit` counts a character, and spans."""

    units: int
    spans: int
    unit: Callable[[str], int]


def utf16_units(character: str) -> int:
    """The units of UTF-16 that a character has, as Telegram counts."""
    return 2 if ord(character) > 0xFFFF else 1


_BREAKS = ("\n\n", "\n", ". ", "! ", "? ", "。", " ")
"""Where a text is rather cut, the best first: between paragraphs, lines, sentences and words."""

_LEAST_SHARE = 0.5
"""A better break is taken only where it leaves a part at least so full."""

_JOINERS = frozenset("\u200d\ufe0f\ufe0e\u20e3")
"""What belongs to the character before it, besides combining marks."""

_CLUSTER_MAX = 64
"""Marks that are kept with the character before them; more of them are not part of any language."""


def split(styled: StyledText, limits: PartLimits) -> Iterator[StyledText]:
    """Cut a text into parts that a medium takes. Joined they are the whole text; no part is empty but of an empty text.

    A part ends between paragraphs, lines, sentences or words where one of these is near, never within a character.
    """
    start, text, spans = 0, styled.text, sorted(styled.spans)
    begun = 0
    held: list[StyleSpan] = []
    while start < len(text):
        end = _end(text, start, limits)
        while begun < len(spans) and spans[begun].start < end:
            held.append(spans[begun])
            begun += 1
        if len(held) > limits.spans:
            end = min(end, max(held[limits.spans].start, start + 1))
        yield StyledText(text, held).cut(start, end)
        held = [span for span in held if span.end > end]
        start = end


def _end(text: str, start: int, limits: PartLimits) -> int:
    """Where the part that begins at `start` ends."""
    end, left = start, limits.units
    while end < len(text) and (units := limits.unit(text[end])) <= left:
        left -= units
        end += 1
    if end == len(text):
        return end
    least = start + int((end - start) * _LEAST_SHARE)
    for mark in _BREAKS:
        if (found := text.rfind(mark, least, end)) >= 0:
            return found + len(mark)
    return _whole_character(text, start, end)


def _whole_character(text: str, start: int, end: int) -> int:
    """A place near `end` that is not within a character with its marks; beyond `start` in any case."""
    at = end
    while at > max(start + 1, end - _CLUSTER_MAX) and _belongs_before(text, at):
        at -= 1
    return end if _belongs_before(text, at) or at <= start else at


def _belongs_before(text: str, at: int) -> bool:
    """Whether the character at a place is one with that before it."""
    return text[at] in _JOINERS or text[at - 1] == "\u200d" or unicodedata.combining(text[at]) != 0
