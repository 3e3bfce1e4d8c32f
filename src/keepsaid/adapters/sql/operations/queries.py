"""Queries of the operational store: the buffer, the lanes and the outbox, read only."""

from __future__ import annotations

import asyncio

from keepsaid.adapters.sql.operations import collection, pruning, receipts, session_views, turns, views
from keepsaid.adapters.sql.operations import context as lane_context
from keepsaid.adapters.sql.operations import sessions as lane_sessions
from keepsaid.adapters.sql.operations.forgetting_reach import SqlForgettings, SqlReach
from keepsaid.adapters.sql.operations.journal import SqlJournal
from keepsaid.adapters.sql.operations.work_views import SqlSchedules, SqlTasks
from keepsaid.adapters.sql.query import SqlView, reads
from keepsaid.adapters.sql.session import SqlReaders
from keepsaid.adapters.sql.tombstones import TombstoneKeyring


class SqlLanes(SqlView):
    """Every read of the operational store, by the port that asks for it."""

    def __init__(self, readers: SqlReaders, keyring: TombstoneKeyring) -> None:
        super().__init__(readers)
        self._committed = asyncio.Event()
        self.forgettings = SqlForgettings(readers, keyring)
        self.reach = SqlReach(readers, keyring)
        self.tasks = SqlTasks(readers)
        self.journal = SqlJournal(readers, self._committed)
        self.schedules = SqlSchedules(readers)

    # BufferView, MarksView
    due = reads(views.due)
    waiting = reads(views.waiting)
    next_due = reads(views.next_due)
    story = reads(views.story)
    find = reads(views.find)
    overview = reads(views.overview)
    episode_work = reads(views.episode_work)
    marks = reads(collection.marks)

    # RetentionView
    backlog = reads(pruning.backlog)
    prune_history = reads(pruning.history)
    prunable = reads(pruning.prunable)

    # LaneView, ContextView, LaneList
    claimed = reads(views.claimed)
    turn = reads(views.turn)
    last_turn = reads(views.last_turn)
    next_ready = reads(views.next_ready)
    next_trial = reads(views.next_trial)
    context = reads(lane_context.context)
    reminders = reads(turns.reminders)
    span = reads(lane_context.span)
    past = reads(lane_context.past)
    summaries_due = reads(lane_context.due)
    summaries_of = reads(lane_context.of_conversation)
    lanes = reads(views.lanes)
    line = reads(views.line)
    summaries = reads(views.summaries)

    # OutboxView
    unseen = reads(views.unseen)
    last_id = reads(views.last_id)
    next_send = reads(views.next_send)

    # SessionView, CollectionView, PersonalityView
    sessions = reads(lane_sessions.sessions)
    slots = reads(lane_sessions.slots)
    quiet_since = reads(lane_sessions.quiet_since)
    collections = reads(session_views.collections)
    passage = reads(session_views.passage)
    marked_at = reads(session_views.marked_at)
    personalities = reads(turns.personalities)

    # NoteView, ReceiptView
    note = reads(receipts.note)
    reminded = reads(receipts.reminded)
    uses = reads(receipts.uses)
    list_active_feedback = reads(receipts.list_active_feedback)
    feedback = reads(receipts.feedback)
