"""Embedding: what is remembered gets its vectors in the background; and the leg that searches by them."""

from __future__ import annotations

import asyncio

from keepsaid.domain.memory import Found, Listener
from keepsaid.domain.space import NewVector
from keepsaid.errors import EmbedderError
from keepsaid.ports.clock import Clock
from keepsaid.ports.embedder import Embedder, Vectors
from keepsaid.ports.points import point

BATCH = 64
"""Pieces that are embedded and written together; after a crash no more are embedded again."""

_AGAIN_MS = 60_000
"""So long an embedder is left alone that could not answer."""


class Embedding:
    """Gives every piece that has none a vector in the embedder's space, oldest first.

    Where it stands is what the store says, so that it goes on after any end. When the embedder is another one, its
    space fills up from the beginning, and the space of the former stays.
    """

    def __init__(self, embedder: Embedder, vectors: Vectors, clock: Clock) -> None:
        self._embedder = embedder
        self._vectors = vectors
        self._clock = clock
        self._after = 0
        self._one = asyncio.Lock()
        self.trouble = ""

    async def work(self) -> int | None:
        """Embed a batch; returns when to come again: at once while there may be more."""
        try:
            return 0 if await self.embed() == BATCH else None
        except EmbedderError as error:
            self.trouble = error.what
            return self._clock.now_ms() + _AGAIN_MS

    async def embed(self) -> int:
        """Embed a batch of pieces; returns how many were due. Raises EmbedderError, or StoreError."""
        async with self._one:
            return await self._embed()

    async def _embed(self) -> int:
        space = await self._embedder.space()
        due = await self._vectors.unembedded(space, self._after, BATCH)
        if due:
            made = await self._embedder.texts([piece.text for piece in due])
            point("vectors.made")
            new = [NewVector(piece.piece_id, vector) for piece, vector in zip(due, made, strict=True)]
            await self._vectors.keep_vectors(space, new, self._clock.now_ms())
            self._after = due[-1].piece_id
        self.trouble = ""
        return len(due)

    async def finish(self) -> None:
        """Embed all that is due. Raises EmbedderError, or StoreError."""
        while await self.embed():
            pass

    async def search(self, listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
        """The leg: the memories nearest in meaning to a query."""
        if not query.strip() or limit < 1:
            return ()
        space = await self._embedder.space()
        return await self._vectors.nearest(listener, space, await self._embedder.query(query), limit)
