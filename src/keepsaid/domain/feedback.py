"""Feedback: a person's word that a memory was wrong for a turn, which keeps it out of the lane's next turns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from keepsaid.domain.lane import Lane
from keepsaid.domain.prompt import Json


class FeedbackState(StrEnum):
    """Whether the word stands."""

    WRONG = "wrong"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class JudgeMemory:
    """Say that a memory was wrong for a turn it was shown to, or by the verb `withdraw` take that back.

    `by` is a person.
    """

    turn_id: int
    memory_id: int
    by: str
    verb: str = "mark"


@dataclass(frozen=True, slots=True)
class Feedback:
    """What was said of a memory: for which turn, by whom and when (milliseconds UTC)."""

    turn_id: int
    memory_id: int
    state: FeedbackState
    by: str
    at: int


class How(StrEnum):
    """How a memory came up in a turn."""

    INJECTED = "injected"
    OPENED = "opened"
    LEFT_OUT = "left_out"
    BEYOND = "beyond"


@dataclass(frozen=True, slots=True)
class Use:
    """A turn that a memory came up in, and what the turn's trace says of it; `at` is milliseconds UTC."""

    turn_id: int
    lane: Lane
    at: int
    how: How
    found: Json = None


@dataclass(frozen=True, slots=True)
class Reminded:
    """A turn and the memories it was shown, in order."""

    turn_id: int
    memories: tuple[int, ...]
