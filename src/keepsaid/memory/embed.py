"""Embedding: what is remembered gets its vectors in the background; and the leg that searches by them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from keepsaid.domain.memory import Found, Listener
from keepsaid.domain.search import NewVector, VectorSpace
from keepsaid.errors import EmbedderError
from keepsaid.ports.failpoints import point
from keepsaid.ports.recall import Embedder, Vectors
from keepsaid.ports.runtime import Clock

BATCH = 64
"""Pieces that are embedded and written together; after a crash no more are embedded again."""

_AGAIN_MS = 60_000
"""So long an embedder is left alone that could not answer."""

Former = Callable[[VectorSpace], Embedder | None]
"""The embedder of a space that another one filled; None where it is not at hand."""


def no_former(_space: VectorSpace) -> Embedder | None:
    """No embedder but ours is at hand."""
    return None


class Embedding:
    """Gives every piece that has none a vector in the embedder's space, oldest first.

    Where it stands is what the store says, so that it goes on after any end. When the embedder is another one, its
    space fills up from the beginning, and until it has come as far as the former one, that one is searched.
    """

    def __init__(self, embedder: Embedder, vectors: Vectors, clock: Clock, former: Former = no_former) -> None:
        self._embedder = embedder
        self._vectors = vectors
        self._clock = clock
        self._former = former
        self._after: int | None = None
        self._ended = False
        self._serving: Embedder | None = None
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
        if self._after is None:
            self._after = max((one.piece_id for one in await self._vectors.spaces() if one.space == space), default=0)
        due = await self._vectors.unembedded(space, self._after, BATCH)
        if due:
            made = await self._embedder.texts([piece.text for piece in due])
            point("vectors.made")
            new = [NewVector(piece.piece_id, vector) for piece, vector in zip(due, made, strict=True)]
            self._after = due[-1].piece_id
            await self._vectors.keep_vectors(space, new, self._clock.now_ms(), self._after)
        elif not self._ended:
            await self._end(space)
        self.trouble = ""
        return len(due)

    async def _end(self, space: VectorSpace) -> None:
        """Nothing is due: where the last pieces of the former space are gone, ours has come as far all the same."""
        self._ended = True
        if await self._ahead(space):
            await self._vectors.keep_vectors(space, (), self._clock.now_ms(), max(1, self._after or 0))

    async def finish(self) -> None:
        """Embed all that is due. Raises EmbedderError, or StoreError."""
        while await self.embed():
            pass

    async def space(self) -> VectorSpace:
        """The space that pieces get their vectors in. Raises EmbedderError."""
        return await self._embedder.space()

    def look_again(self) -> None:
        """Look for pieces without a vector from the first one on, once more."""
        self._after, self._ended = 0, False

    async def search(self, listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
        """The leg: the memories nearest in meaning to a query."""
        if not query.strip() or limit < 1:
            return ()
        embedder = self._serving or await self._chosen()
        space = await embedder.space()
        return await self._vectors.nearest(listener, space, await embedder.query(query), limit)

    async def _chosen(self) -> Embedder:
        """The embedder whose space reached furthest, of those at hand; once it is ours, it stays so."""
        space = await self._embedder.space()
        ahead = await self._ahead(space)
        for former in map(self._former, ahead):
            if former is not None:
                return former
        if not ahead:
            self._serving = self._embedder
        return self._embedder

    async def _ahead(self, space: VectorSpace) -> list[VectorSpace]:
        """The spaces that reached further than this one."""
        there = await self._vectors.spaces()
        ours = max((one.piece_id for one in there if one.space == space), default=0)
        return [one.space for one in there if one.piece_id > ours]
