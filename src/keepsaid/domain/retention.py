"""Retention: how long what is settled is kept, and when a clock cannot be believed (seed 000, Retention)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from keepsaid.values import frozen

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SET_MS = HOUR_MS
"""The difference to the steady clock above which the wall clock was set."""

SILENT_MS = 30 * DAY_MS
"""So long after the last run, the clock is believed only at the next."""

Cursor = tuple[int | bytes, ...]
"""Where a pass over a store stands; empty at its begin."""


class Stale(StrEnum):
    """What a piece of pruning removes."""

    MESSAGES = "messages"
    """Message rows and lane marks of settled batches, and the steps of their turns."""
    RECORDS = "records"
    """Such batches themselves, with turns, traces, injections and replies."""
    FINDINGS = "findings"
    """What was found in a reading, once all of it was in memory so long ago."""
    KEYS = "keys"
    """De-duplication keys of messages that are gone."""
    RUNS = "runs"
    """Runs of schedules that ended, with what they posted, and schedules that come no more."""
    EVENTS = "events"
    """Deliveries that were settled, and the lines of the journal that no subscriber needs any more."""
    TASKS = "tasks"
    """Tasks that ended, with their steps: after the messages they were made of, and after what waited for them."""


@frozen
class RetentionTerms:
    """How long what is settled is kept, in milliseconds; None is for ever."""

    messages_ms: int
    records_ms: int
    keys_ms: int | None = None


class Pruned(NamedTuple):
    """What one piece removed, and where the next begins; None when nothing is left."""

    messages: int
    batches: int
    keys: int
    after: Cursor | None
    events: int = 0


class PruneRun(NamedTuple):
    """A recorded run: when it began, the last message id there was then, and the messages it removed."""

    at: int
    last_id: int
    messages: int


@frozen
class PruneHistory:
    """Runs, newest first; when the oldest message that is kept came; the messages removed by all runs."""

    runs: Sequence[PruneRun]
    first_at: int | None
    messages: int

    def doubt(self, now: int) -> str | None:
        """Why a wall clock that says `now` is not believed; None when it is."""
        last = self.runs[0].at if self.runs else self.first_at
        if last is None:
            return None
        since = "the last run" if self.runs else "the oldest message"
        if now < last:
            return f"the clock stands before {since}"
        return f"the clock stands more than 30 days after {since}" if now - last > SILENT_MS else None

    def known_by(self, at: int) -> int:
        """The greatest message id that was there at a time, as far as runs can tell; 0 when they cannot.

        Only runs since the last jump of the clock count.
        """
        later: int | None = None
        for run in self.runs:
            if later is not None and not 0 <= later - run.at <= SILENT_MS:
                return 0
            if run.at <= at:
                return run.last_id
            later = run.at
        return 0


@frozen
class Prunable:
    """What a run would remove: messages, and the records of batches."""

    messages: int
    batches: int


@frozen
class Backlog:
    """The number of waiting messages or replies, and when the oldest was stored (milliseconds UTC)."""

    waiting: int
    oldest_at: int | None = None
