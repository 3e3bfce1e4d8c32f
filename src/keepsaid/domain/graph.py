"""The graph of memory: what memories have to do with one another, and which people and things they mention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Relation(StrEnum):
    """What one memory is to another (seed 001)."""

    UPDATES = "updates"
    CAUSED_BY = "caused_by"
    RESULT_OF = "result_of"
    RELATED_TO = "related_to"
    PART_OF = "part_of"
    CONTRADICTS = "contradicts"


CARRIES: Mapping[str, float] = {
    Relation.UPDATES: 1.5,
    Relation.CAUSED_BY: 1.3,
    Relation.RESULT_OF: 1.3,
    Relation.RELATED_TO: 1.0,
    Relation.PART_OF: 0.8,
    Relation.CONTRADICTS: 0.5,
}
"""How much of what makes one memory worth recalling goes over to the other (seed 001)."""

MENTIONS = "mentions"
"""The step between a memory and an entity it mentions; it carries as much as `related_to`."""


@dataclass(frozen=True, slots=True)
class Association:
    """That one memory is something to another; `weight` is above 0 and at most 1."""

    source_id: int
    target_id: int
    relation: Relation
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Mention:
    """That a memory mentions someone or something, by the name that stands in it.

    `entity` is the entity's key, the same for all its names: `person:owner`, `place:paris`.
    """

    memory_id: int
    entity: str
    name: str
    weight: float = 1.0


class Seed(NamedTuple):
    """A memory the walk starts from, and how well it fits the query: above 0 and at most 1."""

    memory_id: int
    strength: float


class Step(NamedTuple):
    """One step of a walk: over which relation, and to which memory, or to which entity by the name it has there.

    The first step of a walk has no relation.
    """

    relation: str
    memory_id: int = 0
    name: str = ""
