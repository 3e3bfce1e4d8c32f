"""Beside: what the agent can have done beside its turns, and what of that is under way, as its prompts tell of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keepsaid.domain.ids import show
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Trusted
from keepsaid.domain.task import Task, trust_of_task
from keepsaid.ports.model import Tool
from keepsaid.ports.store_views import TaskView
from keepsaid.text.normal import cut

_LISTED = 20
_LINE_CHARS = 120


@dataclass(frozen=True, slots=True)
class SideTasks:
    """Tasks that turns of a lane made and that have not ended; never what a rule spawned (seed 000, Isolation)."""

    view: TaskView

    async def lines(self, lane: Lane) -> tuple[str, ...]:
        """One line for each, newest first."""
        return tuple(Trusted(_line(one), trust_of_task(one)) for one in await self.view.beside(lane, _LISTED))


@dataclass(frozen=True, slots=True)
class WorkerTools:
    """What work can be given to a worker for: the tools that it would have, by name."""

    tools: Callable[[], Sequence[Tool]]

    def lines(self) -> tuple[str, ...]:
        """One line for each, in the order of their names."""
        known = {tool.name: tool for tool in reversed(self.tools())}
        return tuple(f"{name}: {cut(_first(known[name].description), _LINE_CHARS)}" for name in sorted(known))


def _first(text: str) -> str:
    """The first sentence or line of a text."""
    return " ".join(text.split("\n", 1)[0].split()).partition(". ")[0]


def _line(task: Task) -> str:
    said = " ".join((task.status or task.description).split())
    return f"{task.kind} {show('task', task.id)} {task.state}: {cut(said, _LINE_CHARS)}"
