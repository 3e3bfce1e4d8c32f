"""Beside: what the agent itself has under way beside its turns, as its prompts tell of it."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.domain.ids import show
from keepsaid.domain.lane import Lane
from keepsaid.domain.task import Task
from keepsaid.domain.text import cut
from keepsaid.ports.tasks import TaskView

_LISTED = 20
_LINE_CHARS = 120


@dataclass(frozen=True, slots=True)
class SideTasks:
    """Tasks that turns of a lane made and that have not ended; never what a rule spawned (seed 000, Isolation)."""

    view: TaskView

    async def lines(self, lane: Lane) -> tuple[str, ...]:
        """One line for each, newest first."""
        return tuple(map(_line, await self.view.beside(lane, _LISTED)))


def _line(task: Task) -> str:
    said = " ".join((task.status or task.description).split())
    return f"{task.kind} {show('task', task.id)} {task.state}: {cut(said, _LINE_CHARS)}"
