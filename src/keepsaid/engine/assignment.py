"""Assignments: a time of a schedule that a worker does: its task, and what is told once that has ended."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.fence import Fence
from keepsaid.domain.ids import show
from keepsaid.domain.message import Inbound, Trust
from keepsaid.domain.relay import Untold, trust_of
from keepsaid.domain.schedule import Schedule, Target
from keepsaid.domain.task import NewTask, TaskStory
from keepsaid.domain.text import cut
from keepsaid.domain.work import Notify, WorkTerms
from keepsaid.engine.relay import told

PRIORITY = 100
"""What schedules ask comes after people and webhooks (seed 000, Notifications)."""

_WHY_CHARS_MAX = 500


def task_of(number: int, schedule: Schedule) -> NewTask:
    """The task that a time of a schedule makes: of one schedule one at a time.

    One that is heard in a lane is of that lane, as what a turn there has done; of others the owner is told. What came
    to its end is told by the run, everything else by the task.
    """
    new, known_as = schedule.new, show("schedule", schedule.id)
    outside = new.trust is not Trust.OWNER
    if new.target is not None:
        lane, key = new.target.lane, f"schedule:{known_as}"
        return NewTask(number, new.text, key, lane=lane, depth=1, outside=outside, priority=PRIORITY)
    terms, key = WorkTerms(notify=Notify.ON_FAILURE), f"schedule:{new.name or known_as}"
    return NewTask(number, new.text, key, terms=terms, outside=outside, priority=PRIORITY)


def verdict_of(story: TaskStory | None) -> tuple[str, str]:
    """The verb of a run whose task has ended, and why; what was ended by a person's word is charged to nobody."""
    if story is None or story.task.state == "cancelled":
        return "interrupt", "its task was cancelled" if story else "its task is gone"
    if story.task.state == "completed":
        return "execute", ""
    return "fail", cut(f"its task failed: {story.task.reason}", _WHY_CHARS_MAX)


def come_back(story: TaskStory, target: Target, fence: Fence) -> Inbound:
    """What it came to, as a message of the lane that hears it; its words are data."""
    untold = Untold(target.lane, (story.task,), url=target.url, direct=target.direct)
    return replace(told(story.task, untold, trust_of(story), fence), priority=PRIORITY)
