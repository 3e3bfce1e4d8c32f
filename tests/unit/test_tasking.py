"""The agent makes work with its turn or not at all, and looks at it; the owner decides in a chat."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from tests.unit.task_cast import only_task, owner_says, pull, until, working
from tests.waits import HANG_S

from keepsaid.app.instance import Instance
from keepsaid.domain.ids import show
from keepsaid.domain.message import Inbound
from keepsaid.domain.reply import StoredReply
from keepsaid.domain.task import ClaimTasks, EndTask, NewTask, TaskEnd, TaskFilter
from keepsaid.testing.model_script import Call, Hang, Say, Script


async def answered(instance: Instance, inbound: Inbound) -> StoredReply:
    """The reply to a message."""
    received = await instance.receive(inbound)
    with instance.hub.listening(received.id) as told:
        async with asyncio.timeout(HANG_S):
            while not (story := await instance.operations.story(received.id)) or not story.replies:
                await told.get()
    return story.replies[-1]


async def test_the_agent_makes_work_and_looks_at_it(tmp_path: Path) -> None:
    """What came of it is data; its conversation hears of it."""
    script = Script(Call("task_create", {"task": "name a river", "key": "river"}), Say("I will see"), Say("the Tiber"))
    async with working(tmp_path, script) as (instance, model):
        await instance.receive(owner_says("which river is it?"))
        task = (await until(instance, "completed")).task
        assert (task.result, task.key, task.depth, task.outside, task.lane) == (
            "the Tiber",
            "river",
            1,
            False,
            owner_says("").lane,
        )
        assert model.requests[2].tool_names == ["memory_search", "memory_open", "set_status"]
        script.then(Call("task_list"), Call("task_show", {"id": show("task", task.id)}), Say("it is the Tiber"))
        await instance.receive(owner_says("and now?"))
        requests = await model.wait_for(6)
        assert f"{show('task', task.id)} completed: name a river" in requests[4].last("tool")
        assert re.search(r"\[Data (\w{8}): its result\]\nthe Tiber\n\[End of data \1\]", requests[5].last("tool"))
        await model.wait_idle()


async def test_work_is_made_with_the_turn_or_not_at_all(tmp_path: Path) -> None:
    """A turn that did not end made none."""
    script = Script(Call("task_create", {"task": "name a river"}), default=Hang())
    async with working(tmp_path, script) as (instance, model):
        await instance.receive(owner_says("which river is it?"))
        await model.wait_for(2)
        assert "is written down" in model.requests[1].last("tool")
        await instance.stop()
        assert await instance.services.tasks.find(TaskFilter()) == []


async def test_the_agent_ends_what_it_made(tmp_path: Path) -> None:
    """With its turn; and nobody makes work for strangers, nor sees that of others."""
    script = Script(Call("task_create", {"task": "name a river"}), Say("I will see"), Hang(), default=Say("no"))
    async with working(tmp_path, script) as (instance, model):
        await instance.receive(owner_says("which river is it?"))
        task = (await until(instance, "started")).task
        await model.wait_for(3)
        stranger = pull(room="elsewhere")
        script.then(Call("task_create", {"task": "x"}), Call("task_show", {"id": show("task", task.id)}), Say("no"))
        await instance.receive(Inbound(stranger.origin, owner_says("do it").content, stranger.marks, 10))
        requests = await model.wait_for(6)
        assert "error: refused, nothing was done" in requests[4].last("tool")
        assert "there is no task" in requests[5].last("tool")
        script.then(Call("task_cancel", {"id": show("task", task.id)}), Say("ended"))
        await instance.receive(owner_says("never mind"))
        ended = (await until(instance, "cancelled")).task
        assert (ended.id, ended.reason) == (task.id, "the agent ended it")
        await model.wait_idle()


async def test_the_owner_decides_in_a_chat(tmp_path: Path) -> None:
    """By the task's id; nobody else does."""
    async with working(tmp_path, Script(), models={"chat": "none"}) as (instance, _):
        apply = instance.operations.apply
        names = []
        for text in ("one", "two"):
            number = await instance.services.tasks.create(NewTask(0, text, outside=False))
            [task] = await apply(ClaimTasks("me", 1, 1 << 60, 1 << 60))
            await apply(EndTask(number, task.fence, TaskEnd.PARK, 1, "a call has no result"))
            names.append(show("task", number))
        told = (await answered(instance, owner_says("/tasks"))).draft.text
        assert f"{names[0]} needs_review: one (a call has no result)" in told
        other = pull(room="elsewhere")
        command = Inbound(other.origin, owner_says(f"/approve {names[0]}").content, other.marks, 10)
        assert "only people known to me" in (await answered(instance, command)).draft.text
        assert "goes on" in (await answered(instance, owner_says(f"/approve {names[0]}"))).draft.text
        assert "has failed" in (await answered(instance, owner_says(f"/reject {names[1]}"))).draft.text
        assert "Say which" in (await answered(instance, owner_says(f"/reject {names[1]}"))).draft.text
        found = {show("task", task.id): task.state for task in await instance.services.tasks.find(TaskFilter())}
        assert found == {names[0]: "pending", names[1]: "failed"}


async def test_nothing_is_listed_where_nothing_is(tmp_path: Path) -> None:
    """In words."""
    script = Script(Call("task_list"), Say("nothing"))
    async with working(tmp_path, script) as (instance, model):
        assert (await answered(instance, owner_says("/tasks"))).draft.text == "There is no task."
        await instance.receive(owner_says("what is to be done?"))
        assert (await model.wait_for(2))[1].last("tool") == "There is no task."
        await instance.services.tasks.create(NewTask(0, "wait", outside=False))
        assert (await only_task(instance)).turn_id is None
