"""Vectors without a model: every word's stem has a place and a sign. It finds what shares words; for tests."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

from keepsaid.domain.memory import VectorSpace
from keepsaid.text import normal, words

MODEL = "hashed words"
_DIMENSION = 128


class Hashed:
    """The same text has the same vector everywhere and always."""

    def __init__(self, revision: str = "1") -> None:
        self._revision = revision

    async def space(self) -> VectorSpace:
        """The space of this revision."""
        return VectorSpace(MODEL, self._revision, _DIMENSION, normal.digest("hashed", self._revision))

    async def query(self, text: str) -> bytes:
        """The vector of a query."""
        numbers = [0.0] * _DIMENSION
        for word in words.spelled(text):
            place = normal.digest(words.root(word), self._revision)
            numbers[place[0] % _DIMENSION] += 1.0 if place[1] % 2 else -1.0
        numbers[0] += 0.01  # a text without words has a vector too
        length = math.sqrt(sum(number * number for number in numbers)) or 1.0
        return array("f", [number / length for number in numbers]).tobytes()

    async def texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        """The vectors of texts, in order."""
        return [await self.query(text) for text in texts]

    async def close(self) -> None:
        """Nothing is open."""
