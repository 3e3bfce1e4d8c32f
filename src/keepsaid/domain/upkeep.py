"""Upkeep of memory: its nightly tasks step by step, and how importance decays (Ebbinghaus)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import exp, log

from keepsaid.domain.commits import Commit
from keepsaid.domain.memory import Kind
from keepsaid.domain.search import VectorSpace

DAY_MS = 86_400_000
POWER = 0.8

FADING = frozenset((Kind.GOAL, Kind.DECISION, Kind.TODO, Kind.PREFERENCE, Kind.FACT, Kind.EVENT, Kind.OBSERVATION))
"""Kinds that fade. Who somebody is does not; what was said, and summaries of it, are the record and no judgement."""

_WORTH_WRITING = 0.99


@dataclass(frozen=True, slots=True)
class Curve:
    """How fast importance fades, below which it is archived, and for how many days after its last use it is not.

    At the default rate half of it is left after 84 days; a fact that nobody ever used again is archived after 414.
    """

    rate: float = 0.02
    floor: float = 0.05
    grace_days: float = 30.0


@dataclass(frozen=True, slots=True)
class FadeTrace:
    """What fades: a memory's importance, since when it was not used, and up to when that is counted already.

    Times are milliseconds UTC. `uses` are turns that were shown it, and pieces of evidence beyond the first.
    """

    importance: float
    since: int
    counted: int | None = None
    uses: int = 0

    def at(self, now: int, curve: Curve) -> float:
        """Its importance now."""
        rate = curve.rate / (1 + log(1 + max(0, self.uses)))
        gone = self._days(now) ** POWER - self._days(self.counted or self.since) ** POWER
        return self.importance * exp(-rate * max(0.0, gone))

    def worth_counting(self, now: int, curve: Curve) -> bool:
        """Whether so much is gone that it is to be written; what is not is counted with the next."""
        left = self.at(now, curve)
        return left < _WORTH_WRITING * self.importance or self.gone(left, now, curve)

    def gone(self, left: float, now: int, curve: Curve) -> bool:
        """Whether with so much left it is to be archived."""
        return left < curve.floor and self._days(now) >= curve.grace_days

    def _days(self, at: int) -> float:
        return max(0, at - self.since) / DAY_MS


PIECE = 32
"""Things that are looked at together; one memory that is archived is as much work."""


class UpkeepTask(StrEnum):
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
    UpkeepTask.EDGES,
    UpkeepTask.MENTIONS,
    UpkeepTask.SOURCES,
    UpkeepTask.STATEMENTS,
    UpkeepTask.CHAINS,
    UpkeepTask.PIECES,
    UpkeepTask.VECTORS,
    UpkeepTask.ENTITIES,
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

    task: UpkeepTask
    at: int
    limit: int
    curve: Curve = Curve()
    space: VectorSpace | None = None
    budget_ms: float | None = None


@dataclass(frozen=True, slots=True)
class TaskRun:
    """The last run of a task, or the one that is not over: `ended_at` is None. Times are milliseconds UTC."""

    task: UpkeepTask
    begun_at: int
    ended_at: int | None
    changed: int
    archived: int


@dataclass(frozen=True, slots=True)
class Outstanding:
    """What a run would find to do, by task; of memories to fade, how many would be archived."""

    found: Mapping[UpkeepTask, int] = field(default_factory=dict)
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
