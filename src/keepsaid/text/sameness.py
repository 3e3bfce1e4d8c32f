"""Sameness: whether two texts say the same, in other words or in the same."""

from __future__ import annotations

from math import ceil

from keepsaid.text.languages import function_words
from keepsaid.text.patterns import lazy
from keepsaid.text.words import fold, spelled

ALIKE = 0.75
"""Word sets that share more than this of all their words say the same (seed 002)."""

WORDS_MIN = 5
"""Of texts with fewer words nothing is said by what they share."""

_LOOKED_UP_MAX = 64
_DIGITS = lazy(r"\d")
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
    words, grammar = word_set(text), function_words(text)
    ranked = sorted(words, key=lambda word: (word in grammar, -len(word), word))
    return ranked[: min(ceil(len(words) * (1 - ALIKE)), _LOOKED_UP_MAX)]
