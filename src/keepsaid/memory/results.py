"""Results: what tasks came to, as episodes that are found when they are asked for (seed 000, Main Agent Isolation).

They stand in no prompt and no bulletin: whoever wants to know looks for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from keepsaid.domain.ids import show
from keepsaid.domain.memory import OWNER, TASK, Kind, NewMemory, Source, conversation_scope, person_scope
from keepsaid.domain.message import Trust
from keepsaid.domain.task import ResultsKept, Task, TaskWork
from keepsaid.memory.deeds import Deeds
from keepsaid.ports.clock import Clock
from keepsaid.ports.memories import Memories
from keepsaid.ports.operations import Operations
from keepsaid.ports.points import point
from keepsaid.ports.redactor import Redactor, masked_texts
from keepsaid.ports.tasks import TaskView

KEPT_MAX = 20
"""Results that are kept in one go."""

WORKER = "worker"
"""The speaker of results."""


class Results:
    """Follows the operational store: completed tasks whose results are not known to be in memory.

    What a branch asked memory to do is done with its result. Each is named by its task: doing it again after a crash
    changes nothing.
    """

    def __init__(
        self,
        view: TaskView,
        operations: Operations,
        memories: Memories,
        clock: Clock,
        redactor: Redactor,
        deeds: Deeds,
    ) -> None:
        self._view = view
        self._operations = operations
        self._memories = memories
        self._clock = clock
        self._redactor = redactor
        self._deeds = deeds

    async def catch_up(self) -> int:
        """Keep what is due, twenty at most; returns how many. Raises a StoreError: then it is still due."""
        due = await self._view.results(KEPT_MAX)
        if not due:
            return 0
        said = [episode_of(one) for one in due if one.task.result]
        await self._memories.keep(await self._fit(said), self._clock.now_ms())
        await self._deeds.do([one.wishes for one in due if one.wishes is not None], self._clock.now_ms())
        point("results.kept")
        await self._operations.apply(ResultsKept(tuple(one.task.id for one in due)))
        return len(due)

    async def _fit(self, said: Sequence[NewMemory]) -> Sequence[NewMemory]:
        found = await masked_texts(self._redactor, [one.text for one in said])
        return [replace(one, text=plain.text) for one, plain in zip(said, found, strict=True)]


def episode_of(work: TaskWork) -> NewMemory:
    """The result of a task, derived from the messages or the turn it was made of, so that it is forgotten with them."""
    task = work.task
    behind = [Source("message", str(one)) for one in work.messages]
    behind += [] if task.turn_id is None else [Source("turn", str(task.turn_id))]
    return NewMemory(
        key=f"task:{task.id}",
        kind=Kind.EPISODE,
        text=f"Task {show('task', task.id)}{f' ({task.rule})' if task.rule else ''}: {task.result}",
        scope=scope_of(task),
        trust=Trust.EXTERNAL if task.outside else Trust.KNOWN,
        lane=task.lane,
        speaker=WORKER,
        said_at=task.ended_at or task.created_at,
        sources=(Source(TASK, str(task.id)), *behind),
        derived=True,
    )


def scope_of(task: Task) -> str:
    """Who may hear it: its conversation, where a turn asked for it; else the owner."""
    if task.turn_id is not None and task.lane is not None:
        return conversation_scope(task.lane)
    return person_scope(OWNER)
