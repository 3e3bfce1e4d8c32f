"""Relaying: what the agent's own side work came to goes back to its lane, as a message of the program (seed 001).

A result is received once, however often that is tried, and shown to one turn; the commit of that turn says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keepsaid.domain.commits import Commit
from keepsaid.domain.effects import RelayTask
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import SYSTEM, Message
from keepsaid.domain.task import Task

RESULT = "task.result"
"""The event of a message that tells of a result."""

_MARK = "task"


@dataclass(frozen=True, slots=True)
class Untold:
    """Ended tasks of a lane that nobody there was told of, oldest first.

    `rounds` counts how often the lane was told of any since a person last said something there; `url` and `direct` are
    those of what he said.
    """

    lane: Lane
    tasks: tuple[Task, ...]
    rounds: int = 0
    url: str | None = None
    direct: bool = False


@dataclass(frozen=True, slots=True)
class TellBack(Commit[int]):
    """Results were received as messages of their lane, all at once; returns how many of them were not told before."""

    task_ids: tuple[int, ...]
    at: int


def mark_of(task: Task) -> str:
    """The external id of the message that tells of a task: the same however often it is tried."""
    return f"{_MARK}:{task.id}:{task.attempts}"


def relayed_in(messages: Sequence[Message]) -> tuple[RelayTask, ...]:
    """The results that these messages told of."""
    told = (one.inbound for one in messages if one.inbound.origin.sender == SYSTEM)
    marks = [one.marks.external_id or "" for one in told if one.content.event == RESULT]
    numbers = [mark.split(":")[1] for mark in marks if mark.startswith(f"{_MARK}:")]
    return tuple(RelayTask(int(number)) for number in numbers if number.isdecimal())
