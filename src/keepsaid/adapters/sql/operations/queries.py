"""Queries of the operational store: the buffer, the lanes and the outbox, read only."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from keepsaid.adapters.sql.operations import (
    collection,
    pruning,
    receipts,
    views,
)
from keepsaid.adapters.sql.operations.forgetting_reach import SqlForgettings, SqlReach
from keepsaid.adapters.sql.operations.journal import SqlJournal
from keepsaid.adapters.sql.operations.schedule_view import SqlSchedules
from keepsaid.adapters.sql.operations.session_views import SqlCollections, SqlContexts, SqlSessions
from keepsaid.adapters.sql.operations.task_view import SqlTasks
from keepsaid.adapters.sql.operations.views import SqlLaneList
from keepsaid.adapters.sql.session import SqlReaders
from keepsaid.adapters.sql.tombs import Tombs
from keepsaid.domain.batch import Due, Group
from keepsaid.domain.lane import Lane
from keepsaid.domain.redaction import Mark
from keepsaid.domain.reply import Reply
from keepsaid.domain.retention import Backlog, Prunable, PruneHistory
from keepsaid.domain.turn import Claimed, Lease
from keepsaid.domain.views import EpisodeWork, MessageFilter, Overview, Story, TurnStory


class SqlBuffer:
    """The buffer, read only."""

    def __init__(self, readers: SqlReaders, tombs: Tombs) -> None:
        self._readers = readers
        self._tombs = tombs
        self._told = asyncio.Event()

    async def due(self, at: int, limit: int) -> tuple[Due, ...]:
        """Lanes whose window has closed by `at`."""
        return await self._readers.run(views.due, at, limit)

    async def waiting(self, lanes: Sequence[Lane]) -> tuple[Group, ...]:
        """What waits in these lanes."""
        return await self._readers.run(views.waiting, lanes)

    async def next_due(self) -> int | None:
        """When the next window closes."""
        return await self._readers.run(views.next_due)

    async def next_trial(self) -> int | None:
        """Return the age of the process at which a trial may begin."""
        return await self._readers.run(views.next_trial)

    async def story(self, message_id: int) -> Story | None:
        """One message and what became of it."""
        return await self._readers.run(views.story, message_id)

    async def find(self, wanted: MessageFilter) -> Sequence[Story]:
        """Messages, newest first."""
        return await self._readers.run(views.find, wanted)

    async def overview(self) -> Overview:
        """Counts for `status`."""
        return await self._readers.run(views.overview)

    async def episode_work(self, limit: int, conversation: str | None = None) -> Sequence[EpisodeWork]:
        """Batches whose episodes may not be in memory yet."""
        return await self._readers.run(views.episode_work, limit, conversation)

    async def marks(self, message_id: int) -> tuple[Mark, ...]:
        """Where a message's text holds secrets."""
        return await self._readers.run(collection.marks, message_id)

    async def backlog(self) -> Backlog:
        """What waits."""
        return await self._readers.run(pruning.backlog)

    async def prune_history(self) -> PruneHistory:
        """The runs of the pruner."""
        return await self._readers.run(pruning.history)

    async def prunable(self, messages_before: int, records_before: int) -> Prunable:
        """What a run of the pruner would remove."""
        return await self._readers.run(pruning.prunable, messages_before, records_before)


class SqlLanes(
    SqlContexts,
    SqlCollections,
    receipts.SqlNotes,
    SqlBuffer,
    SqlSessions,
    SqlLaneList,
    receipts.SqlReceipts,
):
    """The buffer, the lanes and the outbox, read only."""

    @property
    def forgettings(self) -> SqlForgettings:
        """Requests to forget."""
        return SqlForgettings(self._readers, self._tombs)

    @property
    def reach(self) -> SqlReach:
        """Everything that a wish to forget reaches."""
        return SqlReach(self._readers, self._tombs)

    @property
    def tasks(self) -> SqlTasks:
        """Tasks."""
        return SqlTasks(self._readers)

    @property
    def journal(self) -> SqlJournal:
        """What happened, and what is on its way to whom."""
        return SqlJournal(self._readers, self._told)

    @property
    def schedules(self) -> SqlSchedules:
        """What comes at a time."""
        return SqlSchedules(self._readers)

    async def claimed(self, lease: Lease) -> Claimed | None:
        """What a lease is for."""
        return await self._readers.run(views.claimed, lease)

    async def turn(self, turn_id: int) -> TurnStory | None:
        """One turn."""
        return await self._readers.run(views.turn, turn_id)

    async def last_turn(self, lane: Lane | None) -> int | None:
        """The newest settled turn."""
        return await self._readers.run(views.last_turn, lane)

    async def next_ready(self) -> int | None:
        """When the next queued batch may be claimed."""
        return await self._readers.run(views.next_ready)

    async def unseen(self, channel: str, conversation: str) -> Sequence[Reply]:
        """Replies nobody has pulled yet."""
        return await self._readers.run(views.unseen, channel, conversation)

    async def last_id(self) -> int:
        """The largest id of all messages, batches, replies and tasks."""
        return await self._readers.run(views.last_id)

    async def next_send(self, channels: tuple[str, ...]) -> int | None:
        """When the next reply may be pushed."""
        return await self._readers.run(views.next_send, channels)
