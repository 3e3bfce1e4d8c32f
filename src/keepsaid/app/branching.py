"""Branching: what a branch knows of the lane it was begun in, read as the lane's own prompt is; and its tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from keepsaid.app.budget import budget_of
from keepsaid.config import Config
from keepsaid.domain.fence import Fence
from keepsaid.domain.scene import Scene
from keepsaid.domain.staged import Deed
from keepsaid.domain.taint import taint_of
from keepsaid.domain.task import DEPTH_MAX, TaskStory
from keepsaid.domain.turn import Claimed
from keepsaid.errors import TaskImpossible
from keepsaid.pipeline.prompt.layers import fitted, recent, summary
from keepsaid.pipeline.tools.tasks import Tasking
from keepsaid.pipeline.turn.worker import Hindsight, Past
from keepsaid.ports.model import Tool
from keepsaid.ports.runtime import Ids
from keepsaid.ports.store import Store

_OF_MEMORY = ("memory_search", "memory_open", *Deed)


def hindsight_of(
    config: Config,
    store: Store,
    ids: Ids,
    memory_tools: Callable[[Claimed], Sequence[Tool]],
    fence: Fence,
) -> Hindsight:
    """What is known where a task was begun: what the lane remembers, and memory, heard as its turn heard it.

    A branch has work done as its turn could, while work may make work (design: section 4.4, depth 3).
    """
    budget = budget_of(config)

    async def past(branch: TaskStory) -> Past:
        task = branch.task
        story = None if task.turn_id is None else await store.turn(task.turn_id)
        if story is None or not story.messages:
            raise TaskImpossible("the turn that began it is not kept any more")
        claimed = Claimed(story.batch, story.turn_id, story.messages)
        tail = fitted(await store.context(claimed.batch.lane, budget.recent_records), budget.recent_tokens)
        scene = Scene(claimed, tail)
        records, _ = recent(scene, fence)
        tools = tuple(tool for tool in memory_tools(claimed) if tool.name in _OF_MEMORY)
        if task.depth < DEPTH_MAX:
            tools += Tasking(claimed, store.tasks, ids, branch.steps, fence).making()
        return Past(records, summary(scene, budget.summary_chars).text, tools, taint_of(scene))

    return past
