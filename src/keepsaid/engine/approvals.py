"""Approvals: makes calls that the owner approved, and ends those that nobody approved in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from keepsaid.domain.ids import show
from keepsaid.domain.task import ExpireTasks, Task, TaskStory
from keepsaid.domain.text import cut, digest, normalise
from keepsaid.domain.turn import StepKind, Usage
from keepsaid.errors import TaskImpossible
from keepsaid.pipeline.turn.authorization import call_of
from keepsaid.pipeline.turn.run import REPEATABLE, Begun, Call, StepLog, call_tool
from keepsaid.pipeline.turn.worker import Done
from keepsaid.ports.model import Tool
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import Operations
from keepsaid.ports.store_views import TaskView


async def make_call(
    tools: Callable[[], Sequence[Tool]], story: TaskStory, _named: Mapping[str, Task], steps: StepLog
) -> Done:
    """Make the one call of a task, with exactly the arguments that were approved.

    It is recorded as a step: a call that must not be repeated and has no result waits for a person again. Raises
    TaskImpossible where the tool is gone, NeedsReview, and LeaseLost.
    """
    call = call_of(story.task)
    tool = next((one for one in tools() if one.name == call.name), None)
    if tool is None:
        raise TaskImpossible(f"the tool {call.name} of {show('task', story.task.id)} is not there any more")

    async def make(begun: Begun) -> tuple[str, Usage]:
        await begun()
        return cut(normalise(str(await call_tool(tool, call.arguments))), tool.chars_max), Usage()

    what = digest(call.name, call.arguments)
    output = await steps.once(Call(StepKind.TOOL, call.name, what, tool.kind in REPEATABLE), make)
    return Done(str(output))


class Expiry:
    """Ends what waited for the owner's approval longer than it may."""

    def __init__(self, operations: Operations, view: TaskView, clock: Clock) -> None:
        self._operations = operations
        self._view = view
        self._clock = clock

    async def work(self) -> int | None:
        """Fail what is overdue; returns when the next is (milliseconds UTC), None when nothing waits."""
        due, now = await self._view.next_expiry(), self._clock.now_ms()
        if due is None or due > now:
            return due
        await self._operations.apply(ExpireTasks(now))
        return await self._view.next_expiry()
