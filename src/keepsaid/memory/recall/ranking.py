"""Ranking: the search legs with their time limits, how far each can be relied on, and the fusion of their results."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple, TypeVar

from keepsaid.domain import graph, receipt
from keepsaid.domain.memory import ASSISTANT, LANE_BOUND, Found, Listener, Memory
from keepsaid.text.languages import function_words
from keepsaid.text.time_spans import NO_TIME, Anchor, When
from keepsaid.text.words import first_word, fold, root, spelled
from keepsaid.values import frozen

Confidence = Callable[[Sequence[Found]], float]

_LEAST, _MOST = 1 / 3, 3.0
"""The bounds of a retriever's confidence, as multiples of its confidence with most queries."""

_COVERED = 0.4
"""The share of a query's words, by how rare they are, that the best match has with most queries."""

_BESIDE, _SPREAD = 10, 0.3
"""How far the nearest memory stands before the eleventh with most queries, as a share of its own score."""


def steady(found: Sequence[Found]) -> float:  # noqa: ARG001 - the signature of Confidence
    """A leg that is always as sure."""
    return 1.0


def coverage(found: Sequence[Found]) -> float:
    """For scores that are shares of what all words of the query together would come to: how much the best has."""
    return _bounded((found[0].score / _COVERED) ** 0.5) if found else 1.0


def spread(found: Sequence[Found]) -> float:
    """For scores that crowd together where nothing fits: how far the best stands out."""
    if len(found) <= _BESIDE or found[0].score <= 0:
        return 1.0
    return _bounded((1 - found[_BESIDE].score / found[0].score) / _SPREAD)


def _bounded(value: float) -> float:
    return min(max(value, _LEAST), _MOST)


SPEAKER = 0.2
"""How much more a memory counts when its speaker is named in the query."""

ASKING = 0.1
"""How much less a memory counts that only asks: an answer is looked for among statements."""

ECHO = 0.3
"""How much less a question counts that has no word beside those of the query: it was asked before."""

TIMELY = 0.1
"""How much more a memory counts that was said in the time the query speaks of; one said near it, so much less."""

AGENT = 0.4
"""How much less the agent's own words count: what is so, people say; its words are mostly long answers to them."""

LONG_CHARS, LONG = 400, 0.35
"""A longer text matches more words by chance, and takes more room: its value falls with its length to this power."""

PAST = 0.5
"""How much of its value a memory keeps that held true once and does no more."""

IMPORTANT, RECENT = 1e-4, 1e-5
"""Importance, then the time it was said, tell apart what is otherwise equal, and nothing else."""

_ECHO_CHARS, _ANCHOR_CHARS = 1_000, 8_000
"""The characters of a memory that are read to find out whether it only asks, and whether it describes an event."""

_OPENINGS = frozenset(["who", "whom", "whose", "what", "which", "when", "where", "why", "how"])

_ASKS = ("?", "？", "؟", "?]")


@frozen
class LegShare:
    """What one leg found and what it weighs; its scores are held against `top`, or else against its best."""

    name: str
    weight: float
    found: tuple[Found, ...]
    top: float | None = None


class Fused(NamedTuple):
    """One memory by all legs, and its value."""

    memory_id: int
    value: float


_VALUE_THEN_ID = itemgetter(1, 0)


def fuse(shares: Sequence[LegShare]) -> list[Fused]:
    """Every memory once, best first: the sum over the legs of weight times the score against the leg's best.

    Scores start at zero in every leg, so that a share of the best says how near a memory comes to it; ranks
    alone would make the first of a leg that found nothing good equal to the first of one that found the answer.
    """
    total: dict[int, float] = {}
    for share, factor in _factors(shares):
        for id_, score, _ in share.found:
            total[id_] = total.get(id_, 0.0) + factor * score
    return list(map(Fused._make, sorted(total.items(), key=_VALUE_THEN_ID, reverse=True)))


def _factors(shares: Sequence[LegShare]) -> list[tuple[LegShare, float]]:
    """What a score of each leg that found anything is multiplied with: its top comes to the leg's weight."""
    told = [(share, share.top or share.found[0].score) for share in shares if share.found]
    weights = sum(share.weight for share, _ in told) or 1.0
    return [(share, share.weight / weights / top if top > 0 else 0.0) for share, top in told]


def places(shares: Sequence[LegShare], memory_ids: Iterable[int]) -> dict[int, tuple[receipt.Place, ...]]:
    """Where each leg has these memories; first the leg that counted most for one."""
    worth = {share.name: factor for share, factor in _factors(shares)}
    found: dict[int, tuple[receipt.Place, ...]] = dict.fromkeys(memory_ids, ())
    for share in shares:
        for rank, (id_, score, path) in enumerate(share.found, start=1):
            if id_ in found:
                found[id_] += (receipt.Place(share.name, rank, score, path),)
    for id_, there in found.items():
        if len(there) > 1:
            found[id_] = tuple(sorted(there, key=lambda place: (-worth[place.leg] * place.score, place)))
    return found


def weighed(
    query: str, fused: Sequence[Fused], memories: Mapping[int, Memory], when: When = NO_TIME, now: int | None = None
) -> list[Fused]:
    """The memories that are there with their final value, best first; the newer first among equals.

    `when` are the times the query speaks of. What held true no more `now` counts less, unless it speaks of any.
    """
    asked = {root(word) for word in spelled(query)}
    there = [one for one in fused if one.memory_id in memories]
    if when.anchor is not None:
        when = _anchored(when.anchor, [memories[one.memory_id] for one in there])
    speakers = {one.new.speaker for one in memories.values()}
    named = {speaker: any(root(fold(word)) in asked for word in spelled(speaker)) for speaker in speakers}
    valued: list[Fused] = []
    for id_, fused_value in there:
        memory = memories[id_]
        value = _value(fused_value, memory, named, when)
        if _echoes(memory, asked):
            value *= 1 - ECHO
        if now is not None and not when.spans and memory.past(now):
            value *= PAST
        valued.append(Fused(id_, value))
    valued.sort(key=lambda one: (one.value, memories[one.memory_id].new.said_at, one.memory_id), reverse=True)
    return valued


