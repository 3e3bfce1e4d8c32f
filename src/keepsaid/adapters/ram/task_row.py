"""Tasks as the RAM store keeps them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from keepsaid.adapters.ram.step_row import StepRow
from keepsaid.domain.states import move
from keepsaid.domain.task import Task


@dataclass(slots=True, eq=False)
class TaskRow:
    """A task, its lease and its steps; `remembered` says that no result of it is missing in memory.

    `relay` is 1 when its lane is to be told of it, 2 once that was received there (`told_at`), 3 once it was shown."""

    task: Task
    owner: str = ""
    lease_until: int = 0
    remembered: bool = True
    relay: int = 0
    told_at: int | None = None
    steps: dict[int, StepRow] = field(default_factory=dict)

    @property
    def id(self) -> int:
        """The task's id."""
        return self.task.id

    @property
    def key(self) -> str:
        """The task's key."""
        return self.task.key

    @property
    def state(self) -> str:
        """Where the task stands."""
        return self.task.state

    @property
    def description(self) -> str:
        """What is to be done."""
        return self.task.description

    @property
    def messages(self) -> int:
        """How many messages it was made of."""
        return self.task.messages

    @property
    def call_left(self) -> int | None:
        """The number of a call that must not be repeated and has no result."""
        left = (n for n, one in self.steps.items() if one.step.state == "started" and not one.step.repeatable)
        return next(left, None)

    def put(self, **changes: Any) -> None:
        """Change what is known of the task."""
        self.task = replace(self.task, **changes)

    def go(self, verb: str, **changes: Any) -> None:
        """Make a legal move."""
        self.put(state=move("task", self.task.state, verb), **changes)
