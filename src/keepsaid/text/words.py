"""Words: tokens, their folded form and rarity; pairs of letters; and the chunks that are indexed of a long text."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise, product
from math import log

from keepsaid.text.normal import normalise
from keepsaid.text.patterns import lazy
from keepsaid.text.stems import stem
from keepsaid.values import frozen

_WORD = lazy(r"[^\W_]+")
_CLAUSES = lazy(r"[^\w\s'’-]")
_APART = "".join(letter if letter.isalnum() else " " for letter in map(chr, range(128)))
_KEPT_CHARS_MAX = 64


def fold(word: str) -> str:
    """A word without case, and without the accents of Latin letters: the token that the index has of it.

    As unicode61 of SQLite's FTS5 does, it keeps what is not an accent (й, が, أ), and letters with two of them (ế).
    """
    return word.lower() if word.isascii() else normalise(word).translate(_FOLDED)


class _Folded(dict[int, str]):
    """The folded form of each letter, found when it is first met."""

    def __missing__(self, code: int) -> str:
        """Find the folded form of a letter, and keep it."""
        letter = chr(code).lower()
        parts = unicodedata.normalize("NFD", letter)
        if unicodedata.combining(letter[0]):
            letter = ""
        elif len(parts) == 2 and parts[0].isascii() and unicodedata.combining(parts[1]):
            letter = parts[0]
        self[code] = _FINAL.get(letter, letter)
        return self[code]


_FINAL = {"ς": "σ", "ſ": "s", "µ": "μ"}
_FOLDED = _Folded()


def spelled(text: str) -> list[str]:
    """The words of a text in order, as they stand there."""
    return text.translate(_APART).split() if text.isascii() else _WORD.findall(text)


def first_word(text: str) -> str:
    """The first word of a text as it stands there; empty for none."""
    found = _WORD.search(text)
    return found.group() if found else ""


def place(text: str, n: int) -> int:
    """Where word `n` of a text starts, counted from 0."""
    return next(islice(_WORD.finditer(text), n, None)).start()


def root(word: str) -> str:
    """What the forms of one word have in common, however it is written: the stem of the folded word."""
    return _root(word) if len(word) <= _KEPT_CHARS_MAX else fold(word)


@lru_cache(20_000)
def _root(word: str) -> str:
    return stem(fold(word))


def beginnings(stems: Collection[str]) -> tuple[frozenset[str], int]:
    """How words with these stems begin, in either case, and the letters of each: two, where no stem has but one.

    A stem keeps the first two letters of its word, but for a y, which becomes an i.
    """
    size = 1 if any(len(stem) < 2 for stem in stems) else 2
    cut = {stem[:size] for stem in stems}
    cut |= {f"{begin[0]}y" for begin in cut if begin[1:] == "i"}
    written = {"".join(letters) for begin in cut for letters in product(*((one, one.upper()) for one in begin))}
    return frozenset(written), size


UNSEEN = 500
"""The extra pieces assumed when word rarity is computed: in a small store, rarity says little."""


@frozen
class DocumentFrequencies:
    """In how many pieces the words of a text occur, by stem; `pieces` is the number of all pieces."""

    pieces: int = 0
    among: Mapping[str, int] = field(default_factory=dict)

    def idf(self, stem: str) -> float:
        """Return the inverse document frequency of a stem: the log of pieces without it against pieces with it."""
        having, all_ = min(self.among.get(stem, 0), self.pieces) + 1, self.pieces + UNSEEN
        return log(1 + (all_ - having + 0.5) / (having + 0.5))


WHOLE_CHARS_MAX = 1_000
"""A text of at most this number of characters is one piece."""

_PIECE_CHARS = 800
_PIECE_CHARS_MIN = 400
_PIECES_MAX = 256
_BREAKS = ("\n\n", "\n", ". ", " ")

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_UNSPACED = lazy(
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
