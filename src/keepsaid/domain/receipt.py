"""Receipts: why a memory was shown to a turn or left out, as values that a trace keeps (design: section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from keepsaid.domain.graph import Step


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
    path: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Searched:
    """How one leg of recall did: how many memories it found and in how many milliseconds; `why` it could not answer."""

    leg: str
    found: int
    took_ms: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Beyond:
    """A memory that legs found and that ranked behind those that were looked at: its final rank and value."""

    memory_id: int
    rank: int
    value: float
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Measure:
    """One number a verdict rests on, and the least that would have passed; None where there is no such limit."""

    name: str
    value: float
    least: float | None = None
