"""Quiet commits: those that write nothing to the journal, so that nobody who waits for something to happen is woken."""

from __future__ import annotations

from keepsaid.domain.collection import ClaimCollection
from keepsaid.domain.commits import BeginPruning, Commit, EpisodesKept, Prune, Renew, StepEnd, StepStart, TakeReplies
from keepsaid.domain.event import Distribute, SettleDeliveries, Subscribe, TakeDeliveries
from keepsaid.domain.process import Beat, Note
from keepsaid.domain.task import RenewTask, ResultsKept, TellStatus

_QUIET = frozenset[type]({
    Beat,
    BeginPruning,
    ClaimCollection,
    Distribute,
    EpisodesKept,
    Note,
    Prune,
    Renew,
    RenewTask,
    ResultsKept,
    SettleDeliveries,
    StepEnd,
    StepStart,
    Subscribe,
    TakeDeliveries,
    TakeReplies,
    TellStatus,
})  # fmt: skip


def is_quiet(commit: Commit[object]) -> bool:
    """Whether a commit of this type never tells of anything; of all others somebody may want to know at once."""
    return type(commit) in _QUIET
