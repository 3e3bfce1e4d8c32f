"""The two stores, each as one port: the operational one, and memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from keepsaid.ports import memory_maintenance, memory_store, store_views
from keepsaid.ports.memory_store import Shelf, TextLeg, Vectors


class Store(
    store_views.Operations,
    store_views.BufferView,
    store_views.CountView,
    store_views.LaneView,
    store_views.LaneList,
    store_views.OutboxView,
    store_views.RetentionView,
    store_views.SessionView,
    store_views.CollectionView,
    store_views.NoteView,
    store_views.PersonalityView,
    store_views.ReceiptView,
    Protocol,
):
    """The one way to write, and every read."""

    @property
    def forgettings(self) -> memory_maintenance.ForgettingView:
        """Requests to forget."""

    @property
    def tasks(self) -> store_views.TaskView:
        """Tasks."""

    @property
    def journal(self) -> store_views.JournalView:
        """What happened, and what is on its way to whom."""

    @property
    def schedules(self) -> store_views.ScheduleView:
        """What comes at a time."""

    @property
    def pairings(self) -> store_views.PairingView:
        """Who may talk to the agent on channels that not everybody may use."""

    @property
    def histories(self) -> store_views.HistoryView:
        """Messages of clients that keep the history of a conversation themselves."""

    @property
    def files(self) -> store_views.FileView:
        """What came with messages."""

    @property
    def reach(self) -> memory_maintenance.ReachView:
        """Everything that a request to forget reaches."""

    async def cursors(self, channel: str, account: str) -> Mapping[str, str]:
        """How far an account of a channel has been read, by the names of its provider's strands."""


class Archive(TextLeg, Shelf, Protocol):
    """Archived memories, searched by their words."""


class MemoryCare(Protocol):
    """What is done with memories between turns, and by their owner."""

    @property
    def news(self) -> memory_maintenance.MemoryNews:
        """Changes of memories that are not published yet."""

    @property
    def relating(self) -> memory_maintenance.Relating:
        """What is to be associated."""

    @property
    def pairs(self) -> memory_maintenance.Pairs:
        """Pairs of memories that may say the same, or contradict each other."""

    @property
    def auditing(self) -> memory_maintenance.Auditing:
        """What an audit reads."""

    @property
    def upkeep(self) -> memory_maintenance.Upkeep:
        """The steps of maintenance."""

    @property
    def forgetful(self) -> memory_maintenance.ForgetfulMemory:
        """Forgetting."""

    @property
    def undo_log(self) -> memory_maintenance.MemoryUndoLog:
        """Undo images of forgettings."""

    @property
    def bundles(self) -> memory_store.Bundles:
        """Memory as it leaves a home and enters another."""


class MemoryStore(memory_store.Memories, memory_store.Learning, TextLeg, Vectors, MemoryCare, Protocol):
    """Memories: how they are kept, searched and compared, and everything else that is done with them."""

    @property
    def library(self) -> memory_store.Library:
        """Memories, read closely."""

    @property
    def revisions(self) -> memory_store.MemoryRevisions:
        """Versions of memories, and the changes that people make to them."""

    @property
    def people(self) -> memory_store.People:
        """Who is who."""

    @property
    def sharing(self) -> memory_store.MemorySharing:
        """Which listeners may read a memory."""

    @property
    def graph(self) -> memory_store.Graph:
        """What memories have to do with one another."""

    @property
    def entities(self) -> memory_store.Entities:
        """Whom and what the memories mention."""

    @property
    def bulletins(self) -> memory_store.BulletinStore:
        """What turns are briefed with."""

    @property
    def archive(self) -> Archive:
        """What was archived."""
