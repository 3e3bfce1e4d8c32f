"""Receipts: why a memory was shown to a turn or left out, and a person's word that it was wrong."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from keepsaid.domain import graph, message
from keepsaid.domain.prompt import Json
from keepsaid.values import frozen


class FeedbackState(StrEnum):
    """Whether the word stands."""

    WRONG = "wrong"
    WITHDRAWN = "withdrawn"


@frozen
class JudgeMemory:
    """Say that a memory was wrong for a turn it was shown to, or by the verb `withdraw` take that back.

    `by` is a person.
    """

    turn_id: int
    memory_id: int
    by: str
    verb: str = "mark"


@frozen
class Feedback:
    """What was said of a memory: for which turn, by whom and when (milliseconds UTC)."""

    turn_id: int
    memory_id: int
    state: FeedbackState
    by: str
    at: int


class MemoryUse(StrEnum):
    """How a memory came up in a turn."""

    INJECTED = "injected"
    OPENED = "opened"
    LEFT_OUT = "left_out"
    BEYOND = "beyond"


@frozen
class Use:
    """A turn that a memory came up in, and what the turn's trace says of it; `at` is milliseconds UTC."""

    turn_id: int
    lane: message.Lane
    at: int
    how: MemoryUse
    found: Json = None


@frozen
class Reminded:
    """A turn and the memories it was shown, in order."""

    turn_id: int
    memories: tuple[int, ...]


MEMORY_OPEN = "memory_open"
"""The tool by which a model opens a memory; its answer begins with the memory's id."""


class Cause(StrEnum):
    """Why a candidate was shown (`pinned`, `relevant`) or what it fell to, in one word."""

    PINNED = "pinned"
    RELEVANT = "relevant"
    VISIBLE = "visible"
    DUPLICATE = "duplicate"
    INVALID = "invalid"
    GATE = "gate"
    WRONG = "wrong"
    REINJECT = "reinject"
    BUDGET = "budget"


class Place(NamedTuple):
    """Where one leg had a memory: its rank from 1, and a score that compares within that leg's answer only.

    `path` is how the graph leg came to it.
    """

    leg: str
    rank: int
    score: float
    path: tuple[graph.WalkStep, ...] = ()


@frozen
class Searched:
    """How one leg of recall did: how many memories it found and in how many milliseconds; `why` it could not answer."""

    leg: str
    found: int
    took_ms: float
    why: str = ""


class Beyond(NamedTuple):
    """A memory that legs found and that ranked behind those that were looked at: its final rank and value."""

    memory_id: int
    rank: int
    value: float
    places: tuple[Place, ...] = ()


@frozen
class Measure:
    """One number a verdict rests on, and the least that would have passed; None where there is no such limit."""

    name: str
    value: float
    least: float | None = None


def candidate_in(trace: Json, memory_id: int) -> dict[str, Json] | None:
    """What a trace says of a memory that was looked at for its turn."""
    return _named(trace, "candidates", memory_id)


def chosen_in(trace: Json) -> list[dict[str, Json]]:
    """What a trace says of the memories that its turn was shown, in their order."""
    named = _of_memory(trace, "candidates")
    looked_at = named if isinstance(named, list) else []
    return [one for one in looked_at if isinstance(one, dict) and one.get("chosen")]


def missing_in(trace: Json) -> tuple[str, ...]:
    """What a trace says that recall went without, such as a search by meaning that took too long."""
    named = _of_memory(trace, "missing")
    return tuple(str(one) for one in named) if isinstance(named, list) else ()


def beyond_in(trace: Json, memory_id: int) -> dict[str, Json] | None:
    """What a trace says of a memory that ranked behind those that were looked at."""
    return _named(trace, "beyond", memory_id)


def block_in(trace: Json) -> str:
    """The block that a trace says its turn was shown; empty when it was shown none."""
    block = _of_memory(trace, "block")
    return block if isinstance(block, str) else ""


def _named(trace: Json, part: str, memory_id: int) -> dict[str, Json] | None:
    named = _of_memory(trace, part)
    found = named if isinstance(named, list) else []
    return next((one for one in found if isinstance(one, dict) and one.get("id") == memory_id), None)


def _of_memory(trace: Json, part: str) -> Json:
    memory = trace.get("memory") if isinstance(trace, dict) else None
    return memory.get(part) if isinstance(memory, dict) else None
