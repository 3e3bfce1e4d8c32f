"""The operational store with all that is read of it."""

from __future__ import annotations

from typing import Protocol

from keepsaid.ports.buffer import BufferView
from keepsaid.ports.collection import CollectionView
from keepsaid.ports.forgetting import ForgettingView, ReachView
from keepsaid.ports.journal import JournalView
from keepsaid.ports.lane_list import LaneList
from keepsaid.ports.lanes import LaneView
from keepsaid.ports.notes import NoteView
from keepsaid.ports.operations import Operations
from keepsaid.ports.outbox import OutboxView
from keepsaid.ports.personalities import PersonalityView
from keepsaid.ports.receipts import ReceiptView
from keepsaid.ports.retention import RetentionView
from keepsaid.ports.schedules import ScheduleView
from keepsaid.ports.sessions import SessionView
from keepsaid.ports.tasks import TaskView


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
