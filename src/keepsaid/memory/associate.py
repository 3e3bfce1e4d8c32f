"""Associations: what says nearly the same, and what something was learned from, in bounded passes (seed 001).

A pass goes on behind the newest memory that was found to be related to an older one. What is looked at twice is
associated as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from keepsaid.domain.graph import Association, Relation
from keepsaid.domain.memory import Found, Listener
from keepsaid.domain.search import VectorSpace
from keepsaid.memory.pacing import Enough, Pacing, paced
from keepsaid.ports.memory_maintenance import Relating, Unrelated
from keepsaid.ports.memory_store import Graph
from keepsaid.ports.runtime import Clock

ALIKE = 0.85
"""Two memories whose cosine is above this are related."""

_WEIGHT = 0.5
_NEAR, _EDGES_MAX, _EPISODES_MAX = 32, 5, 3
"""Of so many nearest memories at most so many are related ones; and to at most so many episodes one leads back."""

_EACH = 16
_EVERYBODY = Listener(None, everything=True)
"""A pass hears everything; who walks the graph hears only what he may, at every step."""


class Near(Protocol):
    """Where neighbours are found."""

    async def nearest(self, listener: Listener, space: VectorSpace, query: bytes, limit: int) -> tuple[Found, ...]:
        """The memories nearest to a vector."""
        ...

    async def alike(self, ids: Sequence[int], above: float) -> tuple[tuple[int, int], ...]:
        """Pairs of these memories, the smaller id first, whose cosine is above `above`."""
        ...


class Associating:
    """Associates learned memories: `related_to` an older one that is near, `result_of` the episodes it came from."""

    def __init__(self, relating: Relating, near: Near, graph: Graph, clock: Clock) -> None:
        self._relating = relating
        self._near = near
        self._graph = graph
        self._clock = clock
        self._after: int | None = None

    async def run(
        self, space: VectorSpace, most: int = 1_000, enough: Enough = lambda: False, pacing: Pacing | None = None
    ) -> int:
        """A pass over at most so many memories, or until it is enough; returns how many associations it found.

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
                made = await self._edges(older)
                if made:
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
