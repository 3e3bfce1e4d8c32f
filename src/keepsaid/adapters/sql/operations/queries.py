"""The operational store, whatever database holds it: every commit by its function, every read by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keepsaid.adapters.sql.operations import (
    collection,
    cursors,
    files,
    journal,
    leases,
    outbox,
    pairing,
    pruning,
    recorded_talk,
    reply_parts,
    routing,
    tallies,
    tasks,
    turn_files,
    turns,
    views,
)
from keepsaid.adapters.sql.operations import forgetting as forgetful
from keepsaid.adapters.sql.operations import schedules as schedule_commits
from keepsaid.adapters.sql.operations import sessions as lane_sessions
from keepsaid.adapters.sql.operations.forgetting_reach import SqlForgettings, SqlReach
from keepsaid.adapters.sql.operations.forks import SqlHistories
from keepsaid.adapters.sql.operations.intake import MessageInserter
from keepsaid.adapters.sql.operations.work_views import SqlFiles, SqlSchedules, SqlTasks
from keepsaid.adapters.sql.query import ApplyOne, CommitTable, SqlReaders, SqlSession, SqlView, emptied, reads
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.domain import (
    busy,
    commits,
    compaction,
    event,
    fetching,
    forgetting,
    line,
    making,
    process,
    relay,
    scheduling,
    session,
    task,
)
from keepsaid.domain import pairing as people
from keepsaid.domain import reply_parts as parts
from keepsaid.domain.recorded_talk import RecordTalk
from keepsaid.ports.runtime import Hint

_COMMITS: Mapping[type, ApplyOne] = {
    commits.Renew: leases.renew,
    commits.Release: leases.release,
    commits.Fail: leases.fail,
    process.VoidLeases: leases.void_leases,
    process.Beat: leases.beat,
    process.RequeueCrashed: leases.requeue_crashed,
    commits.ExpireLeases: leases.expire_leases,
    process.Relinquish: leases.relinquish,
    commits.Requeue: leases.requeue,
    commits.Drop: routing.drop,
    commits.StepStart: outbox.start_step,
    commits.StepEnd: outbox.end_step,
    commits.TurnCommit: turns.commit_turn,
    commits.TakeReplies: outbox.take,
    commits.Settle: outbox.settle,
    commits.Doubt: outbox.doubt,
    commits.Resend: outbox.resend,
    commits.MarkReplyShown: outbox.shown,
    commits.Decide: outbox.decide,
    parts.KeepParts: reply_parts.keep,
    parts.ConfirmPart: reply_parts.confirm,
    parts.NoteUndelivered: reply_parts.note_undelivered,
    people.SendCode: pairing.send_code,
    people.LetIn: pairing.let_in,
    people.ShutOut: pairing.shut_out,
    line.MoveCursors: cursors.move,
    fetching.TakeFiles: files.take,
    fetching.RecoverFiles: files.recover,
    fetching.TakeAwaited: files.take_awaited,
    fetching.KeepPiece: files.keep_piece,
    fetching.KeepBrought: files.keep_brought,
    fetching.KeepFile: files.keep,
    fetching.LeaveFile: files.leave,
    fetching.PutOffFile: files.put_off,
    making.KeepTurnPiece: turn_files.keep_piece,
    making.KeepTurnFile: turn_files.keep,
    compaction.Summarise: lane_sessions.summarise,
    compaction.CutContext: lane_sessions.cut,
    compaction.SummaryFailed: lane_sessions.summary_failed,
    compaction.SummariesCopied: lane_sessions.copied,
    busy.Interrupt: routing.interrupt,
    busy.Steer: routing.steer,
    session.Rest: lane_sessions.rest,
    session.ClaimCollection: collection.claim,
    session.KeepFinding: collection.keep_finding,
    session.Collected: collection.collected,
    session.CollectionFailed: collection.failed,
    session.RequeueCollection: collection.requeue,
    session.Invalidate: collection.mark_one,
    session.MarkUnprocessed: collection.mark_unprocessed,
    commits.BeginPruning: pruning.begin,
    commits.Tell: journal.write_fact,
    event.TellNews: journal.write_news,
    process.Note: turns.keep,
    process.NotifyOwner: turns.notify,
    commits.EpisodesKept: collection.kept,
    commits.RecordFeedback: turns.record_feedback,
    forgetting.PutBack: forgetful.restore,
    forgetting.EmptyLog: emptied,
    task.CreateTasks: tasks.create,
    task.ClaimTasks: tasks.claim,
    task.RenewTask: tasks.renew,
    task.TellStatus: tasks.status,
    task.EndTask: tasks.end,
    task.CancelTask: tasks.cancel,
    task.RunTask: tasks.run_now,
    task.DecideTask: tasks.decide,
    task.ExpireTasks: tasks.expire_tasks,
    relay.MarkTasksReported: tasks.mark_tasks_reported,
    task.ResultsKept: tasks.kept,
    event.Subscribe: journal.subscribe,
    event.Unsubscribe: journal.unsubscribe,
    event.Distribute: journal.distribute,
    event.TakeDeliveries: journal.take,
    event.SettleDeliveries: journal.settle,
    event.DecideDelivery: journal.decide,
    scheduling.AddSchedule: schedule_commits.add,
    scheduling.ReplaceSchedules: schedule_commits.replace_all,
    scheduling.FireSchedules: schedule_commits.fire,
    scheduling.RunNow: schedule_commits.run_now,
    scheduling.BeginRun: schedule_commits.begin,
    scheduling.EndRun: schedule_commits.end,
    scheduling.SettleRun: schedule_commits.settle,
    scheduling.MoveSchedule: schedule_commits.move_one,
    scheduling.RecoverRuns: schedule_commits.recover,
}


def buffer_commits(db: SqlSession, keyring: TombstoneKeyring) -> CommitTable:
    """Return how the operational commits are applied to an open, migrated database."""
    intake = MessageInserter(db)
    requests = forgetful.ForgettingCommits(keyring, intake.undone)

    def dispatch(db: SqlSession, dispatches: Sequence[commits.Dispatch]) -> list[bool]:
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
            forgetting.DropUndo: requests.drop_undo,
            RecordTalk: recorded_talk.recorder(intake, dispatch),
        },
        {commits.Receive: intake.receive, commits.Dispatch: dispatch, commits.ClaimBatches: leases.claim},
        (lambda db, finish: intake.fold(db, 1) if finish else intake.fold(db),),
        (intake.undone,),
    )


class SqlLanes(SqlView):
    """Every read of the operational store, by the port that asks for it."""

    def __init__(self, readers: SqlReaders, keyring: TombstoneKeyring) -> None:
        super().__init__(readers)
        self._committed = Hint()
        self.forgettings = SqlForgettings(readers, keyring)
        self.reach = SqlReach(readers, keyring)
        self.tasks = SqlTasks(readers)
        self.journal = journal.SqlJournal(readers, self._committed)
        self.schedules = SqlSchedules(readers)
        self.pairings = pairing.SqlPairings(readers)
        self.files = SqlFiles(readers)
        self.histories = SqlHistories(readers)

    # BufferView, MarksView
    due = reads(views.due)
    waiting = reads(views.waiting)
    next_due = reads(views.next_due)
    story = reads(views.story)
    find = reads(views.find)
    overview = reads(views.overview)
    received = reads(tallies.received)
    lost = reads(tallies.lost)
    episode_work = reads(views.episode_work)
    marks = reads(collection.marks)
    cursors = reads(cursors.of_account)

    # RetentionView
    backlog = reads(pruning.backlog)
    prune_history = reads(pruning.history)
    prunable = reads(pruning.prunable)

    # LaneView, ContextView, LaneList
    claimed = reads(views.claimed)
    lease = reads(views.lease)
    expired = reads(views.expired)
    turn = reads(views.turn)
    last_turn = reads(views.last_turn)
    next_ready = reads(views.next_ready)
    next_trial = reads(views.next_trial)
    context = reads(lane_sessions.context)
    reminders = reads(turns.reminders)
    span = reads(lane_sessions.span)
    past = reads(lane_sessions.past)
    summaries_due = reads(lane_sessions.due)
    summaries_of = reads(lane_sessions.of_conversation)
    lanes = reads(views.lanes)
    line = reads(views.line)
    summaries = reads(views.summaries)

    # OutboxView
    unseen = reads(views.unseen)
    unfetched = reads(views.unfetched)
    last_id = reads(views.last_id)
    next_send = reads(views.next_send)

    # SessionView, CollectionView, PersonalityView
    sessions = reads(lane_sessions.sessions)
    slots = reads(lane_sessions.slots)
    quiet_since = reads(lane_sessions.quiet_since)
    collections = reads(views.collections)
    passage = reads(views.passage)
    marked_at = reads(views.marked_at)
    personalities = reads(turns.personalities)

    # NoteView, ReceiptView
    note = reads(turns.note)
    reminded = reads(turns.reminded)
    reminded_by = reads(turns.reminded_by)
    uses = reads(turns.uses)
    list_active_feedback = reads(turns.list_active_feedback)
    feedback = reads(turns.feedback)
