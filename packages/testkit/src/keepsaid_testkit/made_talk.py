"""Made-up talk of any size, to measure recall by: the same for the same number, and of no meaning.

Words are as frequent as in a language (Zipf), which is the worst case for a budget of index entries: nothing has a
topic. Vectors lie in 4,000 clusters of 64 dimensions in 384, with a bias that all share, as those of real models do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from keepsaid.domain.memory import VectorSpace
from keepsaid.values import frozen

DIMENSION = 384
SPACE = VectorSpace("made talk", "1", DIMENSION, b"made talk")

_WORDS, _SPEAKERS = 50_000, ("Ann", "Ben", "Cleo", "Dov")
_WORDS_LEAST, _WORDS_MOST = 20, 40
_ASKED_LEAST, _ASKED_MOST = 6, 10
_CLUSTERS, _LATENT = 4_000, 64
_SYLLABLES = tuple(first + second for first in "bdfgklmnprtvz" for second in "aeiou")
_QUESTIONS_SEED = 1_000_003


@frozen
class MadeQuestion:
    """A question: some words that a text could have, and a vector that is near some."""

    text: str
    vector: bytes


class MadeTalk:
    """Texts and vectors by their number, and questions."""

    def __init__(self, seed: int = 7) -> None:
        self._seed = seed
        chance = np.random.default_rng(seed)
        self._words = [_word(n) for n in chance.permutation(_WORDS).tolist()]
        weights = 1 / np.arange(1, _WORDS + 1)
        self._shares = np.cumsum(weights / weights.sum())
        decay = np.linspace(1, 0.2, _LATENT)
        self._basis = (chance.normal(size=(_LATENT, DIMENSION)) * decay[:, None]).astype(np.float32)
        self._clusters = chance.normal(size=(_CLUSTERS, _LATENT)).astype(np.float32)
        self._bias = chance.normal(scale=1.2, size=DIMENSION).astype(np.float32)

    def texts(self, first: int, count: int) -> list[str]:
        """A number of texts from the number `first` on."""
        chance = np.random.default_rng((self._seed, 1, first))
        lengths = chance.integers(_WORDS_LEAST, _WORDS_MOST + 1, count)
        drawn = iter(np.searchsorted(self._shares, chance.random(int(lengths.sum()))).tolist())
        return [" ".join(self._words[min(next(drawn), _WORDS - 1)] for _ in range(n)) for n in lengths.tolist()]

    def vectors(self, first: int, count: int) -> NDArray[np.float32]:
        """A number of vectors of length 1 from the number `first` on."""
        chance = np.random.default_rng((self._seed, 2, first))
        latent = self._clusters[chance.integers(0, _CLUSTERS, count)]
        latent = latent + 0.7 * chance.normal(size=latent.shape).astype(np.float32)
        made = latent @ self._basis + self._bias + chance.normal(size=(count, DIMENSION)).astype(np.float32)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        return made.astype(np.float32)

    def questions(self, count: int) -> Iterator[MadeQuestion]:
        """Questions that no text was made for."""
        chance = np.random.default_rng((self._seed, 3))
        vectors = self.vectors(_QUESTIONS_SEED, count)
        for text, vector in zip(self.texts(_QUESTIONS_SEED, count), vectors, strict=True):
            words = list(dict.fromkeys(text.split()))
            chosen = chance.permutation(words)[: chance.integers(_ASKED_LEAST, _ASKED_MOST + 1)]
            yield MadeQuestion(" ".join(chosen.tolist()), vector.tobytes())

    @staticmethod
    def speaker(number: int) -> str:
        """Who says a text."""
        return _SPEAKERS[number % len(_SPEAKERS)]


def _word(number: int) -> str:
    """A word of three syllables that no stemmer shortens: it ends as no English ending does."""
    base = len(_SYLLABLES)
    return _SYLLABLES[number // base // base] + _SYLLABLES[number // base % base] + _SYLLABLES[number % base] + "k"
