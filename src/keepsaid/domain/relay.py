"""Relaying: what the agent's own side work came to goes back to its lane, as a message of the program (seed 001).

A result is received once, however often that is tried, and shown to one turn; the commit of that turn says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.domain import commits, effects, message, route, turn, visibility
from keepsaid.domain.task import Task, TaskStory
from keepsaid.values import frozen

_MARK = "task"


@frozen
class UnreportedTasks:
    """Ended tasks of a lane that were not reported there yet, oldest first.

    `rounds` counts the reports to the lane since a person last wrote there; `url` and `direct` are those of
    that person's message.
    """

    lane: message.Lane
    tasks: tuple[Task, ...]
    rounds: int = 0
    url: str | None = None
    direct: bool = False


@frozen
class MarkTasksReported(commits.Commit[int]):
    """Results were received as messages of their lane, all at once; returns how many of them were new."""

    task_ids: tuple[int, ...]
    at: int


def mark_of(task: Task) -> str:
    """The external id of the message that reports a task: the same however often it is tried."""
    return f"{_MARK}:{task.id}:{task.attempts}"


def reported_task_id(external_id: str | None) -> int | None:
    """Return the task that the message with this external id reports; None if it reports none."""
    mark, _, rest = (external_id or "").partition(":")
    number = rest.partition(":")[0]
    return int(number) if mark == _MARK and number.isdecimal() else None


_OWN = visibility.OWN_TOOLS | {"set_status"}


def trust_of(story: TaskStory | None) -> message.Trust:
    """How far the words of a result are trusted: as those of somebody known, since nobody else has work done.

    What a worker's tools brought, what it found in memory that came from outside, and what it was given of other
    results, comes from outside.
    """
    if story is None or story.task.kind in (route.TaskKind.CALL, route.TaskKind.AGENT):
        return message.Trust.EXTERNAL
    used = {one.subject for one in story.steps if one.kind is turn.StepKind.TOOL}
    is_worker = story.task.kind is route.TaskKind.WORKER
    given = is_worker and (story.before or ".result" in story.task.description or any(map(_is_external, story.steps)))
    return message.Trust.EXTERNAL if given or used - _OWN else message.Trust.KNOWN


def _is_external(step: turn.Step) -> bool:
    """Whether the output of a step states that it comes from outside."""
    return isinstance(step.output, dict) and step.output.get("trust") == message.Trust.EXTERNAL


def relayed_in(messages: Sequence[message.StoredMessage]) -> tuple[effects.RelayTask, ...]:
    """The results that these messages reported."""
    told = (one.inbound for one in messages if one.inbound.origin.sender == message.SYSTEM)
    numbers = [reported_task_id(one.marks.external_id) for one in told if one.content.event == message.RESULT]
    return tuple(effects.RelayTask(number) for number in numbers if number is not None)
