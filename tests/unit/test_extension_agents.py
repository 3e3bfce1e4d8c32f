"""Agents of extensions are tasks: on record, tried again, counted, and reported where their extension asked for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.extension_cast import put, put_folder
from tests.unit.task_cast import answered, only_task, owner_says, settings, until

from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.config.services import ToolsConfig
from keepsaid.domain.ids import show
from keepsaid.domain.route import TaskKind, WorkTerms
from keepsaid.domain.task import NewTask, TaskFilter
from keepsaid.extensions.loaded import State
from keepsaid.testing.model_script import Call, Hang, Say, Script
from keepsaid.testing.model_server import ModelServer

MANIFEST = """
id: desk
api: 1
entrypoint: main:Desk
schedules:
  - name: daily
    every_s: 86400
    task: Send it
events:
  subscribes:
    - topic: order.placed
      handler: invoke_agent
      result: notify_user
agent:
  instructions: You answer mail.
  tools: [send, look, read]
  limits: {time_s: 30}
"""
SOURCE = """
from keepsaid.extensions import tool

SENT = []


class Desk:
    @tool
    async def send(self) -> str:
        "Send."
        SENT.append("sent")
        return "sent"

    @tool(kind="pure", output="owner")
    async def look(self) -> str:
        "Look."
        return "a page"

    @tool(kind="pure")
    async def read(self) -> str:
        "Read a page."
        return "a page"

    @tool(kind="pure")
    async def other(self) -> str:
        "Not for the agent."
        return "no"
"""
CODE = """
@extension(id="coder")
class Coder:
    calls = 0

    async def initialize(self, context):
        self.context = context

    @tool(kind="idempotent")
    async def begin(self) -> str:
        "Begin."
        return await self.context.invoke_agent("count to three", "once")

    async def invoke(self, task):
        Coder.calls += 1
        if Coder.calls == 1:
            raise ValueError("not yet")
        return f"{task}: done, {task.trust}"
