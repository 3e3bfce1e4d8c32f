"""Recall: every leg is asked at once, and their ranks are joined (design: section 4.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from keepsaid.domain.memory import Hit, Listener, Recalled
from keepsaid.memory.recall.legs import Leg, Missing, ask
from keepsaid.ports.clock import Clock

RANK_OFFSET = 10
"""The k of reciprocal rank: near 10, for plain 60 makes the first hit of a leg weigh little more than its twentieth."""

NO_EMBEDDER = "vector: no embedder"


class Recollection:
    """Ranked recall over legs, ungated. `absent` names the legs that are not configured, each with its reason.

    A leg has its own time limit; for a caller that can wait longer, make another with slower legs.
    """

    def __init__(self, legs: Sequence[Leg], clock: Clock, absent: Sequence[str] = (NO_EMBEDDER,)) -> None:
        self._legs = tuple(legs)
        self._clock = clock
        self._absent = tuple(absent)

    async def recall(self, listener: Listener, query: str, limit: int) -> Recalled:
        """The best `limit` memories of all legs, best first, and the legs that could not answer. Never raises."""
        began = self._clock.monotonic_ms()
        asked = (ask(leg.name, leg.search(listener, query, limit), leg.limit_ms) for leg in self._legs)
        answers = await asyncio.gather(*asked)
        found = [(leg.weight, hits) for leg, hits in zip(self._legs, answers, strict=True) if isinstance(hits, tuple)]
        missing = tuple(answer.why for answer in answers if isinstance(answer, Missing))
        hits = tuple(join_ranks(found)[: max(0, limit)])
        return Recalled(hits, missing + self._absent, self._clock.monotonic_ms() - began, answered=bool(found))


def join_ranks(found: Sequence[tuple[float, Sequence[Hit]]]) -> list[Hit]:
    """Weighted reciprocal rank: the hits of several legs, each memory once, as the leg that weighs most for it saw it.

    A memory's weight is the sum of weight / (k + rank) over the legs that found it. Of equal ones the newer
    comes first, then the one with the larger id.
    """
    total: dict[int, float] = {}
    best: dict[int, tuple[float, Hit]] = {}
    for weight, hits in found:
        for hit in hits:
            share = weight / (RANK_OFFSET + hit.rank)
            total[hit.memory.id] = total.get(hit.memory.id, 0.0) + share
            if hit.memory.id not in best or share > best[hit.memory.id][0]:
                best[hit.memory.id] = (share, hit)
    ranked = sorted(best, key=lambda id_: (total[id_], best[id_][1].memory.new.said_at, id_), reverse=True)
    return [best[id_][1] for id_ in ranked]
