"""Chunks: what is searched in place of a long text; and whether two texts say the same, by their words."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import ceil

from keepsaid.text.words import STOPWORDS, fold, spelled

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
        places = ((text.rfind(mark, at + _PIECE_CHARS_MIN, at + _PIECE_CHARS), mark) for mark in _BREAKS)
        end = next((place + len(mark) for place, mark in places if place >= 0), at + _PIECE_CHARS)
        found.append(text[at:end])
        at = end
    found.append(text[at:])
    return found


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


ALIKE = 0.75
"""Word sets that share more than this of all their words say the same (seed 002)."""

WORDS_MIN = 5
"""Of texts with fewer words nothing is said by what they share."""

_LOOKED_UP_MAX = 64
_DIGITS = re.compile(r"\d")
_TURNING = frozenset(["no", "not", "never", "without", "none", "nor", "neither", "cannot", "t", "before", "after"])
"""Words that turn a sentence round; `t` is what `don't` leaves."""


def word_set(text: str) -> frozenset[str]:
    """The words of a text, without case and accents."""
    return frozenset(fold(word) for word in spelled(text))


def say_the_same(one: str, other: str) -> bool:
    """Whether two texts have the same words in the same order, or more than ALIKE of five words or more in common.

    Texts that differ in a number, or in a word that turns a sentence round, do not say the same.
    """
    if [fold(word) for word in spelled(one)] == [fold(word) for word in spelled(other)]:
        return True
    first, second = word_set(one), word_set(other)
    if min(len(first), len(second)) < WORDS_MIN or len(first & second) <= ALIKE * len(first | second):
        return False
    return not any(word in _TURNING or _DIGITS.search(word) for word in first ^ second)


def telling(text: str) -> list[str]:
    """Words of which any text that says the same as this one has at least one, the rarest first by their look.

    Of a set of n words, one that shares more than three quarters lacks less than n / 4 of them.
    """
    words = word_set(text)
    ranked = sorted(words, key=lambda word: (word in STOPWORDS, -len(word), word))
    return ranked[: min(ceil(len(words) * (1 - ALIKE)), _LOOKED_UP_MAX)]
