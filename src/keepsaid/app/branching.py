"""Branching: what a branch knows of the lane it was begun in, read as the lane's own prompt is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from keepsaid.app.budget import budget_of
from keepsaid.config import Config
from keepsaid.domain.scene import Scene
from keepsaid.domain.task import Task
from keepsaid.domain.turn import Claimed
from keepsaid.errors import TaskImpossible
from keepsaid.pipeline.context.recent import fitted, recent
from keepsaid.pipeline.context.summary import summary
from keepsaid.pipeline.turn.branch import Hindsight, Past
from keepsaid.ports.lanes import LaneView
from keepsaid.ports.model import Tool

_READING = ("memory_search", "memory_open")


def hindsight_of(config: Config, lanes: LaneView, memory_tools: Callable[[Claimed], Sequence[Tool]]) -> Hindsight:
    """What is known where a task was begun: what the lane remembers, and memory, heard as its turn heard it."""
    budget = budget_of(config)

    async def past(task: Task) -> Past:
        story = None if task.turn_id is None else await lanes.turn(task.turn_id)
        if story is None or not story.messages:
            raise TaskImpossible("the turn that began it is not kept any more")
        claimed = Claimed(story.batch, story.turn_id, story.messages)
        tail = fitted(await lanes.context(claimed.batch.lane, budget.recent_records), budget.recent_tokens)
        scene = Scene(claimed, tail)
        records, _ = recent(scene)
        tools = tuple(tool for tool in memory_tools(claimed) if tool.name in _READING)
        return Past(records, summary(scene, budget.summary_chars).text, tools)

    return past
