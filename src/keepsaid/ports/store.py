"""The operational store, as one port: commits, and every view of it."""

from __future__ import annotations

from typing import Protocol

from keepsaid.ports.forgetting import ForgettingView, ReachView
from keepsaid.ports.store_views import (
    BufferView,
    CollectionView,
    JournalView,
    LaneList,
    LaneView,
    NoteView,
    Operations,
    OutboxView,
    PersonalityView,
    ReceiptView,
    RetentionView,
    ScheduleView,
    SessionView,
    TaskView,
)


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
