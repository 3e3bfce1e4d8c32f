"""Recall: every leg is asked at once, and what they found is joined (design: section 4.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple

from keepsaid.domain.graph import Seed
from keepsaid.domain.memory import Found, Hit, Listener, Recalled
from keepsaid.domain.receipt import Beyond, Searched
from keepsaid.memory.recall.asking import QUERY_CHARS_MAX, cut_note
from keepsaid.memory.recall.fusion import Fused, Share, apart, fuse, places, weighed
from keepsaid.memory.recall.legs import VECTOR, GraphLeg, Leg, Missing, ask
from keepsaid.ports.recall import Shelf
from keepsaid.ports.runtime import Clock
from keepsaid.text.normal import ends_of
from keepsaid.text.time_spans import When, times_in
from keepsaid.text.words import topic

NO_EMBEDDER = f"{VECTOR}: no embedder"

_DEPTH, _DEPTH_EACH = 100, 2
"""How many memories each leg gives at least, and at least for each that is wanted."""

_READ_MIN, _READ_SHARE = 30, 1.5
"""How many of the best are read, and for each that is wanted, so that what stands in them can change their order."""

_DEPTH_AS_OF = 400
"""And at least where only what held true at some time is wanted."""

_FEW_WORDS = 3
"""A query of so few words that speaks of some days looks for what was said on them by their names."""

_WALKED_MAX = 50
"""So many memories the graph leg gives at most."""

_BEYOND_MAX = 100
"""Of what came after the hits so many are named, so that it can be said where a memory ended."""


class _Asked(NamedTuple):
    """What is asked for, the times it speaks of, when it is asked, and for what held true when."""

    query: str
    when: When
    now: int
    as_of: int | None


class Recollection:
    """Ranked recall over legs, ungated. `absent` names the legs that are not configured, each with its reason.

    A leg has its own time limit, and reading what was found has that of the slowest leg; for a caller that can
    wait longer, make another with slower legs. The graph leg, if there is one, goes on from what the others found.
    """

    def __init__(
        self,
        legs: Sequence[Leg],
        memories: Shelf,
        clock: Clock,
        absent: Sequence[str] = (NO_EMBEDDER,),
        graph: GraphLeg | None = None,
    ) -> None:
        self._legs = tuple(legs)
        self._memories = memories
        self._clock = clock
        self._absent = tuple(absent)
        self._graph = graph
        self._by_meaning = any(leg.name == VECTOR for leg in self._legs)
        self._limit_ms = max((leg.limit_ms for leg in self._legs), default=0.0)

    async def recall(self, listener: Listener, query: str, limit: int, as_of: int | None = None) -> Recalled:
        """The best `limit` memories of all legs, best first, and the legs that could not answer. Never raises.

        With `as_of`, of what held true at that time (milliseconds UTC); else what holds now comes first. Of a query of
        more than 4,000 characters the beginning and the end are searched for, and `missing` says so.
        """
        began = self._clock.monotonic_ms()
        limit = max(0, limit)
        depth = max(_DEPTH if as_of is None else _DEPTH_AS_OF, limit * _DEPTH_EACH) if limit else 0
        now = self._clock.now_ms()
        cut, query = cut_note(len(query)), ends_of(query, QUERY_CHARS_MAX)
        when = times_in(query, now)
        sought = _sought(query, when)
        searches = (self._asked(leg, partial(leg.search, listener, sought, depth)) for leg in self._legs)
        answers = await asyncio.gather(*searches)
        shares = [share for _, share in answers if share is not None]
        fused = fuse(shares)
        if self._graph is not None and depth and shares:
            how, walked = await self._walked(self._graph, listener, query, fused)
            answers.append((how, walked))
            if walked is not None and walked.found:
                shares.append(walked)
                fused = fuse(shares)
        searched = tuple(how for how, _ in answers)
        missing = [how.why for how in searched if how.why]
        asked = _Asked(query, when, now, as_of)
        read = await ask("memories", partial(self._read, listener, asked, shares, fused, limit), self._limit_ms)
        answered = bool(shares)
        if isinstance(read, Missing):
            missing.append(read.why)
            read, answered = ((), ()), False
        took = self._clock.monotonic_ms() - began
        hits, beyond = read
        return Recalled(hits, (*missing, *cut, *self._absent), took, answered, searched, beyond, self._by_meaning)

    async def _asked(
        self, leg: Leg | GraphLeg, search: Callable[[], Awaitable[tuple[Found, ...]]]
    ) -> tuple[Searched, Share | None]:
        """How a leg did, and what it found."""
        began = self._clock.monotonic_ms()
        found = await ask(leg.name, search, leg.limit_ms)
        took = self._clock.monotonic_ms() - began
        if isinstance(found, Missing):
            return Searched(leg.name, 0, took, found.why), None
        return Searched(leg.name, len(found), took), leg.share(found)

    async def _walked(
        self, graph: GraphLeg, listener: Listener, query: str, fused: Sequence[Fused]
    ) -> tuple[Searched, Share | None]:
        """The graph leg, from the best that the others found."""
        seeds = [Seed(id_, value / fused[0].value) for id_, value in fused[:_DEPTH] if value > 0]
        return await self._asked(graph, partial(graph.walk, listener, query, seeds, _WALKED_MAX))

    async def _read(
        self, listener: Listener, asked: _Asked, shares: Sequence[Share], fused: Sequence[Fused], limit: int
    ) -> tuple[tuple[Hit, ...], tuple[Beyond, ...]]:
        """The best, read; and what came next."""
        first = fused if asked.as_of is not None else fused[: max(_READ_MIN, int(limit * _READ_SHARE))]
        if not first:
            return (), ()
        read = await self._memories.fetch(listener, [one.memory_id for one in first], asked.as_of)
        found = {memory.id: memory for memory in read}
        now = asked.now if asked.as_of is None else None
        ranked = apart(weighed(asked.query, first, found, asked.when, now), found)
        best = ranked[:limit]
        after = [*ranked[limit:], *fused[len(first) :]][:_BEYOND_MAX]
        there = places(shares, [one.memory_id for one in (*best, *after)])
        hits = [Hit(found[id_], *there[id_][0][:3], value, there[id_]) for id_, value in best]
        beyond = [Beyond(id_, rank, value, there[id_]) for rank, (id_, value) in enumerate(after, limit + 1)]
        return tuple(hits), tuple(beyond)


def _sought(query: str, when: When) -> str:
    """What the legs are asked: where a query is about little but some days, these by their names too."""
    about = [word for word in topic(query) if not word.isdigit()] if when.spans else ()
    return f"{query} {when.days()}".rstrip() if when.spans and len(about) <= _FEW_WORDS else query
