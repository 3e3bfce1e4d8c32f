"""Tasks, by a person's word: made, listed, shown, cancelled, made due at once, approved or refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from keepsaid.domain.ids import show
from keepsaid.domain.task import CancelTask, CreateTasks, DecideTask, NewTask, RunTask, Task, TaskFilter, TaskStory
from keepsaid.errors import InputError
from keepsaid.ports.runtime import Clock, Ids
from keepsaid.ports.store import Store
from keepsaid.text.normal import normalise


class TaskRunner(Protocol):
    """Runs tasks; the service notifies it of what changed."""

    def wake(self) -> None:
        """Look for tasks that are due."""
        ...

    def stop_running(self, task_id: int) -> None:
        """Stop a task that was cancelled while it runs."""
        ...

    def unknown_tools(self, names: Sequence[str]) -> Sequence[str]:
        """Return those of these names that no tool of a worker has; none while it does not run."""
        ...


class TaskService:
    """Makes tasks, reads them, and records what a person decides about them."""

    def __init__(self, store: Store, clock: Clock, ids: Ids, runner: TaskRunner) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._runner = runner

    async def find(self, wanted: TaskFilter) -> Sequence[Task]:
        """Tasks that match a filter."""
        return await self._store.tasks.find(wanted)

    async def story(self, task_id: int) -> TaskStory | None:
        """A task with its steps and the tasks that wait for it; None when there is none."""
        return await self._store.tasks.task(task_id)

    async def create(self, new: NewTask) -> int:
        """Make a task; returns its id. Raises InputError with nothing made."""
        if unknown := self._runner.unknown_tools(new.terms.tools or ()):
            what = f"there is no tool {unknown[0]!r} that a worker may use"
            raise InputError(what, safe="Nothing was changed.", hint="keepsaid ext ls")
        made = replace(new, id=self._ids.next(), description=normalise(new.description))
        if refusal := await self._store.apply(CreateTasks((made,), self._clock.now_ms())):
            raise InputError(
                f"the task cannot be made: {refusal}", safe="Nothing was changed.", hint="keepsaid inbox tasks ls"
            )
        self._runner.wake()
        return made.id

    async def cancel(self, task_id: int, reason: str) -> bool:
        """End a task that has not ended, and stop what still runs of it; False when it has ended."""
        done = await self._store.apply(CancelTask(task_id, self._clock.now_ms(), normalise(reason)))
        self._runner.stop_running(task_id)
        self._runner.wake()
        return done

    async def run(self, task_id: int) -> bool:
        """Make a pending task due at once; False when it is not pending."""
        done = await self._store.apply(RunTask(task_id, self._clock.due_ms()))
        self._runner.wake()
        return done

    async def decide(self, task_id: int, *, approved: bool, reason: str = "", result: str | None = None) -> bool:
        """Approve or refuse a task that waits for review, with its result if a person knows it."""
        given = None if result is None else normalise(result)
        why = normalise(reason) or f"{show('task', task_id)} was refused"
        done = await self._store.apply(DecideTask(task_id, self._clock.now_ms(), approved, why, given))
        self._runner.wake()
        return done
