"""A branch thinks aside, with what was said in its lane and memory; what it leaves is there with its conclusion."""

from __future__ import annotations

from pathlib import Path

from tests.unit.task_cast import owner_says, pull, until, working

from keepsaid.domain.memory import Listener
from keepsaid.domain.message import Inbound
from keepsaid.domain.route import TaskKind
from keepsaid.domain.task import DEPTH_MAX, NewTask, TaskFilter
from keepsaid.testing.model_script import Call, ChatRequest, Hang, Reaction, Say, Script

_MAKING = ("branch", "task_create")
_OF_MEMORY = ("memory_confirm", "memory_correct", "memory_open", "memory_save", "memory_search")
_BEGUN = (Call("branch", {"about": "which river suits"}), Say("I will think"))


async def test_a_branch_knows_what_was_said(tmp_path: Path) -> None:
    """It sees its lane, may ask memory and have work done; it can speak to nobody."""
    script = Script(
        Call("branch", {"about": "which river suits"}), Say("I will think"), Call("memory_search", {"query": "river"})
    )
    script.then(Say("the Tiber"))
    async with working(tmp_path, script) as (instance, model):
        await instance.receive(owner_says("I like Rome; which river?"))
        task = (await until(instance, "completed")).task
        assert (task.kind, task.result, task.depth, task.outside) == (TaskKind.BRANCH, "the Tiber", 1, False)
        request = model.requests[2]
        assert sorted(request.tool_names) == [*_MAKING[:1], *_OF_MEMORY, *_MAKING[1:]]
        said = [str(one["content"]) for one in request.body["messages"]]
        assert any("I like Rome" in one for one in said)
        assert "[Task]\nwhich river suits" in said[-1]
        await model.wait_idle()


async def test_a_branch_that_fails_says_so(tmp_path: Path) -> None:
    """It has ended, with the reason; a stranger's turn begins none."""
    script = Script(Call("branch", {"about": "which river suits"}), Say("I will think"), default=Hang())
    async with working(tmp_path, script, tasks={"timeout_s": 1}) as (instance, model):
        await instance.receive(owner_says("which river?"))
        task = (await until(instance, "failed")).task
        assert task.reason == "it took longer than 1 s"
        script.then(Call("branch", {"about": "x"}), Say("no"))
        stranger = pull(room="elsewhere")
        await instance.receive(Inbound(stranger.origin, owner_says("do it").content, stranger.marks, 10))
        requests = await model.wait_for(5)
        assert "error: refused, nothing was done" in requests[4].last("tool")
        await model.wait_idle()


async def test_the_branch_enriches_and_the_program_spawns(tmp_path: Path) -> None:
    """What a worker has to know is written into its task; it begins with the branch's end, and comes back too."""
    script = Script(*_BEGUN, Call("task_create", {"task": "measure the Tiber, near Rome, for a swimmer"}))
    async with working(tmp_path, script) as (instance, model):
        script.then(Hang())
        await instance.receive(owner_says("I like Rome; which river?"))
        await model.wait_for(4)
        assert "is written down" in model.requests[3].last("tool")
        [branch] = await instance.services.tasks.find(TaskFilter())
        await instance.stop()
        assert [one.state for one in await instance.services.tasks.find(TaskFilter())] == ["pending"]
    script.then(Say("the Tiber; it is measured"), Say("405 km"))
    async with working(tmp_path, script) as (instance, model):
        await until(instance, "completed", branch.id)
        made, ended = await instance.services.tasks.find(TaskFilter())
        assert (ended.result, made.depth, made.turn_id) == ("the Tiber; it is measured", 2, branch.turn_id)
        worker = (await until(instance, "completed", made.id)).task
        assert (worker.result, worker.outside) == ("405 km", False)
        assert [one.tool_names for one in model.requests][1:] == [["memory_search", "memory_open", "set_status"]]
        assert "near Rome, for a swimmer" in str(model.requests[1].body["messages"])
        await model.wait_idle()


async def test_one_task_may_wait_for_another_of_the_same_branch(tmp_path: Path) -> None:
    """Its name is known before it is written down; so it is in a turn."""

    def measure(request: ChatRequest) -> Reaction:
        return Call("task_create", {"task": "measure it", "after": [request.last("tool").partition(" ")[0]]})

    script = Script(*_BEGUN, Call("task_create", {"task": "find the Tiber"}), measure)
    script.then(Say("soon"), Say("here"), Say("405"))
    async with working(tmp_path, script) as (instance, model):
        await instance.receive(owner_says("I like Rome; which river?"))
        await until(instance, "completed")
        latest, first, _ = await instance.services.tasks.find(TaskFilter())
        assert latest.after == (first.id,)
        assert (await until(instance, "completed", latest.id)).task.result == "405"
        await model.wait_idle()


async def test_work_is_not_made_without_end(tmp_path: Path) -> None:
    """The deepest branch has no tool for it."""
    async with working(tmp_path, Script(Say("hello"), Say("so it is"))) as (instance, model):
        received = await instance.receive(owner_says("I like Rome"))
        story = await instance.operations.story(received.id)
        while story is None or story.turn_id is None or story.state != "done":
            await model.wait_idle()
            story = await instance.operations.story(received.id)
        deep = NewTask(
            0,
            "which river?",
            kind=TaskKind.BRANCH,
            lane=received.lane,
            turn_id=story.turn_id,
            depth=DEPTH_MAX,
            outside=False,
        )
        await instance.services.tasks.create(deep)
        await until(instance, "completed")
        assert sorted(model.requests[1].tool_names) == [*_OF_MEMORY]
        await model.wait_idle()


async def test_what_a_branch_keeps_is_kept_once(tmp_path: Path) -> None:
    """With its conclusion, and not before; said by whoever it was said by."""
    saved = {"text": "Ann lives in Rome", "subject": "Ann", "attribute": "lives in", "value": "Rome"}
    script = Script(*_BEGUN, Call("memory_save", saved), Say("Ann lives in Rome; the Tiber"))
    async with working(tmp_path, script) as (instance, model):
        await instance.receive(owner_says("Ann lives in Rome; which river?"))
        task = (await until(instance, "completed")).task
        while await instance.operations.tasks.results(1):
            await instance.working.results.catch_up()
        audit = Listener(None, everything=True)
        [memory] = [one for one in await instance.memories.find(audit, (), 9) if one.new.key == f"task:{task.id}:0"]
        assert (memory.new.text, memory.new.value, memory.new.derived) == ("Ann lives in Rome", "Rome", True)
        assert {one.kind for one in memory.new.sources} == {"turn", "message"}
        await model.wait_idle()
