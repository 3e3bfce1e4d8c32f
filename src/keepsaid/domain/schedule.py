"""Schedules: actions at a time, the target of their output, and the outcome of each run (seed 002, the scheduler).

The lane that hears the output is stored with the schedule and copied into each run: output goes there or nowhere.
A time that was missed is caught up with once, and only if less than half the period has passed since.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from keepsaid.domain import message, states
from keepsaid.domain.timing import Once, Timing, last_due, next_due
from keepsaid.values import frozen

FAILURES_MAX = 3
"""The failures in a row after which a schedule is disabled."""

PROMPT_MS = 60_000
"""What is not later than this is on time, whatever the clock did."""

LIVE = ("active", "paused", "disabled")
OVER = ("done", "cancelled")
"""The states in which a schedule can still come."""

OPEN = ("due", "running")
"""The states in which a run is under way."""


class What(StrEnum):
    """What is done: a text is posted; the agent is asked; something that has a name here is run; or a task is made."""

    SAY = "say"
    ASK = "ask"
    RUN = "run"
    TASK = "task"


@frozen
class Target:
    """The target of the output: a lane, by `url` where its channel pushes there; `direct` with one person only."""

    lane: message.Lane
    url: str | None = None
    direct: bool = False


@frozen
class NewSchedule:
    """A schedule as it is asked for.

    `source` is who asks: `config`, `core`, `command`, `agent` or `ext:NAME`. `name` is one among those of its source
    that live. `text` is what is said, asked or to be done, or the name of what is run. `trust` is that of whoever
    asked. What is `urgent` does not wait for the end of quiet hours. What is run `whenever` is caught up with however
    late it is.
    """

    id: int
    source: str
    name: str
    timing: Timing
    what: What
    text: str
    target: Target | None = None
    trust: message.Trust = message.Trust.OWNER
    urgent: bool = False
    whenever: bool = False

    @property
    def agent(self) -> str:
        """The id of the extension whose agent does its task; "" if a worker does it."""
        return self.source.removeprefix("ext:") if self.source.startswith("ext:") else ""

    def same(self, other: NewSchedule) -> bool:
        """Whether the other asks for the same, whatever its id."""
        return replace(self, id=0) == replace(other, id=0)


@frozen
class Schedule:
    """A stored schedule; `next_at` is None where it does not come again, `reason` says why it was disabled."""

    new: NewSchedule
    state: str
    next_at: int | None
    failures: int = 0
    reason: str = ""
    created_at: int = 0

    @property
    def id(self) -> int:
        """Its id."""
        return self.new.id


@frozen
class ScheduleRun:
    """One run of a schedule, and its outcome: `state` of the action, `output` of its delivery.

    `output` is `none` where nothing is delivered; `asked` while the agent's answer is awaited, then `waiting` until
    it has left; `delivered` or `undelivered`; `silent` when there was no answer. `ready_at` is when it may begin. One
    with a `task_id` is running until that task has ended.
    """

    schedule_id: int
    due_at: int
    state: str
    ready_at: int
    output: str = "none"
    target: Target | None = None
    message_id: int | None = None
    reply_id: int | None = None
    reason: str = ""
    fired_at: int = 0
    ended_at: int | None = None
    task_id: int | None = None


@frozen
class Fire:
    """What a due schedule comes to: the time `due_at` has come, `next_at` is the next.

    `run_at` is the time that is run for, None when none is; `missed` says why the time that was due is not.
    """

    schedule_id: int
    due_at: int
    next_at: int | None
    run_at: int | None = None
    ready_at: int = 0
    missed: str = ""


def fired(schedule: Schedule, now: int, *, believed: bool = True) -> Fire | None:
    """The next state of a schedule that is due; None to leave it as it is.

    When the clock is not `believed`, nothing is caught up with, and what comes once waits.
    """
    due, timing = schedule.next_at, schedule.new.timing
    if due is None or due > now:
        return None
    if isinstance(timing, Once):
        return Fire(schedule.id, due, None, due) if believed or now - due <= PROMPT_MS else None
    last, following = last_due(timing, due, now), next_due(timing, due, now)
    late = now - last
    half = late if following is None else (following - last) // 2
    if late <= PROMPT_MS // 2 or (believed and (late <= half or schedule.new.whenever)):
        missed = "" if last == due else "missed while nothing ran; a later time is caught up with"
        return Fire(schedule.id, due, following, last, missed=missed)
    why = "missed while nothing ran" if believed else "passed over when the clock was set"
    return Fire(schedule.id, due, following, missed=why)


def astray(schedule: Schedule, now: int) -> Fire | None:
    """The move of a schedule that waits for a time too far away, as after a clock that was ahead; None for no such."""
    due, timing = schedule.next_at, schedule.new.timing
    if due is None or isinstance(timing, Once):
        return None
    sooner = next_due(timing, now, now)
    return Fire(schedule.id, due, sooner) if sooner is not None and sooner < due else None


class Charged(NamedTuple):
    """Where a schedule stands after one of its runs, and whether it was disabled by it."""

    state: str
    failures: int
    disabled: bool = False


def charged(state: str, failures: int, *, failed: bool) -> Charged:
    """Count a run that failed, or end the count; the third failure in a row disables an active schedule."""
    if not failed:
        return Charged(state, 0)
    if state == "active" and failures + 1 >= FAILURES_MAX:
        return Charged(states.move("schedule", state, "disable"), failures + 1, disabled=True)
    return Charged(state, failures + 1)


class RunOutput(NamedTuple):
    """The state of a run's output so far: the batch that its question is in, and the reply, where there are."""

    schedule_id: int
    due_at: int
    output: str
    batch: str = ""
    reason: str = ""
    reply_id: int | None = None
    reply: str = ""
    detail: str = ""


_ENDS = {"sent": "deliver", "dead": "lose", "not_deliverable": "lose"}


def verdict_on(heard: RunOutput) -> tuple[str, str]:
    """The verb that settles an output, and why; "" while it is open."""
    if heard.output == "asked" and heard.batch in ("dead", "dropped"):
        return "lose", heard.reason or f"what was asked is {heard.batch}"
    if heard.output == "asked" and heard.batch in ("done", "") and heard.reply_id is None:
        return "end", "there was no answer"
    if verb := _ENDS.get(heard.reply, ""):
        return verb, heard.detail if verb == "lose" else ""
    return ("answer", "") if heard.output == "asked" and heard.reply_id is not None else ("", "")
