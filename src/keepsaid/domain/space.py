"""Vector spaces: vectors compare only with those that the same weights made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """Which model made vectors: its name, revision, how many numbers a vector has, and the hash of its weights."""

    model: str
    revision: str
    dimension: int
    weights_hash: bytes

    def __str__(self) -> str:
        """Name it for people."""
        return f"{self.model} ({self.dimension} numbers)"


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a space is filled: every piece up to this one has its vector, or needs none."""

    space: VectorSpace
    piece_id: int


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A piece of a memory that has no vector yet."""

    piece_id: int
    text: str


@dataclass(frozen=True, slots=True)
class NewVector:
    """The vector of a piece: numbers of 32 bits as they lie in memory, of length 1."""

    piece_id: int
    vector: bytes
