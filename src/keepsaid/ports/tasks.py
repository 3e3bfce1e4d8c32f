"""Tasks, as those need them who do them, list them or wait for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.task import Task, TaskFilter, TaskStory, TaskWork
from keepsaid.domain.work import TaskKind


class TaskView(Protocol):
    """Reads tasks."""

    async def task(self, task_id: int) -> TaskStory | None:
        """One task, with what its worker did so far."""
        ...

    async def find(self, wanted: TaskFilter) -> Sequence[Task]:
        """Tasks, newest first."""
        ...

    async def next_ready(self, kind: TaskKind) -> int | None:
        """When the next pending task may be claimed (milliseconds UTC); None when none waits."""
        ...

    async def results(self, limit: int) -> Sequence[TaskWork]:
        """Completed tasks whose results may not be in memory yet, oldest first."""
        ...