"""


def _config(model: ModelServer) -> Config:
    return settings(models={"chat": "openai/scripted", "base_url": model.url, "api_key": "k"})


async def _make(instance: Instance, agent: str, text: str, *, outside: bool) -> int:
    terms = WorkTerms(agent=agent)
    return await instance.services.tasks.create(NewTask(0, text, kind=TaskKind.AGENT, terms=terms, outside=outside))


@pytest.mark.parametrize(
    ("outside", "calls", "done"),
    [
        (False, ["send"], True),
        (False, ["look", "send"], True),
        (False, ["read", "send"], False),
        (True, ["send"], False),
        (True, ["read", "look"], False),
    ],
)
async def test_it_calls_what_its_task_and_what_it_read_allow(
    tmp_path: Path, outside: bool, calls: list[str], done: bool
) -> None:
    home = Home.at(tmp_path)
    put_folder(home.extensions, "desk", MANIFEST, SOURCE)
    async with ModelServer(Script(*map(Call, calls), Say("done", usage=(40, 4)))) as model:
        async with opened(home, _config(model)) as instance:
            await instance.start()
            story = await until(instance, "completed", await _make(instance, "desk", "Send it", outside=outside))
            usage = (await instance.operations.overview()).usage
        assert (story.task.result, sorted(model.requests[0].tool_names)) == ("done", ["look", "read", "send"])
        refused = [one for one in model.requests if "refused, nothing was done: send" in one.last("tool")]
    assert [step.subject for step in story.steps if step.kind == "tool"] == calls
    assert bool(refused) is ("send" in calls and not done)
    assert (usage.tokens_in >= 40, usage) == (True, story.task.usage)


async def test_an_event_makes_one_task_and_its_result_reaches_the_owner(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    put_folder(home.extensions, "desk", MANIFEST, SOURCE)
    async with ModelServer(Script(Say("the order is packed"))) as model, opened(home, _config(model)) as instance:
        await instance.start()
        await answered(instance, await instance.receive(owner_says("/help")))
        await instance.telling.emit("order.placed", {"prompt": "Pack the order"})
        task = (await until(instance, "completed")).task
        host = instance.extending.host
        again = await host.invoke_agent("desk", "Pack the order", task.key.split(":", 2)[2], notify_user=True)
        told = [one.draft.text for one in await instance.operations.unseen("http", "home") if one.draft.notice]
        found = await instance.services.tasks.find(TaskFilter())
    assert (task.description, task.outside, task.terms.agent) == ("Pack the order", True, "desk")
    assert (again, [one.id for one in found]) == (task.id, [task.id])
    assert [f"Task {show('task', task.id)} is completed" in one for one in told] == [True]


async def test_code_that_raised_is_called_again_and_both_calls_are_on_record(tmp_path: Path) -> None:
    """Also without a model."""
    home = Home.at(tmp_path)
    put(home.extensions, "coder", CODE)
    async with opened(home, settings(models={"chat": "none"})) as instance:
        await instance.start()
        [begin] = [tool for tool in instance.extending.offers.lasting() if tool.name == "begin"]
        names = {await begin.run({}), await begin.run({})}
        story = await until(instance, "completed")
    assert names == {show("task", story.task.id)}
    assert (story.task.result, story.task.attempts) == ("count to three: done, external", 1)
    assert [(step.subject, step.state, step.repeatable) for step in story.steps] == [
        ("agent coder", "finished", False),
        ("agent coder", "finished", False),
    ]


@pytest.mark.parametrize(
    ("agent", "script", "reason"),
    [
        ("nobody", Script(), "the extension nobody is not loaded, or has no agent"),
        ("desk", Script(default=Hang()), "its agent took longer than 0.01 s"),
        ("desk", Script(default=Call("look")), "the model made 2 steps without coming to an answer"),
    ],
)
async def test_a_task_that_fails_says_why(tmp_path: Path, agent: str, script: Script, reason: str) -> None:
    home, limits = Home.at(tmp_path), "{time_s: 0.01}" if "longer" in reason else "{time_s: 60, steps_max: 2}"
    put_folder(home.extensions, "desk", MANIFEST.replace("{time_s: 30}", limits), SOURCE)
    async with ModelServer(script) as model, opened(home, _config(model)) as instance:
        await instance.start()
        assert instance.extending.lifecycle.guests["desk"].state is State.ACTIVE
        terms = WorkTerms(agent=agent, attempts_max=1)
        await instance.services.tasks.create(NewTask(0, "Send it", kind=TaskKind.AGENT, terms=terms))
        await until(instance, "failed")
        assert reason in (await only_task(instance)).reason


async def test_without_a_model_a_described_agent_waits(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    put_folder(home.extensions, "desk", MANIFEST, SOURCE)
    async with opened(home, settings(models={"chat": "none"})) as instance:
        await instance.start()
        number = await _make(instance, "desk", "Send it", outside=False)
        for stage in instance.working.stages():
            await stage.work()
        assert (await only_task(instance)).state == "pending"
    async with ModelServer(Script(Say("done"))) as model, opened(home, _config(model)) as instance:
        await instance.start()
        assert (await until(instance, "completed", number)).task.result == "done"


async def test_code_that_was_cut_off_waits_for_a_person(tmp_path: Path) -> None:
    """What it came to is said by a person; it is not called again."""
    home = Home.at(tmp_path)
    source = """
    import asyncio

    @extension(id="sleeper")
    class Sleeper:
        calls = []
        begun = asyncio.Event()

        async def invoke(self, task):
            self.calls.append(task)
            self.begun.set()
            await asyncio.Event().wait()
    """
    put(home.extensions, "sleeper", source)
    config = settings(models={"chat": "none"})
    async with opened(home, config) as instance:
        await instance.start()
        await _make(instance, "sleeper", "sleep", outside=True)
        await instance.extending.lifecycle.guests["sleeper"].made.begun.wait()
    async with opened(home, config) as instance:
        await instance.start()
        task = (await until(instance, "needs_review")).task
        assert "agent sleeper" in task.reason
        assert await instance.services.tasks.decide(task.id, approved=True, result="it slept")
        assert (await until(instance, "completed")).task.result == "it slept"
        assert instance.extending.lifecycle.guests["sleeper"].made.calls == []


_DICE = """
from keepsaid.extensions import tool


class Dice:
    @tool(kind="pure")
    async def roll(self) -> str:
        "Roll."
        return "6"
"""


@pytest.mark.parametrize(
    ("reads", "names"), [("[owner]", ["memory_search", "http_get", "look"]), ("[own]", ["http_get", "look"])]
)
async def test_a_described_agent_may_list_tools_of_the_runtime(tmp_path: Path, reads: str, names: list[str]) -> None:
    """Memory only as the owner, where its manifest says so; no tool of an extension that it does not depend on."""
    home = Home.at(tmp_path)
    listed = "[look, roll, memory_search, http_get]"
    manifest = MANIFEST.replace("[send, look, read]", listed).replace("agent:\n", f"reads: {reads}\nagent:\n")
    put_folder(home.extensions, "desk", manifest, SOURCE)
    put_folder(home.extensions, "dice", "id: dice\napi: 1\nentrypoint: main:Dice\n", _DICE)
    script = Script(Call("memory_search", {"query": "spare key"}), Say("done"))
    async with ModelServer(script) as model:
        config = _config(model).model_copy(update={"tools": ToolsConfig(http_hosts=("docs.example.org",))})
        async with opened(home, config) as instance:
            await instance.services.memories.add("The spare key is under the blue pot", "fact")
            await instance.start()
            await until(instance, "completed", await _make(instance, "desk", "Where is the key?", outside=True))
        assert sorted(model.requests[0].tool_names) == sorted(names)
        assert ("blue pot" in model.requests[1].last("tool")) is (reads == "[owner]")
