"""Slots: a pending question of a lane, the type its answer must have, and when it ends (seed 003, thread_state)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, tzinfo
from enum import StrEnum

EXPIRY_MS = 600_000
"""How long a question waits for its answer, unless the config says otherwise."""

TAKEN_OVER = "another question was asked"
"""Why a slot is cleared whose person is asked something newer in the same lane."""


class Expected(StrEnum):
    """The type of an answer."""

    TEXT = "text"
    BOOLEAN = "boolean"
    DATE_TIME = "date_time"
    NUMBER = "number"
    LOCATION = "location"
    SELECTION = "selection"


class SlotState(StrEnum):
    """Where a question stands; the moves are in `states.py`."""

    OPEN = "open"
    FILLED = "filled"
    CLEARED = "cleared"
    EXPIRED = "expired"


class OnMismatch(StrEnum):
    """What becomes of a question when its person says something that is no answer to it."""

    CLEAR = "clear"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class SlotTerms:
    """How long a question waits, what ends it, and in whose time dates are read."""

    expiry_ms: int = EXPIRY_MS
    on_mismatch: OnMismatch = OnMismatch.CLEAR
    zone: tzinfo = UTC


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and the type of the answer; `options` belong to a selection."""

    text: str
    expected: Expected = Expected.TEXT
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Slot:
    """A question that was asked of one person in one lane; times are milliseconds UTC.

    `id` is that of the turn that asked, so that a turn told twice asks once. `anchor` names the reply that asks,
    `filled_by` the message that answered, `value` its answer as read, `reason` why it ended otherwise.
    """

    id: int
    person: str
    question: Question
    anchor: str
    opened_at: int
    expires_at: int
    state: SlotState = SlotState.OPEN
    filled_by: str = ""
    value: str = ""
    reason: str = ""
    ended_at: int | None = None
