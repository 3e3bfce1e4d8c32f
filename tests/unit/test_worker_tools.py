"""The tools of a worker: chosen by rule, agent or owner, and memory search in the audience of who asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.task_cast import owner_says, pull, until, working

from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import Json
from keepsaid.domain.route import WorkTerms
from keepsaid.domain.task import NewTask
from keepsaid.domain.turn import ToolClass
from keepsaid.errors import ConfigError, InputError
from keepsaid.ports.model import Tool
from keepsaid.testing.model_script import Call, Say, Script

_SECRET = "The spare key is under the blue pot"
_LOOK = Call("memory_search", {"query": "spare key"})


def tool(name: str, kind: ToolClass = ToolClass.PURE, serves: Trust | None = None) -> Tool:
    async def run(_: dict[str, Json]) -> str:
        return f"{name} did it"

    schema: dict[str, Json] = {"type": "object", "properties": {}}
    return Tool(name, f"{name} something.", schema, run, kind, serves=serves)


async def test_a_worker_of_the_owners_turn_searches_memory_as_the_owner(tmp_path: Path) -> None:
    made = Call("task_create", {"task": "where is the key?", "tools": ["memory_search"]})
    async with working(tmp_path, Script(made, Say("I will look"), _LOOK, Say("under the pot"))) as (instance, model):
        await instance.services.memories.add(_SECRET, "fact")
        await instance.receive(owner_says("where is the spare key?"))
        task = (await until(instance, "completed")).task
        assert task.terms == WorkTerms(tools=("memory_search",))
        requests = await model.wait_for(4)
        assert requests[2].tool_names == ["memory_search", "set_status"]
        assert _SECRET in requests[3].last("tool")


async def test_a_worker_on_a_strangers_text_hears_what_its_conversation_may_hear(tmp_path: Path) -> None:
    async with working(tmp_path, Script(_LOOK, Say("nothing there"))) as (instance, model):
        await instance.services.memories.add(_SECRET, "fact")
        await instance.receive(pull())
        await until(instance, "completed")
        requests = await model.wait_for(2)
        assert requests[0].tool_names == ["memory_search", "memory_open", "set_status"]
        assert requests[1].last("tool").startswith("Nothing found.")


async def test_a_task_that_the_owner_made_by_command_hears_as_the_owner(tmp_path: Path) -> None:
    async with working(tmp_path, Script(_LOOK, Say("under the pot"))) as (instance, model):
        await instance.services.memories.add(_SECRET, "fact")
        await instance.services.tasks.create(NewTask(0, "where is the key?", outside=False))
        await until(instance, "completed")
        assert _SECRET in (await model.wait_for(2))[1].last("tool")


async def test_a_task_of_nobody_known_has_no_memory(tmp_path: Path) -> None:
    async with working(tmp_path, Script(Say("done"))) as (instance, model):
        await instance.services.tasks.create(NewTask(0, "where is the key?", outside=True))
        await until(instance, "completed")
        assert (await model.wait_for(1))[0].tool_names == ["set_status"]


async def test_a_tool_that_is_not_there_is_named_to_the_model(tmp_path: Path) -> None:
    made = Call("task_create", {"task": "call them", "tools": ["telephone"]})
    async with working(tmp_path, Script(made, Say("I cannot")), [tool("look")]) as (instance, model):
        await instance.receive(owner_says("call them"))
        told = (await model.wait_for(2))[1].last("tool")
        assert "there is no tool 'telephone' that a worker may use" in told
        assert "look, memory_open, memory_search" in told


async def test_a_tool_that_is_not_there_is_refused_to_the_owner(tmp_path: Path) -> None:
    async with working(tmp_path, Script()) as (instance, _):
        wanted = NewTask(0, "call them", terms=WorkTerms(tools=("telephone",)), outside=False)
        with pytest.raises(InputError, match="there is no tool 'telephone'"):
            await instance.services.tasks.create(wanted)


async def test_a_turn_that_lists_a_tool_grants_nothing(tmp_path: Path) -> None:
    """What a worker was shown from outside ends its calls of a tool with effects, whatever the turn listed."""
    tools = [tool("read"), tool("send", ToolClass.UNSAFE)]
    made = Call("task_create", {"task": "read and send", "tools": ["read", "send"]})
    script = Script(made, Say("I will"), Call("read"), Call("send"), Say("it was refused"))
    async with working(tmp_path, script, tools) as (instance, model):
        await instance.receive(owner_says("read and send it"))
        await until(instance, "completed")
        assert "refused, nothing was done" in (await model.wait_for(5))[4].last("tool")


async def test_the_owner_grants_what_a_rule_lists(tmp_path: Path) -> None:
    rule = {"tools": ["send", "memory_search", "set_status"]}
    script = Script(Call("send"), Say("sent"))
    async with working(tmp_path, script, [tool("send", ToolClass.UNSAFE)], rule=rule) as (instance, model):
        await instance.receive(pull())
        await until(instance, "completed")
        requests = await model.wait_for(2)
        assert requests[0].tool_names == ["send", "memory_search", "set_status"]
        assert requests[1].last("tool") == "send did it"


async def test_a_rule_that_lists_an_unknown_tool_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the rule 'review' lists the tool 'memory_serch'.* 'memory_search'\?"):
        async with working(tmp_path, Script(), rule={"tools": ["memory_serch"]}):
            pass


async def test_tools_of_a_server_that_is_not_there_yet_may_be_listed(tmp_path: Path) -> None:
    """The server may start later; one that the config does not name never will."""
    servers = {"near": {"command": [str(tmp_path / "none")]}}
    async with working(tmp_path, Script(), rule={"tools": ["near__look"]}, servers=servers):
        pass
    with pytest.raises(ConfigError, match="far__look"):
        async with working(tmp_path, Script(), rule={"tools": ["far__look"]}, servers=servers):
            pass
