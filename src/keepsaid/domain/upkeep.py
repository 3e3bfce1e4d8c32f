"""Upkeep of memory: what is done to it at night, step by step, and what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from keepsaid.domain.commits import Commit
from keepsaid.domain.decay import Curve
from keepsaid.domain.space import VectorSpace

PIECE = 32
"""Things that are looked at together; one memory that is archived is as much work."""


class Task(StrEnum):
    """What is done, in this order."""

    FADE = "fade"
    ENDED = "ended"
    BULLETINS = "bulletins"
    EDGES = "edges"
    MENTIONS = "mentions"
    SOURCES = "sources"
    STATEMENTS = "statements"
    CHAINS = "chains"
    PIECES = "pieces"
    VECTORS = "vectors"
    ENTITIES = "entities"
    SPACES = "spaces"
    TERMS = "terms"


LOOSE = (
    Task.EDGES,
    Task.MENTIONS,
    Task.SOURCES,
    Task.STATEMENTS,
    Task.CHAINS,
    Task.PIECES,
    Task.VECTORS,
    Task.ENTITIES,
)
"""Tasks that take away what leads to nothing, in an order in which one leaves nothing for those before it."""


@dataclass(frozen=True, slots=True)
class Stepped:
    """What a step did: how much it looked at, changed and archived, and whether its task is over."""

    looked: int = 0
    changed: int = 0
    archived: int = 0
    over: bool = True

    def then(self, further: Stepped) -> Stepped:
        """It and what was done further in the same step."""
        changed, archived = self.changed + further.changed, self.archived + further.archived
        return Stepped(self.looked + further.looked, changed, archived, over=further.over)


@dataclass(frozen=True, slots=True)
class Maintain(Commit[Stepped]):
    """The next step of a task, over at most `limit` things; where it goes on from stands in the store.

    It is done in pieces of PIECE things, and is over once it worked for `budget_ms`: one piece it does in any case.
    A task that was not over goes on as of the time at which it began; else it begins at `at`, milliseconds UTC.
    `space` is the one whose vectors serve; those of others go, once it reached as far as any of them.
    """

    task: Task
    at: int
    limit: int
    curve: Curve = Curve()
    space: VectorSpace | None = None
    budget_ms: float | None = None


@dataclass(frozen=True, slots=True)
class TaskRun:
    """The last run of a task, or the one that is not over: `ended_at` is None. Times are milliseconds UTC."""

    task: Task
    begun_at: int
    ended_at: int | None
    changed: int
    archived: int


@dataclass(frozen=True, slots=True)
class Outstanding:
    """What a run would find to do, by task; of memories to fade, how many would be archived."""

    found: Mapping[Task, int] = field(default_factory=dict)
    archived: int = 0


@dataclass(frozen=True, slots=True)
class Holdings:
    """What memory holds: memories by kind, state and kind of scope, and how much of what belongs to them.

    `unembedded` are pieces without a vector in the space that reached furthest.
    """

    kinds: Mapping[str, int]
    states: Mapping[str, int]
    scopes: Mapping[str, int]
    counts: Mapping[str, int]
    runs: tuple[TaskRun, ...] = ()
