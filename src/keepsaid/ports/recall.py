"""Recall, as a port: search in memory for a turn, and the embedders and vectors it uses."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from keepsaid.domain import memory
from keepsaid.domain.memory import Found, Listener, Memory, VectorSpace
from keepsaid.domain.turn import Claimed, Recent


class TextLeg(Protocol):
    """Full-text search over memories."""

    async def text(self, listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
        """The best matches the listener may hear. Any string is a legal query; none raises."""


class Shelf(Protocol):
    """Where what was found is read."""

    async def fetch(self, listener: Listener, ids: Sequence[int], as_of: int | None = None) -> Sequence[Memory]:
        """Of these memories the active or superseded that the listener may read, in order; as of a time or now."""


class Recall(Protocol):
    """Ranked recall over all legs, ungated."""

    async def recall(self, listener: Listener, query: str, limit: int, as_of: int | None = None) -> memory.Recalled:
        """The best memories for a query, best first, with the legs that were missing; as of a time (ms UTC) or now."""


class Reminder(Protocol):
    """Recall done for a turn without the model asking."""

    async def remind(self, claimed: Claimed, recent: Awaitable[Recent]) -> memory.Injection:
        """The memories to inject for these messages, without what the prompt (`recent`) already shows. Never raises."""


class Embedder(Protocol):
    """Turns texts into vectors of length 1, each as 32-bit floats in a row of bytes."""

    async def space(self) -> VectorSpace:
        """The space its vectors are of; reads the weights when first asked. Raises EmbedderError."""

    async def query(self, text: str) -> bytes:
        """The vector of a query, before anything else that waits. Raises EmbedderError."""

    async def texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        """The vectors of texts, in order; queries go first. Raises EmbedderError."""


class Vectors(Protocol):
    """Vectors of pieces of memories, by space."""

    async def unembedded(self, space: VectorSpace, after: int, limit: int) -> Sequence[memory.Unembedded]:
        """Pieces behind `after` that have no vector in the space, by id."""

    async def keep_vectors(
        self, space: VectorSpace, vectors: Sequence[memory.NewVector], at: int, reached: int = 0
    ) -> int:
        """Write vectors; a piece that is gone, or has one, gets none. Returns how many were written.

        `reached` says that no piece up to this one is left without; when none is behind it, the space is filled.
        """

    async def spaces(self) -> Sequence[memory.Reached]:
        """The spaces that have vectors and how far each is filled, the furthest first."""

    async def nearest(self, listener: Listener, space: VectorSpace, query: bytes, limit: int) -> tuple[Found, ...]:
        """The memories nearest to a query that the listener may hear, and how much nearer than others they are."""
