"""Sessions: epochs of a lane, from its first message to inactivity, compaction or reset (design: section 4.2).

A session covers a range of its lane's transcript; the next begins where it ends. Its mark says up to which record
it waits for collection (seed 004).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from keepsaid.domain.commits import Commit

UNPROCESSED_MAX = 5
"""More new user and assistant records than this mark the session for collection (seed 004)."""


class SessionEnd(StrEnum):
    """Why a session ended."""

    INACTIVITY = "inactivity"
    IDLE = "idle"
    COMPACTION = "compaction"
    RESET = "reset"


FIRST = "first message"
"""Why the first session of a lane started; later ones start because the one before ended."""

MARKS = {
    SessionEnd.INACTIVITY: "switch",
    SessionEnd.IDLE: "end",
    SessionEnd.COMPACTION: "compaction",
    SessionEnd.RESET: "reset",
}
"""What a mark says that the end of a session set."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session as it stands; positions count records of the lane's transcript, from 1, times are milliseconds UTC.

    It covers the records `first` to `last`, none where `last` is before `first`. `invalidated_at` is the last record
    that waits for collection, None when nothing does; up to `processed_until` all is collected.
    """

    id: int
    state: str
    first: int
    last: int
    started_at: int
    active_at: int
    started_reason: str
    ended_at: int | None = None
    ended_reason: str = ""
    invalidated_at: int | None = None
    invalidated_reason: str = ""
    processed_until: int | None = None


@dataclass(frozen=True, slots=True)
class SessionTerms:
    """How long a lane may be quiet, in milliseconds: before its next message starts a session, sleep, and end."""

    inactive_ms: int = 1_800_000
    sleep_ms: int = 60_000
    end_ms: int = 3_600_000


class Rested(NamedTuple):
    """What a `Rest` did: sessions that sleep now, that ended, and how many it looked at."""

    slept: int
    ended: int
    looked: int


@dataclass(frozen=True, slots=True)
class Rest(Commit[Rested]):
    """Let sessions of quiet lanes sleep, and end: those quiet since `sleep_before` and `end_before` at the latest.

    Of each kind `limit` at most, the longest quiet first. A lane with messages that wait or are being answered is not
    quiet: its session counts as quiet since `steady` from then on, as does one that is quiet since a later time,
    by a clock that was wrong. `steady`, and what lanes are quiet since, go by the steady clock, `at` by the wall.
    """

    sleep_before: int
    end_before: int
    steady: int
    at: int
    limit: int = 100


class QuietSince(NamedTuple):
    """Since when the longest quiet lane is, by the state of its session; None where there is none."""

    active: int | None
    sleeping: int | None
