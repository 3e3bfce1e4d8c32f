"""Rarity: how much a word says about what a text is about, by how seldom it is said (inverse document frequency)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log

UNSEEN = 500
"""A word counts as if it stood in one of so many pieces more than are kept: what little was said tells little yet."""


@dataclass(frozen=True, slots=True)
class Rarity:
    """In how many of all pieces the words of a text stand, by their stems; `pieces` is how many there are."""

    pieces: int = 0
    among: Mapping[str, int] = field(default_factory=dict)

    def worth(self, stem: str) -> float:
        """What it says that a piece has this word: the log of how many have not, against those that have."""
        having, all_ = min(self.among.get(stem, 0), self.pieces) + 1, self.pieces + UNSEEN
        return log(1 + (all_ - having + 0.5) / (having + 0.5))
