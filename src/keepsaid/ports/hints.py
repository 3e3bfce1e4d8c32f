"""Hints: wake-ups between the stages. A lost hint costs a poll interval, never a message."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from keepsaid.domain.work import TaskKind


@dataclass(frozen=True, slots=True)
class Hints:
    """One event a stage; set when there may be work for it.

    `held` has one for each holder of a batch at work here: set when somebody may have taken it away. Who lost it may
    not know yet when the next has it.
    """

    route: asyncio.Event = field(default_factory=asyncio.Event)
    work: asyncio.Event = field(default_factory=asyncio.Event)
    deliver: asyncio.Event = field(default_factory=asyncio.Event)
    record: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Event = field(default_factory=asyncio.Event)
    branch: asyncio.Event = field(default_factory=asyncio.Event)
    call: asyncio.Event = field(default_factory=asyncio.Event)
    relay: asyncio.Event = field(default_factory=asyncio.Event)
    held: dict[int, list[asyncio.Event]] = field(default_factory=dict)

    @property
    def of_tasks(self) -> dict[TaskKind, asyncio.Event]:
        """Those of the stages that do tasks, by kind."""
        return {TaskKind.WORKER: self.task, TaskKind.BRANCH: self.branch, TaskKind.CALL: self.call}

    def taken(self, batch_id: int) -> None:
        """Let the holders of a batch look at once whether it is still theirs."""
        for holder in self.held.get(batch_id, ()):
            holder.set()
