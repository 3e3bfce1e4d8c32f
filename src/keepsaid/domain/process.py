"""Commits of the process itself: its life, what its death means for leases, and notes for the next process."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from keepsaid.domain import batch, commits, reply
from keepsaid.values import frozen


class ProcessRole(StrEnum):
    """What a process does where several share a store: all, turns and tasks alone, or all but these."""

    ALL = "all"
    WORKER = "worker"
    DOOR = "door"


@frozen
class VoidLeases(commits.Commit[tuple[int, ...]]):
    """End every lease of a dead owner: of all others, or of those that `sharing` says are dead, by their lives.

    The life of `owner` begins, unless it has. Where no other lives, what waited for a time or an outage is due now.
    Windows stay open. Each batch in flight counts one more crash, and is charged by `domain/batch.py`, then split
    (`split_id`) or parked. Returns the dead.
    """

    owner: str
    at: int
    notice: str
    reply_ids: tuple[int, ...]
    terms: batch.TrialTerms = batch.TrialTerms()
    split_id: int | None = None
    notice_again: str = ""
    notice_parked: str = ""
    sharing: batch.Sharing | None = None


@frozen
class Relinquish(commits.Commit[int]):
    """A graceful stop: return every batch of this owner to the queue, without charge; returns how many."""

    owner: str
    at: int


class Pulse(NamedTuple):
    """What a process learns when it says that it lives.

    `trial_waits` says that a batch waits for a trial, `leads` that of all processes this one does what only one may do,
    `lapsed` that another one did not say in time that it lives.
    """

    trial_waits: bool
    leads: bool = True
    lapsed: bool = False


@frozen
class Beat(commits.Commit[Pulse]):
    """Record that the process of `owner` has lived for `lived_ms`, and by which age it will say so again (`due_ms`).

    Where processes share a store, `sharing` says until when its life is kept.
    """

    owner: str
    lived_ms: int
    due_ms: int
    sharing: batch.Sharing | None = None


@frozen
class RequeueCrashed(commits.Commit[int]):
    """The process is stable: queue again, once each, up to `limit` batches that crashes alone buried.

    They run in a trial. What became a suspect outside of trials, and found none so far, is a suspect no more. Returns
    how many are queued again.
    """

    at: int
    reason: str
    terms: batch.TrialTerms = batch.TrialTerms()
    limit: int = 64


ENDLESSLY = 1 << 62
"""Until when a note is kept that is never over (milliseconds UTC)."""


@frozen
class Note(commits.Commit[None]):
    """Keep a text under a name in place of the one before, until a time; times are milliseconds UTC.

    Notes that are over at `at` go with it.
    """

    name: str
    text: str
    until: int
    at: int


@frozen
class NotifyOwner(commits.Commit[bool]):
    """Put a notice to the owner in the outbox, where he last wrote in a direct chat, once under each name.

    True when it is there, now or from before; False when nobody knows where to tell him. The name is known for as
    long as a note of it is kept: until a time, milliseconds UTC.
    """

    notice: reply.ReplyDraft
    name: str
    until: int
    at: int
