"""A branch thinks aside, with what was said in its lane and memory; its conclusion is the result of its task."""

from __future__ import annotations

from pathlib import Path

from tests.unit.task_cast import owner_says, pull, until, working

from keepsaid.domain.message import Inbound
from keepsaid.domain.work import TaskKind
from keepsaid.testing.model_script import Call, Hang, Say, Script


async def test_a_branch_knows_what_was_said(tmp_path: Path) -> None:
    """It sees its lane and may ask memory; it can speak to nobody, and have nothing done."""
    script = Script(
        Call("branch", {"about": "which river suits"}), Say("I will think"), Call("memory_search", {"query": "river"})
    )
    script.then(Say("the Tiber"))
    async with working(tmp_path, script) as (instance, model):
        await instance.receive(owner_says("I like Rome; which river?"))
        task = (await until(instance, "completed")).task
        assert (task.kind, task.result, task.depth, task.outside) == (TaskKind.BRANCH, "the Tiber", 1, False)
        request = model.requests[2]
        assert sorted(request.tool_names) == ["memory_open", "memory_search"]
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
        assert "strangers take part" in requests[4].last("tool")
        await model.wait_idle()
