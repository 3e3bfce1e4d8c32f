"""Tokens: what a text costs, estimated by classes of words, without the vocabulary of any model.

A text is cut where the tokenizers of today cut it before they merge letters, which decides most of the cost. The
weights are means of o200k over prose and code. What a model then reports corrects the sum (`Calibration`).
"""

from __future__ import annotations

import re
from functools import lru_cache

from keepsaid.values import frozen

_SMALL, _CAPITAL = "a-zß-öø-ÿ", "A-ZÀ-ÖØ-Þ"
_WORD = f"(?:[{_CAPITAL}]*[{_SMALL}]+|[{_CAPITAL}]+)"
_PIECE = re.compile(
    rf"[^\w\r\n]?{_WORD}(?:'(?:[sS]|[tT]|re|ve|m|ll|d)\b)?|_{_WORD}|[^\w\r\n]?[^\W\d_]+"
    r"|[0-9]{1,3}|\d| ?[^\s\w]+[\r\n/]*|_+|\s*[\r\n]+|\s+(?!\S)|\s"
)
_KEPT_CHARS_MAX = 4_096
_SLICE_CHARS = 2_048
_SLICES_MAX = 16

_SHOUTED, _GLUED, _APART, _ENDLESS = 0.3, 0.07, 0.03, 0.4
"""What a letter costs beyond the first ones: of a word in capitals, one after no space, one after a space, and
beyond the sixteenth letter of any."""

_SPACES = 64
"""The spaces or line ends that are one token."""

_ALPHABETS, _SYLLABLES, _IDEOGRAPHS, _BEYOND = "\u0250", "\u0530", "\u2e80", "\U00010000"

RATIO_MAX = 3.0
"""How far a report may be from the estimate, and a factor from 1; what is further off measures something else."""

_EVIDENCE_MAX = 400_000
"""Estimated tokens after which what was reported before counts half."""


@frozen
class Calibration:
    """What a model reported for its prompts, beside what was estimated for the same, in tokens."""

    model: str
    estimated: int = 0
    reported: int = 0

    @property
    def factor(self) -> float:
        """By what an estimate is multiplied; 1 before anything was reported."""
        if not self.estimated:
            return 1.0
        return round(min(RATIO_MAX, max(1 / RATIO_MAX, self.reported / self.estimated)), 4)

    def with_sample(self, estimated: int, reported: int) -> Calibration:
        """Return the calibration with one more prompt; a report out of all proportion changes nothing."""
        if not (reported > 0 and estimated / RATIO_MAX <= reported <= estimated * RATIO_MAX):
            return self
        told, was = self.reported + reported, self.estimated + estimated
        share = 2 if was > _EVIDENCE_MAX else 1
        return Calibration(self.model, was // share, told // share)


def estimate_tokens(text: str) -> int:
    """Estimated tokens of a text.

    Of a text of 4,096 characters or more slices are counted, sixteen of 2,048 characters at most.
    """
    if len(text) < _KEPT_CHARS_MAX:
        return _estimate(text)
    count = min(-(-len(text) // _SLICE_CHARS), _SLICES_MAX)
    slices = [text[start : start + _SLICE_CHARS] for start in (len(text) * n // count for n in range(count))]
    return sum(map(_estimate, slices)) * len(text) // sum(map(len, slices))


@lru_cache(4_096)
def _estimate(text: str) -> int:
    return int(sum(map(_cost, _PIECE.findall(text))) + 0.5)


@lru_cache(16_384)
def _cost(piece: str) -> float:
    """What one piece costs, one token at least."""
    letters = piece.partition("'")[0].strip(" ")
    if not letters or letters.isspace():
        return max(1.0, len(piece) / _SPACES)
    word = letters if letters[0].isalnum() else letters[1:]
    if not word.isalpha():
        foreign = 0 if letters.isascii() else sum(mark > "\x7f" for mark in letters)
        return 1.0 + 0.5 * max(0, len(letters) - foreign - 3) + 0.8 * max(0, foreign - 1)
    return _cost_of_word(word, after_space=piece[0] == " ") if word.isascii() else _cost_of_script(word)


def _cost_of_word(word: str, *, after_space: bool) -> float:
    length = len(word)
    if length > 1 and word.isupper():
        return 1.0 + _SHOUTED * max(0, length - 3)
    dear = _ENDLESS * max(0, length - 16)
    return 1.0 + dear + (_APART * max(0, length - 6) if after_space else _GLUED * max(0, length - 2))


def _cost_of_script(word: str) -> float:
    """Letters outside English: accented Latin, other alphabets, ideographs, and what lies beyond."""
    if (first := max(word)) >= _IDEOGRAPHS:
        return max(1.0, (0.85 if first < _BEYOND else 1.5) * len(word))
    return 1.0 + (0.3 if first < _ALPHABETS else 0.18 if first < _SYLLABLES else 0.4) * max(0, len(word) - 3)
