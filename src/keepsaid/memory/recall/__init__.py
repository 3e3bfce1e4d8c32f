"""Recall: every leg is asked at once, and what they found is joined (design: section 4.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from keepsaid.domain.memory import Hit, Listener, Recalled
from keepsaid.memory.recall.fusion import Share, fuse, weighed
from keepsaid.memory.recall.legs import Leg, Missing, ask
from keepsaid.ports.clock import Clock
from keepsaid.ports.recall import Shelf

NO_EMBEDDER = "vector: no embedder"

_DEPTH, _DEPTH_EACH = 200, 2
"""How many memories each leg gives at least, and at least for each that is wanted."""

_READ_MIN, _READ_EACH = 40, 2
"""How many of the best are read, so that what stands in them can change their order."""


class Recollection:
    """Ranked recall over legs, ungated. `absent` names the legs that are not configured, each with its reason.

    A leg has its own time limit, and reading what was found has that of the slowest leg; for a caller that can
    wait longer, make another with slower legs.
    """

    def __init__(
        self, legs: Sequence[Leg], memories: Shelf, clock: Clock, absent: Sequence[str] = (NO_EMBEDDER,)
    ) -> None:
        self._legs = tuple(legs)
        self._memories = memories
        self._clock = clock
        self._absent = tuple(absent)
        self._limit_ms = max((leg.limit_ms for leg in self._legs), default=0.0)

    async def recall(self, listener: Listener, query: str, limit: int) -> Recalled:
        """The best `limit` memories of all legs, best first, and the legs that could not answer. Never raises."""
        began = self._clock.monotonic_ms()
        limit = max(0, limit)
        depth = max(_DEPTH, limit * _DEPTH_EACH) if limit else 0
        asked = (ask(leg.name, leg.search(listener, query, depth), leg.limit_ms) for leg in self._legs)
        answers = await asyncio.gather(*asked)
        missing = [answer.why for answer in answers if isinstance(answer, Missing)]
        shares = [
            Share(leg.name, leg.weight, answer)
            for leg, answer in zip(self._legs, answers, strict=True)
            if not isinstance(answer, Missing)
        ]
        hits = await ask("memories", self._read(listener, query, shares, limit), self._limit_ms)
        answered = bool(shares)
        if isinstance(hits, Missing):
            missing.append(hits.why)
            hits, answered = (), False
        took = self._clock.monotonic_ms() - began
        return Recalled(hits, (*missing, *self._absent), took, answered=answered)

    async def _read(self, listener: Listener, query: str, shares: Sequence[Share], limit: int) -> tuple[Hit, ...]:
        fused = fuse(shares)[: max(_READ_MIN, limit * _READ_EACH)]
        if not fused:
            return ()
        found = {memory.id: memory for memory in await self._memories.fetch(listener, [one.memory_id for one in fused])}
        ranked = weighed(query, fused, found)[:limit]
        return tuple(Hit(found[one.memory_id], one.leg, one.rank, one.score) for _, one in ranked)
