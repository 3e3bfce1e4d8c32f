"""Commits of a living process: it says that it lives, and gives what crashes buried a second chance."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.domain.commits import Commit
from keepsaid.domain.suspicion import TrialTerms


@dataclass(frozen=True, slots=True)
class Beat(Commit[bool]):
    """Record that the process of `owner` has lived for `lived_ms`, and by which age it will say so again (`due_ms`).

    Returns whether a batch waits for a trial.
    """

    owner: str
    lived_ms: int
    due_ms: int


@dataclass(frozen=True, slots=True)
class RequeueCrashed(Commit[int]):
    """The process is stable: queue again, once each, up to `limit` batches that crashes alone buried.

    They run in a trial. What became a suspect outside of trials, and found none so far, is a suspect no more. Returns
    how many are queued again.
    """

    at: int
    reason: str
    terms: TrialTerms = TrialTerms()
    limit: int = 64
