"""Embedders and where their vectors are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.memory import Found, Listener
from keepsaid.domain.space import NewVector, Reached, Unembedded, VectorSpace


class Embedder(Protocol):
    """Turns texts into vectors of length 1, each as 32-bit floats in a row of bytes."""

    async def space(self) -> VectorSpace:
        """The space its vectors are of; reads the weights when first asked. Raises EmbedderError."""
        ...

    async def query(self, text: str) -> bytes:
        """The vector of a query, before anything else that waits. Raises EmbedderError."""
        ...

    async def texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        """The vectors of texts, in order; queries go first. Raises EmbedderError."""
        ...


class Vectors(Protocol):
    """Vectors of pieces of memories, by space."""

    async def unembedded(self, space: VectorSpace, after: int, limit: int) -> Sequence[Unembedded]:
        """Pieces behind `after` that have no vector in the space, by id."""
        ...

    async def keep_vectors(self, space: VectorSpace, vectors: Sequence[NewVector], at: int, reached: int = 0) -> int:
        """Write vectors; a piece that is gone, or has one, gets none. Returns how many were written.

        `reached` says that no piece up to this one is left without; when none is behind it, the space is filled.
        """
        ...

    async def spaces(self) -> Sequence[Reached]:
        """The spaces that have vectors and how far each is filled, the furthest first."""
        ...

    async def nearest(self, listener: Listener, space: VectorSpace, query: bytes, limit: int) -> tuple[Found, ...]:
        """The memories nearest to a query that the listener may hear, and how much nearer than others they are."""
        ...
