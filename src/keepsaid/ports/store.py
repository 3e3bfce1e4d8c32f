"""The operational store, as a port: the one way to write it, and all views of it together."""

from __future__ import annotations

from typing import Protocol, TypeVar

from keepsaid.domain.commits import Commit
from keepsaid.ports.forgetting import ForgettingView, ReachView
from keepsaid.ports.store_views import (
    BufferView,
    CollectionView,
    JournalView,
    LaneList,
    LaneView,
    NoteView,
    OutboxView,
    PersonalityView,
    ReceiptView,
    RetentionView,
    ScheduleView,
    SessionView,
    TaskView,
)

R = TypeVar("R")


class Operations(Protocol):
    """Applies commits."""

    async def apply(self, commit: Commit[R]) -> R:
        """Apply one commit, atomically; returns only after it is on disk.

        Raises StoreFull, StoreBroken or another StoreError with nothing of the commit kept, and
        IllegalMove when the commit asks for a move its table does not list.
        """
        ...


class Store(
    Operations,
    BufferView,
    LaneView,
    LaneList,
    OutboxView,
    RetentionView,
    SessionView,
    CollectionView,
    NoteView,
    PersonalityView,
    ReceiptView,
    Protocol,
):
    """The one way to write, and every read."""

    @property
    def forgettings(self) -> ForgettingView:
        """Requests to forget."""
        ...

    @property
    def tasks(self) -> TaskView:
        """Tasks."""
        ...

    @property
    def journal(self) -> JournalView:
        """What happened, and what is on its way to whom."""
        ...

    @property
    def schedules(self) -> ScheduleView:
        """What comes at a time."""
        ...

    @property
    def reach(self) -> ReachView:
        """Everything that a wish to forget reaches."""
        ...
