"""The operational store on SQLite: one writer, a few readers, the ports of the pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import apsw

from keepsaid.adapters.sqlite import (
    buffer_view,
    collection,
    context,
    crashes,
    episodes,
    journal,
    lane_view,
    leases,
    notes,
    outbox,
    pruning,
    receipts,
    routing,
    schedules,
    sessions,
    steps,
    summaries,
    task_ends,
    task_making,
    tasks,
    turns,
)
from keepsaid.adapters.sqlite import busy as busy_lanes
from keepsaid.adapters.sqlite import forgetting as forgetful
from keepsaid.adapters.sqlite.claims import claim
from keepsaid.adapters.sqlite.collection_view import SqliteCollections
from keepsaid.adapters.sqlite.connection import LOOKUPS_KIB, open_writer, translated
from keepsaid.adapters.sqlite.context_view import SqliteContexts
from keepsaid.adapters.sqlite.drop import drop
from keepsaid.adapters.sqlite.forgetting_view import SqliteForgettings, SqliteReach
from keepsaid.adapters.sqlite.intake import Intake
from keepsaid.adapters.sqlite.journal_view import SqliteJournal
from keepsaid.adapters.sqlite.lane_list import SqliteLaneList
from keepsaid.adapters.sqlite.ledger import ApplyOne, CommitTable, Ledger, emptied
from keepsaid.adapters.sqlite.migrate import look, migrate
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.adapters.sqlite.schedule_view import SqliteSchedules
from keepsaid.adapters.sqlite.session_view import SqliteSessions
from keepsaid.adapters.sqlite.task_view import SqliteTasks
from keepsaid.adapters.sqlite.tombs import tombs_beside
from keepsaid.adapters.sqlite.writer import Writer
from keepsaid.domain import busy, commits, compaction, event, forgetting, lives, news, relay, scheduling, session, task
from keepsaid.domain import collection as collecting
from keepsaid.domain.batch import Due, Group
from keepsaid.domain.commits import Commit
from keepsaid.domain.lane import Lane
from keepsaid.domain.note import Note, NotifyOwner
from keepsaid.domain.quiet import is_quiet
from keepsaid.domain.redaction import Mark
from keepsaid.domain.reply import Reply
from keepsaid.domain.retention import Backlog, Prunable, PruneHistory
from keepsaid.domain.turn import Claimed, Lease
from keepsaid.domain.views import EpisodeWork, MessageFilter, Overview, Story, TurnStory
from keepsaid.ports.operations import Operations

R = TypeVar("R")

_COMMITS: Mapping[type, ApplyOne] = {
    commits.Renew: leases.renew,
    commits.Release: leases.release,
    commits.Fail: leases.fail,
    commits.VoidLeases: crashes.void_leases,
    lives.Beat: crashes.beat,
    lives.RequeueCrashed: crashes.requeue_crashed,
    commits.ExpireLeases: leases.expire_leases,
    commits.Relinquish: leases.relinquish,
    commits.Requeue: leases.requeue,
    commits.Drop: drop,
    commits.StepStart: steps.start_step,
    commits.StepEnd: steps.end_step,
    commits.TurnCommit: turns.commit_turn,
    commits.TakeReplies: outbox.take,
    commits.Settle: outbox.settle,
    commits.Doubt: outbox.doubt,
    commits.Resend: outbox.resend,
    commits.Shown: outbox.shown,
    commits.Decide: outbox.decide,
    compaction.Summarise: context.summarise,
    compaction.CutContext: context.cut,
    compaction.SummaryFailed: context.summary_failed,
    compaction.SummariesCopied: summaries.copied,
    busy.Interrupt: busy_lanes.interrupt,
    busy.Steer: busy_lanes.steer,
    session.Rest: sessions.rest,
    collecting.ClaimCollection: collection.claim,
    collecting.KeepFinding: collection.keep_finding,
    collecting.Collected: collection.collected,
    collecting.CollectionFailed: collection.failed,
    collecting.RequeueCollection: collection.requeue,
    collecting.Invalidate: collection.mark_one,
    collecting.MarkUnprocessed: collection.mark_unprocessed,
    commits.BeginPruning: pruning.begin,
    commits.Tell: journal.tell,
    news.TellNews: journal.tell_news,
    Note: notes.keep,
    NotifyOwner: notes.notify,
    commits.EpisodesKept: episodes.kept,
    commits.Judge: receipts.judge,
    forgetting.PutBack: forgetful.back,
    forgetting.EmptyLog: emptied,
    task.CreateTasks: task_making.create,
    task.ClaimTasks: tasks.claim,
    task.RenewTask: tasks.renew,
    task.TellStatus: tasks.status,
    task.EndTask: task_ends.end,
    task.CancelTask: tasks.cancel,
    task.RunTask: tasks.run_now,
    task.DecideTask: tasks.decide,
    task.ExpireTasks: tasks.expire,
    relay.TellBack: tasks.told_back,
    task.ResultsKept: tasks.kept,
    event.Subscribe: journal.subscribe,
    event.Unsubscribe: journal.unsubscribe,
    event.Distribute: journal.distribute,
    event.TakeDeliveries: journal.take,
    event.SettleDeliveries: journal.settle,
    event.DecideDelivery: journal.decide,
    scheduling.AddSchedule: schedules.add,
    scheduling.ReplaceSchedules: schedules.replace_all,
    scheduling.FireSchedules: schedules.fire,
    scheduling.RunNow: schedules.run_now,
    scheduling.BeginRun: schedules.begin,
    scheduling.EndRun: schedules.end,
    scheduling.SettleRun: schedules.settle,
    scheduling.MoveSchedule: schedules.move_one,
    scheduling.RecoverRuns: schedules.recover,
}


def buffer_commits(db: apsw.Connection) -> CommitTable:
    """How the operational commits are applied to an open, migrated file."""
    intake = Intake(db)
    requests = forgetful.Forgetful(tombs_beside(Path(db.filename)), intake.undone)

    def dispatch(db: apsw.Connection, dispatches: Sequence[commits.Dispatch]) -> list[bool]:
        for commit in dispatches:
            intake.routed(commit.lane)
        return routing.dispatch(db, dispatches)

    return CommitTable(
        {
            **_COMMITS,
            commits.Prune: pruning.Pruning(intake).prune,
            forgetting.RequestForgetting: requests.request,
            forgetting.ScrubForgotten: requests.scrub,
            forgetting.MoveForgetting: requests.move_on,
            forgetting.DropAside: requests.drop_aside,
        },
        {commits.Receive: intake.receive, commits.Dispatch: dispatch, commits.Claim: claim},
        (lambda db, finish: intake.fold(db, 1) if finish else intake.fold(db),),
        (intake.undone,),
    )


class SqliteBuffer:
    """The buffer, read only."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._told = asyncio.Event()

    async def due(self, at: int, limit: int) -> tuple[Due, ...]:
        """Lanes whose window has closed by `at`."""
        return await self._readers.run(buffer_view.due, at, limit)

    async def waiting(self, lanes: Sequence[Lane]) -> tuple[Group, ...]:
        """What waits in these lanes."""
        return await self._readers.run(buffer_view.waiting, lanes)

    async def next_due(self) -> int | None:
        """When the next window closes."""
        return await self._readers.run(buffer_view.next_due)

    async def next_trial(self) -> int | None:
        """Return the age of the process at which a trial may begin."""
        return await self._readers.run(lane_view.next_trial)

    async def story(self, message_id: int) -> Story | None:
        """One message and what became of it."""
        return await self._readers.run(buffer_view.story, message_id)

    async def find(self, wanted: MessageFilter) -> Sequence[Story]:
        """Messages, newest first."""
        return await self._readers.run(buffer_view.find, wanted)

    async def overview(self) -> Overview:
        """Counts for `status`."""
        return await self._readers.run(buffer_view.overview)

    async def episode_work(self, limit: int, conversation: str | None = None) -> Sequence[EpisodeWork]:
        """Batches whose episodes may not be in memory yet."""
        return await self._readers.run(buffer_view.episode_work, limit, conversation)

    async def marks(self, message_id: int) -> tuple[Mark, ...]:
        """Where a message's text holds secrets."""
        return await self._readers.run(episodes.marks, message_id)

    async def backlog(self) -> Backlog:
        """What waits."""
        return await self._readers.run(pruning.backlog)

    async def prune_history(self) -> PruneHistory:
        """The runs of the pruner."""
        return await self._readers.run(pruning.history)

    async def prunable(self, messages_before: int, records_before: int) -> Prunable:
        """What a run of the pruner would remove."""
        return await self._readers.run(pruning.prunable, messages_before, records_before)


