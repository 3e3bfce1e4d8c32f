"""The tools on offer: the context of a turn counts them, and the operator leaves some out."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from tests.unit.test_compactor import say
from tests.waits import HANG_S

from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.prompt import LayerShare, shares_of
from keepsaid.domain.turn import ModelAnswer
from keepsaid.pipeline.prompt.guard import offered
from keepsaid.ports.model import Delta, ModelRequest, Tool
from keepsaid.text.tokens import estimate_tokens

TOKENS_MAX = 1_750
"""What all built-in tools may cost in a prompt, as keepsaid estimates it."""


@dataclass
class Noting:
    """A model that keeps the tools that it was offered last."""

    tools: tuple[Tool, ...] = ()
    name: str = "test/model"
    lists: list[list[str]] = field(default_factory=list)

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        self.tools = tuple(request.tools)
        self.lists.append([one.name for one in request.tools])
        return ModelAnswer("ok")


async def shares(instance: Instance) -> tuple[LayerShare, ...]:
    newest = await instance.operations.last_turn(None)
    assert newest is not None
    story = await instance.operations.turn(newest)
    assert story is not None
    return shares_of(story.trace)


async def test_the_context_of_a_turn_begins_with_the_tools_on_offer(tmp_path: Path) -> None:
    model = Noting()
    async with asyncio.timeout(HANG_S), opened(Home.at(tmp_path), Config(buffer={"window_ms": 0}), model) as instance:
        await instance.start()
        await say(instance, "hello there")
        first, *others = await shares(instance)
    described = offered(model.tools)
    count = f"{len(model.tools)} on offer"
    assert first == LayerShare("tools", estimate_tokens(described), len(described), count)
    assert "policy" in {one.name for one in others}
    assert estimate_tokens(described) <= TOKENS_MAX


async def test_tools_that_the_operator_leaves_out_are_never_offered(tmp_path: Path) -> None:
    """Each turn of a lane has the same list, so that its prefix is cached."""
    model, config = Noting(), Config(buffer={"window_ms": 0}, tools={"leave_out": ["schedule_*", "branch"]})
    async with asyncio.timeout(HANG_S), opened(Home.at(tmp_path), config, model) as instance:
        await instance.start()
        for text in ("hello there", "and again"):
            await say(instance, text)
    [one, other] = model.lists
    assert one == other
    assert "memory_search" in one
    assert not [name for name in one if name.startswith("schedule_") or name == "branch"]
