"""Agents that a manifest describes: the trust of a task and of what its tools bring decides what they may call."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from keepsaid.domain.message import Trust, Trusted
from keepsaid.domain.prompt import Json, ToolCall
from keepsaid.domain.turn import ModelAnswer, ToolClass
from keepsaid.extensions.contributions import DeclaredAgent
from keepsaid.extensions.manifest import AgentManifest
from keepsaid.ports.model import Delta, ModelRequest, Tool


@dataclass
class Doing:
    """Calls these tools, one a step, and repeats what they said."""

    calls: list[str]
    said: list[str] = field(default_factory=list)
    name: str = "test/model"

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        self.said = [record.text for record in request.exchange if record.call_id]
        if len(self.said) < len(self.calls):
            return ModelAnswer("", (ToolCall(f"c{len(self.said)}", self.calls[len(self.said)], "{}"),))
        return ModelAnswer("done")


@pytest.mark.parametrize(
    ("task", "calls", "done"),
    [
        (Trusted("send it", Trust.OWNER), ["send"], True),
        (Trusted("send it", Trust.OWNER), ["look", "send"], True),
        (Trusted("send it", Trust.OWNER), ["read", "send"], False),
        ("send it", ["send"], False),
        ("send it", ["read", "look"], False),
    ],
)
async def test_it_calls_what_its_task_and_what_it_read_allow(task: str, calls: list[str], done: bool) -> None:
    sent: list[str] = []

    async def send(_: dict[str, Json]) -> str:
        sent.append("sent")
        return "sent"

    async def look(_: dict[str, Json]) -> str:
        return "a page"

    nothing: dict[str, Json] = {"type": "object", "properties": {}}
    tools = (
        Tool("send", "Send.", nothing, send, ToolClass.UNSAFE),
        Tool("look", "Look.", nothing, look, output=Trust.OWNER),
        Tool("read", "Read a page.", nothing, look),
    )
    model = Doing(calls)
    described = AgentManifest(instructions="Do it.", tools=("send", "look", "read"))
    assert await DeclaredAgent(described, lambda _: model, lambda: tools).invoke(task) == "done"
    assert bool(sent) is done
    if "send" in calls and not done:
        assert model.said[-1].startswith("error: refused, nothing was done: send serves the owner")