class SqliteLanes(
    SqliteContexts,
    SqliteCollections,
    notes.SqliteNotes,
    SqliteBuffer,
    SqliteSessions,
    SqliteLaneList,
    receipts.SqliteReceipts,
):
    """The buffer, the lanes and the outbox, read only."""

    @property
    def forgettings(self) -> SqliteForgettings:
        """Requests to forget."""
        return SqliteForgettings(self._readers, tombs_beside(self._readers.path))

    @property
    def reach(self) -> SqliteReach:
        """Everything that a wish to forget reaches."""
        return SqliteReach(self._readers, tombs_beside(self._readers.path))

    @property
    def tasks(self) -> SqliteTasks:
        """Tasks."""
        return SqliteTasks(self._readers)

    @property
    def journal(self) -> SqliteJournal:
        """What happened, and what is on its way to whom."""
        return SqliteJournal(self._readers, self._told)

    @property
    def schedules(self) -> SqliteSchedules:
        """What comes at a time."""
        return SqliteSchedules(self._readers)

    async def claimed(self, lease: Lease) -> Claimed | None:
        """What a lease is for."""
        return await self._readers.run(lane_view.claimed, lease)

    async def turn(self, turn_id: int) -> TurnStory | None:
        """One turn."""
        return await self._readers.run(lane_view.turn, turn_id)

    async def last_turn(self, lane: Lane | None) -> int | None:
        """The newest settled turn."""
        return await self._readers.run(lane_view.last_turn, lane)

    async def next_ready(self) -> int | None:
        """When the next queued batch may be claimed."""
        return await self._readers.run(lane_view.next_ready)

    async def unseen(self, channel: str, conversation: str, limit: int = 1_000) -> Sequence[Reply]:
        """The first replies nobody has pulled yet."""
        return await self._readers.run(lane_view.unseen, channel, conversation, limit)

    async def last_id(self) -> int:
        """The largest id of all messages, batches, replies and tasks."""
        return await self._readers.run(lane_view.last_id)

    async def next_send(self, channels: tuple[str, ...]) -> int | None:
        """When the next reply may be pushed."""
        return await self._readers.run(lane_view.next_send, channels)


