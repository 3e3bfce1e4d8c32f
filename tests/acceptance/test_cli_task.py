"""Tasks by command, without a runtime: written down, listed, shown, decided; and over HTTP, where one is up."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acceptance.program import Program, inside
from tests.acceptance.test_cli_waiting import change
from tests.unit.http_cast import refused, site

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A home without anything."""
    return Program(tmp_path / "home")


def test_a_task_is_written_down_shown_and_cancelled(program: Program, capsys: Capture) -> None:
    assert "there is no task" in inside(program, capsys, "inbox", "tasks", "ls").err
    made = inside(program, capsys, "inbox", "tasks", "run", "--text", "name a river", "--key", "river", "--json")
    task = made.json["task"]
    assert "no runtime is up" in made.err
    listed = inside(program, capsys, "inbox", "tasks", "ls")
    assert ("name a river" in listed.out, "no model is set" in listed.err) == (True, True)
    shown = inside(program, capsys, "inbox", "tasks", "show", task)
    assert (f"{task} is pending" in shown.out, "key         river" in shown.out) == (True, True)
    assert "is due now" in inside(program, capsys, "inbox", "tasks", "run", task).out
    assert inside(program, capsys, "status", "--json").json["tasks"] == {"pending": 1}
    assert "cancelled" in inside(program, capsys, "inbox", "tasks", "cancel", task, "--reason", "no need").out
    [told] = inside(program, capsys, "inbox", "tasks", "ls", "--state", "cancelled", "--json").json["tasks"]
    assert (told["id"], told["reason"], told["ended_at"] is not None) == (task, "no need", True)
    assert told["tools"] is None

    assert "has ended: it is cancelled" in inside(program, capsys, "inbox", "tasks", "cancel", task, code=1).err
    assert "names no task" in inside(program, capsys, "inbox", "tasks", "show", "tsk_nothing", code=1).err
    assert (
        "keepsaid inbox tasks run --text 'count to three'"
        in inside(program, capsys, "inbox", "tasks", "run", "count to three", code=1).err
    )
    assert "--text" in inside(program, capsys, "inbox", "tasks", "run", code=2).err


def test_the_tools_of_a_task_are_listed_with_it(program: Program, capsys: Capture) -> None:
    """While no runtime is up nobody knows which there are; its worker says so."""
    named = "memory_search, desk__look"
    inside(program, capsys, "inbox", "tasks", "run", "--text", "look", "--tools", named, "--json")
    [told] = inside(program, capsys, "inbox", "tasks", "ls", "--json").json["tasks"]
    assert told["tools"] == ["memory_search", "desk__look"]


def test_a_task_that_needs_review_is_decided(program: Program, capsys: Capture) -> None:
    made = [inside(program, capsys, "inbox", "tasks", "run", "--text", text, "--json") for text in ("one", "two")]
    tasks = [one.json["task"] for one in made]
    change(program, "UPDATE task SET state = 'needs_review', reason = 'a call has no result'")
    assert "a call has no result" in inside(program, capsys, "inbox", "tasks", "show", tasks[0]).out
    assert "goes on" in inside(program, capsys, "inbox", "tasks", "approve", tasks[0], "--result", "it was posted").out
    assert "it has failed" in inside(program, capsys, "inbox", "tasks", "reject", tasks[1], "--reason", "no").out
    states = {
        one["id"]: one["state"] for one in inside(program, capsys, "inbox", "tasks", "ls", "--json").json["tasks"]
    }
    assert states == {tasks[0]: "pending", tasks[1]: "failed"}
    assert "does not need review" in inside(program, capsys, "inbox", "tasks", "approve", tasks[0], code=1).err


async def test_tasks_over_http(tmp_path: Path) -> None:
    async with site(tmp_path) as one:
        client, owner = one.client, one.owner
        refused(await client.get("/v1/tasks"), 401)
        refused(await client.post("/v1/tasks", json={"task": " "}, headers=owner), 400)
        refused(await client.post("/v1/tasks", json={"task": "x", "after": ["tsk_x"]}, headers=owner), 400)
        first = (await client.post("/v1/tasks", json={"task": "name a river", "key": "k"}, headers=owner)).json()["id"]
        made = await client.post("/v1/tasks", json={"task": "and its source", "after": [first]}, headers=owner)
        second = made.json()["id"]
        told = (await client.get("/v1/tasks?state=blocked", headers=owner)).json()["tasks"]
        assert [(task["id"], task["after"]) for task in told] == [(second, [first])]
        assert (await client.post(f"/v1/tasks/{first}/run", json={}, headers=owner)).json() == {"done": True}
        assert (await client.post(f"/v1/tasks/{first}/approve", json={}, headers=owner)).json() == {"done": False}
        assert (await client.post(f"/v1/tasks/{first}/reject", json={}, headers=owner)).json() == {"done": False}
        assert (await client.post(f"/v1/tasks/{first}/cancel", json={}, headers=owner)).json() == {"done": True}
        shown = (await client.get(f"/v1/tasks/{second}", headers=owner)).json()
        assert (shown["state"], first in shown["reason"]) == ("failed", True)
        refused(await client.get(f"/v1/tasks/{second[:-1]}", headers=owner), 404)
        refused(await client.get("/v1/tasks?state=odd", headers=owner), 400)
        refused(await client.get("/v1/tasks?limit=0", headers=owner), 400)