def current(id_: int, memories: Mapping[int, Memory]) -> int:
    """What holds now of a memory that was replaced, as far as it is among these; else the memory itself."""
    seen = {id_}
    while True:
        after = memories[id_].superseded_by
        if after is None or after not in memories or after in seen:
            return id_
        id_ = after
        seen.add(id_)


def behind_successors(ranked: Sequence[Fused], memories: Mapping[int, Memory]) -> list[Fused]:
    """The same, but what was replaced stands behind what holds now, which is worth at least as much."""
    values = dict(ranked)
    replaced = {one.memory_id: now for one in ranked if (now := current(one.memory_id, memories)) != one.memory_id}
    for id_, now in replaced.items():
        values[now] = max(values.get(now, 0.0), values[id_])
    return sorted(map(Fused._make, values.items()), key=lambda one: (-one.value, one.memory_id in replaced))


def apart(ranked: Sequence[Fused], memories: Mapping[int, Memory]) -> list[Fused]:
    """The same in the same order, but what was said again in the same words comes last; questions, whoever asked."""
    seen: set[tuple[str, str]] = set()
    first: list[Fused] = []
    again: list[Fused] = []
    for one in ranked:
        new = memories[one.memory_id].new
        text = new.text.rstrip()
        said = (text, "" if text.endswith(_ASKS) else new.speaker)
        (again if said in seen else first).append(one)
        if new.kind in LANE_BOUND:
            seen.add(said)
    return first + again


def _anchored(anchor: Anchor, ranked: Sequence[Memory]) -> When:
    """The time of what the anchor names: of the memories with most of its words the best."""
    told = [
        (len(anchor.stems.intersection(map(root, spelled(one.text[:_ANCHOR_CHARS])))), one.new.said_at)
        for one in ranked
    ]
    most = max((shared for shared, _ in told), default=0)
    return When((anchor.span(next(at for shared, at in told if shared == most)),)) if most else NO_TIME


def _echoes(memory: Memory, asked: set[str]) -> bool:
    """Whether a memory only asks what is asked now."""
    text = memory.text[:_ECHO_CHARS]
    opening = first_word(text) if memory.new.kind in LANE_BOUND else ""
    if not opening or not (text.rstrip().endswith(_ASKS) or fold(opening) in _OPENINGS):
        return False
    grammar = function_words(text)
    return all(root(word) in asked or fold(word) in grammar for word in spelled(text))


def _value(value: float, memory: Memory, named: Mapping[str, bool], when: When) -> float:
    if named[memory.new.speaker]:
        value *= 1 + SPEAKER
    if memory.new.speaker == ASSISTANT:
        value *= 1 - AGENT
    if (length := len(memory.text)) > LONG_CHARS:
        value *= (LONG_CHARS / length) ** LONG
    if memory.text.rstrip().endswith(_ASKS):
        value *= 1 - ASKING
    if when.spans and memory.new.said_at:
        value *= 1 + TIMELY * when.closeness(memory.new.said_at)
    return round(value, 5) + IMPORTANT * memory.new.importance


TEXT, VECTOR, FACT, GRAPH = "text", "vector", "fact", "graph"
"""The names of the legs, as receipts have them: by words, by meaning, by the slot asked for, by what is associated."""

SUCCESSOR = "successor"
"""In place of a leg: it was found because it took the place of what was found."""

T = TypeVar("T")
Search = Callable[[Listener, str, int], Awaitable[tuple[Found, ...]]]
Walk = Callable[[Listener, str, Sequence[graph.Seed], int], Awaitable[tuple[Found, ...]]]


@frozen
class Leg:
    """One way to search: its weight among the others, and how long it may take, in milliseconds.

    `confidence` says from what it found how much more or less than usual the weight is for this query.
    """

    name: str
    search: Search
    weight: float = 1.0
    limit_ms: float = 100.0
    confidence: Confidence = steady

    def share(self, found: tuple[Found, ...]) -> LegShare:
        return LegShare(self.name, self.weight * self.confidence(found), found)


@frozen
class GraphLeg:
    """The leg that goes on from what the others found: its weight beside theirs, and how long it may take."""

    walk: Walk
    weight: float = 0.2
    limit_ms: float = 25.0
    name: str = GRAPH

    def share(self, found: tuple[Found, ...]) -> LegShare:
        """What it found as a part of the whole; its scores are shares of what the best seed came to already."""
        return LegShare(self.name, self.weight, found, top=1.0)


@frozen
class Missing:
    """What could not answer, and why: `text: slower than 100 ms`."""

    why: str


async def ask(name: str, work: Callable[[], Awaitable[T]], limit_ms: float) -> T | Missing:
    """What `work` gives, or why there is nothing: it raised, or took longer than `limit_ms` milliseconds.

    It is called, not handed over begun: who is cancelled first leaves nothing behind that was never awaited.
    """
    try:
        async with asyncio.timeout(limit_ms / 1_000) as limit:
            return await work()
    except Exception as error:  # noqa: BLE001  # guard: recall leg - a turn goes on without what could not be recalled
        slow = limit.expired() and isinstance(error, TimeoutError)
        return Missing(f"{name}: slower than {limit_ms:g} ms" if slow else f"{name}: {type(error).__name__}: {error}")
