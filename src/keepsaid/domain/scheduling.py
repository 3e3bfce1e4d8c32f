"""Scheduling: every write of schedules and their runs, each one commit."""

from __future__ import annotations

from typing import NamedTuple

from keepsaid.domain import commits, message, schedule
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.task import NewTask
from keepsaid.values import frozen

NOT_DONE = "the task that it made before is not done"
"""Why a run that makes a task is skipped."""


class Notice(NamedTuple):
    """The notice to the owner, in the last direct chat or else in a lane, if a schedule is disabled."""

    lane: message.Lane
    draft: ReplyDraft


class RunKey(NamedTuple):
    """A run: of which schedule, for which time (milliseconds UTC)."""

    schedule_id: int
    due_at: int


@frozen
class AddSchedule(commits.Commit[bool]):
    """Add a schedule that comes first at `next_at`; False when its id or its name is taken."""

    new: schedule.NewSchedule
    next_at: int
    at: int


@frozen
class ReplaceSchedules(commits.Commit[int]):
    """The schedules of a source are these from now on, each with its first time; returns how many changed.

    One that is the same goes on as it is: paused, disabled, and when it comes. One that is another under its name
    comes as it says now, and is active where it was disabled. Those of the source that are not named are cancelled.
    """

    source: str
    wanted: tuple[tuple[schedule.NewSchedule, int | None], ...]
    at: int


@frozen
class FireSchedules(commits.Commit[int]):
    """The times of these schedules have come; returns how many runs are due by it.

    What moved meanwhile is left alone. For a time there is one run, whatever the clock does: one that was run for
    is not run for again. One that comes while an earlier run is under way is skipped, and says so. Who comes no more
    is done.
    """

    fires: tuple[schedule.Fire, ...]
    at: int


@frozen
class RunNow(commits.Commit[bool]):
    """A run by a person's word, for this moment; False when the schedule does not live or is at work."""

    schedule_id: int
    at: int


@frozen
class BeginRun(commits.Commit[bool]):
    """A run that is due begins; False when it is not due any more.

    A `task` is made by it, asked for by the turn that asked for the schedule where one did, and the run ends when the
    task has. While another with its key has not ended, the run is skipped.
    """

    run: RunKey
    at: int
    task: NewTask | None = None


@frozen
class EndRun(commits.Commit[str]):
    """A run ends by a verb of its table: executed, failed, skipped, interrupted, or due again; the schedule's state.

    With a `reply` it is in the outbox of the run's lane by the same commit; with a `message_id` the agent was asked;
    executed with a `notice`, the owner is notified. A failure is counted, and the third in a row disables the
    schedule and tells the owner by its `notice`; what is executed and has nothing to deliver ends the count. "" when
    the run does not stand so any more.
    """

    run: RunKey
    verb: str
    at: int
    reason: str = ""
    message_id: int | None = None
    reply: ReplyDraft | None = None
    notice: Notice | None = None


@frozen
class SettleRun(commits.Commit[str]):
    """Settle a run's output by a verb of its table; returns the schedule's state.

    Delivered ends the count of failures, undelivered adds to it. "" when the output does not stand so any more.
    """

    run: RunKey
    verb: str
    at: int
    reason: str = ""
    reply_id: int | None = None
    notice: Notice | None = None


@frozen
class MoveSchedule(commits.Commit[bool]):
    """Pause, resume or cancel a schedule by a person's word; False when its state does not allow that.

    What of it is due and has not begun is skipped; resumed, it comes at `next_at` and its failures count from zero.
    """

    schedule_id: int
    verb: str
    at: int
    next_at: int | None = None


@frozen
class RecoverRuns(commits.Commit[int]):
    """At start: what a former process was running is due again where `again` names it, else interrupted; how many.

    Tasks are none of it: they go on by themselves.
    """

    again: tuple[str, ...]
    at: int
