"""Fusion: what several legs found becomes one ranking (design: section 4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keepsaid.domain.memory import Found, Memory
from keepsaid.domain.receipt import Place
from keepsaid.domain.words import fold, root, spelled

SPEAKER = 0.2
"""How much more a memory counts when its speaker is named in the query."""

ASKING = 0.1
"""How much less a memory counts that only asks: an answer is looked for among what was told."""

IMPORTANT, RECENT = 1e-4, 1e-5
"""Importance, then the time it was said, tell apart what is otherwise equal, and nothing else."""

_ASKS = ("?", "？", "؟", "?]")


@dataclass(frozen=True, slots=True)
class Share:
    """What one leg found and what it weighs."""

    name: str
    weight: float
    found: tuple[Found, ...]


@dataclass(frozen=True, slots=True)
class Fused:
    """One memory by all legs: its value, and its places, first the one in the leg that weighed most for it."""

    memory_id: int
    value: float
    places: tuple[Place, ...]


def fuse(shares: Sequence[Share]) -> list[Fused]:
    """Every memory once, best first: the sum over the legs of weight times the score against the leg's best.

    Scores start at zero in every leg, so that a share of the best says how near a memory comes to it; ranks
    alone would make the first of a leg that found nothing good equal to the first of one that found the answer.
    """
    parts: dict[int, list[tuple[float, Place]]] = {}
    weights = sum(share.weight for share in shares if share.found) or 1.0
    for share in shares:
        top = max((found.score for found in share.found), default=0.0)
        for rank, found in enumerate(share.found, start=1):
            part = share.weight / weights * (found.score / top if top > 0 else 0.0)
            parts.setdefault(found.memory_id, []).append((part, Place(share.name, rank, found.score)))
    ranked = [_fused(id_, places) for id_, places in parts.items()]
    ranked.sort(key=lambda one: (one.value, one.memory_id), reverse=True)
    return ranked


def _fused(memory_id: int, parts: list[tuple[float, Place]]) -> Fused:
    value = sum(part for part, _ in parts)
    parts.sort(key=lambda one: one[0], reverse=True)
    return Fused(memory_id, value, tuple(place for _, place in parts))


def weighed(query: str, fused: Sequence[Fused], memories: Mapping[int, Memory]) -> list[tuple[float, Fused]]:
    """The memories that are there with their final value, best first; the newer first among equals."""
    asked = {root(word) for word in spelled(query)}
    valued = [(_value(one, memories[one.memory_id], asked), one) for one in fused if one.memory_id in memories]
    valued.sort(key=lambda item: (item[0], memories[item[1].memory_id].new.said_at, item[1].memory_id), reverse=True)
    return valued


def _value(one: Fused, memory: Memory, asked: set[str]) -> float:
    value = one.value
    if any(root(fold(word)) in asked for word in spelled(memory.new.speaker)):
        value *= 1 + SPEAKER
    if memory.text.rstrip().endswith(_ASKS):
        value *= 1 - ASKING
    return round(value, 5) + IMPORTANT * memory.new.importance
