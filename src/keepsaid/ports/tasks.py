"""Tasks, as those need them who do them, list them or wait for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.lane import Lane
from keepsaid.domain.relay import Untold
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

    async def next_expiry(self) -> int | None:
        """When the next task that waits for a person may wait no longer (milliseconds UTC); None when none waits so."""
        ...

    async def beside(self, lane: Lane, limit: int) -> Sequence[Task]:
        """Tasks that turns of a lane made and that have not ended, newest first."""
        ...

    async def untold(self, limit: int) -> Sequence[Untold]:
        """Ended tasks that turns made, and that their lanes are to be told of: so many at most, the newest."""
        ...

    async def results(self, limit: int) -> Sequence[TaskWork]:
        """Completed tasks whose results may not be in memory yet, oldest first."""
        ...
