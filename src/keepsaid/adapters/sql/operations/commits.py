"""Commits of the operational store: how each type is applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keepsaid.adapters.sql.commit_table import ApplyOne, CommitTable, emptied
from keepsaid.adapters.sql.operations import (
    collection,
    context,
    journal,
    leases,
    outbox,
    pruning,
    receipts,
    routing,
    schedules,
    sessions,
    steps,
    tasks,
    turns,
)
from keepsaid.adapters.sql.operations import forgetting as forgetful
from keepsaid.adapters.sql.operations.intake import MessageInserter
from keepsaid.adapters.sql.session import SqlSession
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.domain import busy, commits, compaction, event, forgetting, process, relay, scheduling, session, task

_COMMITS: Mapping[type, ApplyOne] = {
    commits.Renew: leases.renew,
    commits.Release: leases.release,
    commits.Fail: leases.fail,
    commits.VoidLeases: leases.void_leases,
    process.Beat: leases.beat,
    process.RequeueCrashed: leases.requeue_crashed,
    commits.ExpireLeases: leases.expire_leases,
    commits.Relinquish: leases.relinquish,
    commits.Requeue: leases.requeue,
    commits.Drop: routing.drop,
    commits.StepStart: steps.start_step,
    commits.StepEnd: steps.end_step,
    commits.TurnCommit: turns.commit_turn,
    commits.TakeReplies: outbox.take,
    commits.Settle: outbox.settle,
    commits.Doubt: outbox.doubt,
    commits.Resend: outbox.resend,
    commits.MarkReplyShown: outbox.shown,
    commits.Decide: outbox.decide,
    compaction.Summarise: context.summarise,
    compaction.CutContext: context.cut,
    compaction.SummaryFailed: context.summary_failed,
    compaction.SummariesCopied: context.copied,
    busy.Interrupt: routing.interrupt,
    busy.Steer: routing.steer,
    session.Rest: sessions.rest,
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
    process.Note: receipts.keep,
    process.NotifyOwner: receipts.notify,
    commits.EpisodesKept: collection.kept,
    commits.RecordFeedback: lambda db, commit: receipts.judged(db, commit.word, commit.at),
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
    relay.TellBack: tasks.mark_tasks_reported,
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
        },
        {commits.Receive: intake.receive, commits.Dispatch: dispatch, commits.ClaimBatches: leases.claim},
        (lambda db, finish: intake.fold(db, 1) if finish else intake.fold(db),),
        (intake.undone,),
    )
