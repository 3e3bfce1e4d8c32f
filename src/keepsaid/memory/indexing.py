"""Indexing: embeds what has no vector yet, and relates learned memories, with pauses that leave the store to others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Protocol

from keepsaid.domain.graph import Association, Relation
from keepsaid.domain.memory import Found, Listener, NewVector, VectorSpace
from keepsaid.errors import EmbedderError
from keepsaid.ports.memory_maintenance import Relating, Unrelated
from keepsaid.ports.memory_store import Embedder, Graph, Vectors
from keepsaid.ports.runtime import Clock, point

_LEAST_MS, _SHARE = 2.0, 1.5
"""The least pause after a step in milliseconds, and the pause as a multiple of the step's time."""


class Pacing:
    """Measures steps, and rests after each of them in proportion."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.took_ms = 0.0

    @contextmanager
    def step(self) -> Iterator[None]:
        """Measure what stands in the block; how long it took is `took_ms` then."""
        began = self._clock.monotonic_ms()
        try:
            yield
        finally:
            self.took_ms = self._clock.monotonic_ms() - began

    async def rest(self) -> None:
        """Leave everything to others, for as long as the last step asks."""
        await self._clock.wait(asyncio.Event(), max(_LEAST_MS, _SHARE * self.took_ms))


@asynccontextmanager
async def paced(pacing: Pacing | None) -> AsyncIterator[None]:
    """A step, and a rest after it; without one the step alone."""
    if pacing is None:
        yield
        return
    with pacing.step():
        yield
    await pacing.rest()


Enough = Callable[[], bool]
"""Whether to leave off, asked between two steps."""


BATCH = 64
"""Pieces that are embedded and written together; after a crash no more are embedded again."""

_AGAIN_MS = 60_000
"""So long an embedder is left alone that could not answer."""

Former = Callable[[VectorSpace], Embedder | None]
"""The embedder of a space that another one filled; None where it is not available."""


def no_former(_space: VectorSpace) -> Embedder | None:
    """No embedder but ours is available."""
    return None


class Embedding:
    """Gives every piece that has none a vector in the embedder's space, oldest first.

    Where it stands is what the store says, so that it goes on after any end. When the embedder is another one, its
    space fills up from the beginning, and until it has come as far as the former one, that one is searched.
    """

    def __init__(self, embedder: Embedder, vectors: Vectors, clock: Clock, former: Former = no_former) -> None:
        self.embedder = embedder
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
        space = await self.embedder.space()
        if self._after is None:
            self._after = max((one.piece_id for one in await self._vectors.spaces() if one.space == space), default=0)
        if due := await self._vectors.unembedded(space, self._after, BATCH):
            made = await self.embedder.texts([piece.text for piece in due])
            point("vectors.made")
            new = [NewVector(piece.piece_id, vector) for piece, vector in zip(due, made, strict=True)]
            self._after = due[-1].piece_id
            await self._vectors.keep_vectors(space, new, self._clock.now_ms(), self._after)
        elif not self._ended:
            # where the last pieces of the former space are gone, ours has come as far all the same
            self._ended = True
            if await self._ahead(space):
                await self._vectors.keep_vectors(space, (), self._clock.now_ms(), max(1, self._after or 0))
        self.trouble = ""
        return len(due)

    async def finish(self) -> None:
        """Embed all that is due. Raises EmbedderError, or StoreError."""
        while await self.embed():
            pass

    async def space(self) -> VectorSpace:
        """The space that pieces get their vectors in. Raises EmbedderError."""
        return await self.embedder.space()

    def restart_scan(self) -> None:
        """Restart the scan for pieces without a vector at the first piece."""
        self._after, self._ended = 0, False

    async def search(self, listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
        """The leg: the memories nearest in meaning to a query."""
        if not query.strip() or limit < 1:
            return ()
        embedder = self._serving or await self._chosen()
        space = await embedder.space()
        return await self._vectors.nearest(listener, space, await embedder.query(query), limit)

    async def _chosen(self) -> Embedder:
        """The embedder whose space reached furthest, of those available; once it is ours, it stays so."""
        ahead = await self._ahead(await self.embedder.space())
        for former in map(self._former, ahead):
            if former is not None:
                return former
        if not ahead:
            self._serving = self.embedder
        return self.embedder

    async def _ahead(self, space: VectorSpace) -> list[VectorSpace]:
        """The spaces that reached further than this one."""
        there = await self._vectors.spaces()
        ours = max((one.piece_id for one in there if one.space == space), default=0)
        return [one.space for one in there if one.piece_id > ours]


ALIKE = 0.85
"""Two memories whose cosine is above this are related."""

_WEIGHT = 0.5
_NEAR, _EDGES_MAX, _EPISODES_MAX = 32, 5, 3
"""The nearest memories that are compared, the related ones among them at most, and the episodes of an edge at most."""

_EACH = 16
_EVERYBODY = Listener(None, everything=True)
"""A pass hears everything; who walks the graph hears only what he may, at every step."""


class NeighbourSource(Protocol):
    """Finds neighbours: `Vectors` and `Auditing` describe the methods."""

    async def nearest(self, listener: Listener, space: VectorSpace, query: bytes, limit: int) -> tuple[Found, ...]: ...

    async def alike(self, ids: Sequence[int], above: float) -> tuple[tuple[int, int], ...]: ...


class AssociationFinder:
    """Associates learned memories: `related_to` an older memory that is near, `result_of` the source episodes."""

    def __init__(self, relating: Relating, near: NeighbourSource, graph: Graph, clock: Clock) -> None:
        self._relating = relating
        self._near = near
        self._graph = graph
        self._clock = clock
        self._after: int | None = None

    async def run(
        self, space: VectorSpace, most: int = 1_000, enough: Enough = lambda: False, pacing: Pacing | None = None
    ) -> int:
        """A pass over a limited number of memories, or until `enough`; returns how many associations it found.

        With a `pacing` it rests between its steps.
        """
        if self._after is None:
            self._after = await self._relating.related_upto()
        found = 0
        for _ in range(0, most, _EACH):
            those = await self._relating.unrelated(space, self._after, _EACH)
            older = {}
            for one in those:
                if enough():
                    break
                async with paced(pacing):
                    near = await self._near.nearest(_EVERYBODY, space, one.vector, _NEAR)
                older[one] = [other.memory_id for other in near if other.memory_id < one.memory_id]
                self._after = one.memory_id
            async with paced(pacing):
                if made := await self._edges(older):
                    found += await self._graph.relate(made, (), self._clock.now_ms())
            if len(those) < _EACH or enough():
                break
        return found

    async def _edges(self, older: Mapping[Unrelated, Sequence[int]]) -> list[Association]:
        """The associations of memories, of which the older ones near each are known."""
        learned = set(await self._relating.among_learned(sorted({one for near in older.values() for one in near})))
        asked = learned.union(one.memory_id for one in older)
        alike = set(await self._near.alike(sorted(asked), ALIKE)) if learned else set()
        made = []
        for one, near in older.items():
            related = [other for other in near if other in learned and (other, one.memory_id) in alike][:_EDGES_MAX]
            made += [Association(one.memory_id, other, Relation.RELATED_TO, _WEIGHT) for other in related]
            said = one.episodes[:_EPISODES_MAX]
            made += [Association(one.memory_id, other, Relation.RESULT_OF, _WEIGHT) for other in said]
        return made
