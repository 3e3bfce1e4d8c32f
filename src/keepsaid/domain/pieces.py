"""Pieces: what is searched in place of a long text, and the words about a text that do not stand in it."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime, timedelta
from itertools import pairwise

WHOLE_CHARS_MAX = 1_000
"""A text of so many characters is one piece."""

_PIECE_CHARS = 800
_PIECE_CHARS_MIN = 400
_PIECES_MAX = 256
_BREAKS = ("\n\n", "\n", ". ", " ")

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Scripts that set no spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese; and Korean, whose words
carry endings."""


def pieces(text: str) -> list[str]:
    """The text in pieces that say something each, cut where a paragraph, a sentence or at least a word ends."""
    if len(text) <= WHOLE_CHARS_MAX:
        return [text]
    found: list[str] = []
    at = 0
    while len(text) - at > WHOLE_CHARS_MAX and len(found) < _PIECES_MAX - 1:
        end = _break(text, at)
        found.append(text[at:end])
        at = end
    found.append(text[at:])
    return found


def _break(text: str, at: int) -> int:
    for mark in _BREAKS:
        place = text.rfind(mark, at + _PIECE_CHARS_MIN, at + _PIECE_CHARS)
        if place >= 0:
            return place + len(mark)
    return at + _PIECE_CHARS


_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999, which are those that dates can name."""


def said_words(at: int) -> str:
    """The words a person could name a time with: `8 May 2023 Monday`, UTC; none for an unknown or impossible one."""
    if at == 0 or not _FIRST_MS <= at <= _LAST_MS:
        return ""
    day = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year} {_DAYS[day.weekday()]}"


def grams(text: str, *, letters: bool = False) -> list[str]:
    """Neighbouring letters in pairs, of every run of a script that sets no spaces; one that stands alone as it is.

    With `letters` every letter too: so texts are indexed, for a question may be of one letter.
    """
    if text.isascii():
        return []
    found: list[str] = []
    for run in _UNSPACED.findall(text):
        bare = [letter for letter in run if not unicodedata.category(letter).startswith("M")]
        if letters or len(bare) == 1:
            found += bare
        found += [one + other for one, other in pairwise(bare)]
    return found