class SqliteOperations(SqliteLanes):
    """The operational store: every read above, and the one way to write."""

    def __init__(self, writer: Operations, readers: Readers, own_writer: Writer | None = None) -> None:
        super().__init__(readers)
        self._writer = writer
        self._own_writer = own_writer

    async def apply(self, commit: Commit[R]) -> R:
        """Apply one commit; returns after it is on disk."""
        done = await self._writer.apply(commit)
        if not is_quiet(commit):
            self._told.set()
        return done

    async def close(self) -> None:
        """Stop the threads and close the file."""
        await self._readers.close()
        if self._own_writer is not None:
            await self._own_writer.close()


async def open_operations(path: Path) -> SqliteOperations:
    """Open or create the operational store at `path`; raises a StoreError with the file untouched."""
    writer = await start(path, ("buffer",), buffer_commits)
    return SqliteOperations(writer, Readers(path, cached_kib=LOOKUPS_KIB), writer)


async def start(path: Path, parts: Sequence[str], table: Callable[[apsw.Connection], CommitTable]) -> Writer:
    """Open, migrate and start the writer of a file that holds these parts of the schema."""
    return Writer(await asyncio.to_thread(open_ledger, path, parts, table), "+".join(parts))


def open_ledger(path: Path, parts: Sequence[str], table: Callable[[apsw.Connection], CommitTable]) -> Ledger:
    """Open and migrate a file that holds these parts of the schema, for whoever is to write it."""
    with ExitStack() as undo:
        look(path, parts)
        db = open_writer(path)
        undo.callback(db.close)
        for part in parts:
            migrate(db, path, part)
        with translated(path):
            ledger = Ledger(db, path, table(db))
        undo.pop_all()
        return ledger
