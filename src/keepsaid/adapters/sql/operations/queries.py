"""Queries of the operational store: the buffer, the lanes and the outbox, read only."""

from __future__ import annotations

import asyncio

from keepsaid.adapters.sql.operations import (
    collection,
    pruning,
    receipts,
    views,
)
from keepsaid.adapters.sql.operations.forgetting_reach import SqlForgettings, SqlReach
from keepsaid.adapters.sql.operations.journal import SqlJournal
from keepsaid.adapters.sql.operations.session_views import SqlCollections, SqlContexts, SqlSessions
from keepsaid.adapters.sql.operations.views import SqlLaneList
from keepsaid.adapters.sql.operations.work_views import SqlSchedules, SqlTasks
from keepsaid.adapters.sql.query import reads
from keepsaid.adapters.sql.session import SqlReaders
from keepsaid.adapters.sql.tombstones import TombstoneKeyring


class SqlBuffer:
    """The buffer, read only."""

    def __init__(self, readers: SqlReaders, tombs: TombstoneKeyring) -> None:
        self._readers = readers
        self._tombs = tombs
        self._told = asyncio.Event()

    due = reads(views.due)
    waiting = reads(views.waiting)
    next_due = reads(views.next_due)
    next_trial = reads(views.next_trial)
    story = reads(views.story)
    find = reads(views.find)
    overview = reads(views.overview)
    episode_work = reads(views.episode_work)
    marks = reads(collection.marks)
    backlog = reads(pruning.backlog)
    prune_history = reads(pruning.history)
    prunable = reads(pruning.prunable)


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

    claimed = reads(views.claimed)
    turn = reads(views.turn)
    last_turn = reads(views.last_turn)
    next_ready = reads(views.next_ready)
    unseen = reads(views.unseen)
    last_id = reads(views.last_id)
    next_send = reads(views.next_send)
