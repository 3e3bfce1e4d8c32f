"""The graph of memory: what memories have to do with one another, and which people and things they mention."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from keepsaid.text.languages import function_words
from keepsaid.text.words import fold, root, spelled
from keepsaid.values import frozen


class Relation(StrEnum):
    """What one memory is to another (seed 001)."""

    UPDATES = "updates"
    CAUSED_BY = "caused_by"
    RESULT_OF = "result_of"
    RELATED_TO = "related_to"
    PART_OF = "part_of"
    CONTRADICTS = "contradicts"


MENTIONS = "mentions"
"""The step between a memory and an entity it mentions."""

CARRIES: Mapping[str, float] = {
    Relation.UPDATES: 1.5,
    Relation.CAUSED_BY: 1.3,
    Relation.RESULT_OF: 1.3,
    Relation.RELATED_TO: 1.0,
    Relation.PART_OF: 0.8,
    Relation.CONTRADICTS: 0.5,
    MENTIONS: 1.0,
}
"""How much of what makes one memory worth recalling goes over to the other (seed 001)."""

SEEDS, WEIGHTY_SEEDS, IMPORTANT = 10, 10, 0.8
"""The best seeds, the important seeds that share a word with the query, and the least importance of those."""

NAMED = 0.5
"""The strength of an entity that the query names, and at least of an important memory that shares a word with it."""

FANS, FURTHER = (20, 5), 0.5
"""The strongest edges that are followed from each node, in the first and in the second step; and the factor for nodes
two steps away."""

NODES_MAX = 32
"""The strongest nodes from which each step starts."""

_NAME_WORDS_MAX, _QUERY_WORDS_MAX = 4, 64


@frozen
class Association:
    """That one memory is something to another; `weight` is above 0 and at most 1."""

    source_id: int
    target_id: int
    relation: Relation
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a weight that is none."""
        _check(self.weight)


@frozen
class Mention:
    """That a memory mentions someone or something, by the name that stands in it.

    `entity` is the entity's key, the same for all its names: `person:owner`, `place:paris`.
    """

    memory_id: int
    entity: str
    name: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a weight that is none, and a name without words."""
        _check(self.weight)
        if not name_words(self.name):
            raise ValueError(f"an entity cannot be called {self.name!r}: a name has words")


def _check(weight: float) -> None:
    if not 0 < weight <= 1:
        raise ValueError(f"a weight is above 0 and at most 1, not {weight}")


def name_words(name: str) -> str:
    """What the ways to write a name have in common: the stems of its words."""
    return " ".join(root(word) for word in spelled(name))


def names_in(query: str) -> list[str]:
    """What in a query could be a name, as `name_words` has it: up to four words in a row, not all of them stopwords."""
    grammar = function_words(query)
    words = [(root(word), fold(word) in grammar) for word in spelled(query)[:_QUERY_WORDS_MAX]]
    found: dict[str, None] = {}
    for first in range(len(words)):
        for last in range(first, min(first + _NAME_WORDS_MAX, len(words))):
            run = words[first : last + 1]
            if not all(stopword for _, stopword in run):
                found.setdefault(" ".join(stem for stem, _ in run))
    return list(found)


class Seed(NamedTuple):
    """A memory the walk starts from, and how well it fits the query: above 0 and at most 1."""

    memory_id: int
    strength: float


class WalkStep(NamedTuple):
    """One step of a walk: over which relation, and to which memory, or to which entity by the name it has there.

    The first step of a walk has no relation.
    """

    relation: str
    memory_id: int = 0
    name: str = ""
