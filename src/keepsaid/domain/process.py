"""Commits of the process itself: records of how long it lives, and notes that the next process reads."""

from __future__ import annotations

from keepsaid.domain import batch, commits, reply
from keepsaid.values import frozen


@frozen
class Beat(commits.Commit[bool]):
    """Record that the process of `owner` has lived for `lived_ms`, and by which age it will say so again (`due_ms`).

    Returns whether a batch waits for a trial.
    """

    owner: str
    lived_ms: int
    due_ms: int


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
