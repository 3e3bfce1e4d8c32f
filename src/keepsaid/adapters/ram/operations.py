"""The operational store in memory: one table from commits to what applies them, the ports of the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from keepsaid.adapters.ram import busy as busy_lanes
from keepsaid.adapters.ram import (
    collection,
    context,
    crashes,
    intake,
    journal,
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
from keepsaid.adapters.ram import forgetting as forgetful
from keepsaid.adapters.ram.drop import drop
from keepsaid.adapters.ram.state import State
from keepsaid.adapters.ram.views import RamLanes
from keepsaid.domain import (
    busy,
    commits,
    compaction,
    event,
    fact,
    forgetting,
    process,
    relay,
    scheduling,
    session,
    task,
)
from keepsaid.domain import collection as collecting
from keepsaid.domain.commits import Commit
from keepsaid.domain.process import Note, NotifyOwner
from keepsaid.domain.quiet import is_quiet
from keepsaid.ports.failpoints import point

R = TypeVar("R")

APPLIED: Mapping[type, Callable[[State, Any], Any]] = MappingProxyType(
    {
        commits.Receive: intake.receive,
        commits.Dispatch: routing.dispatch,
        commits.Claim: leases.claim,
        commits.Renew: leases.renew,
        commits.Release: leases.release,
        commits.Fail: leases.fail,
        commits.VoidLeases: crashes.void_leases,
        process.Beat: crashes.beat,
        process.RequeueCrashed: crashes.requeue_crashed,
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
        commits.EpisodesKept: turns.keep_episodes,
        commits.Judge: receipts.judge,
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
        commits.Prune: pruning.prune,
        commits.Tell: turns.tell,
        fact.TellNews: journal.tell_news,
        Note: notes.keep,
        NotifyOwner: notes.notify,
        forgetting.RequestForgetting: forgetful.request,
        forgetting.ScrubForgotten: forgetful.scrub,
        forgetting.MoveForgetting: forgetful.move_on,
        forgetting.PutBack: forgetful.back,
        forgetting.DropAside: forgetful.drop_aside,
        forgetting.EmptyLog: forgetful.empty_log,
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
)


class RamOperations(RamLanes):
    """The operational store: every read, and the one way to write.

    It holds nothing but its state: another one over the same state goes on where this one stopped.
    """

    def __init__(self, state: State | None = None) -> None:
        super().__init__(State() if state is None else state)

    @property
    def state(self) -> State:
        """What is kept; it stands for the file."""
        return self._state

    async def apply(self, commit: Commit[R]) -> R:
        """Apply one commit at once; nothing of it is kept when it raises."""
        name = type(commit).__name__
        point(f"commit.{name}.before")
        result: R = APPLIED[type(commit)](self._state, commit)
        point(f"commit.{name}.after")
        if not is_quiet(commit):
            self._told.set()
        return result

    async def close(self) -> None:
        """Nothing to close; here so that it can stand where a file store stands."""
