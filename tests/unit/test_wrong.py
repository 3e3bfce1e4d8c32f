"""A memory was wrong: it is left out of the lane's next turns until that is withdrawn, however it was said."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import refused, site

from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.command import Command, read_command
from keepsaid.domain.ids import show
from keepsaid.domain.memory import OWNER as PERSON
from keepsaid.domain.message import Content, Inbound, Lane, Origin, Trust, lane_key
from keepsaid.domain.receipt import MemoryUse
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.ports.model import Delta, ModelRequest

OWNER = Origin("terminal", "default", "me", "ann", direct=True, trust=Trust.OWNER)
HERE = Lane("terminal", "default", "me", lane_key("me"))
BOILER, KETTLE = "The boiler is serviced every May.", "The kettle boils beside the boiler."
QUESTION = "when is the boiler serviced?"

Say = Callable[[str], Awaitable[str]]


class Reminded:
    """Answers with what came to mind."""

    name = "test/reminded"

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        delta("")
        return ModelAnswer(request.prompt.recalled or "nothing", usage=Usage(9, 3), model=self.name)


def talking(instance: Instance) -> Say:
    async def say(text: str) -> str:
        heard = await instance.receive(Inbound(OWNER, Content(text.encode(), text), priority=10))
        with instance.hub.listening(heard.id) as stages:
            story = await instance.operations.story(heard.id)
            while story is None or story.state != "done":
                await stages.get()
                story = await instance.operations.story(heard.id)
        return "\n".join(reply.draft.text for reply in story.replies)

    return say


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/wrong", Command("wrong")),
        ("/wrong 2", Command("wrong", "2")),
        ("/wrong mem_01hz00000000a", Command("wrong", "mem_01hz00000000a")),
        ("/wrong undo", Command("wrong", "undo")),
        ("/wrong undo mem_01hz00000000a", Command("wrong", "undo mem_01hz00000000a")),
        ("/wrong answer, sorry", None),
        ("/wrong undo that please", None),
    ],
)
def test_talk_about_what_is_wrong_is_no_command(text: str, command: Command | None) -> None:
    assert read_command(text) == command


async def test_what_is_wrong_is_left_out_from_the_next_turn_on_until_that_is_withdrawn(tmp_path: Path) -> None:
    config = Config(channels={"terminal": {"window_ms": 0}}, memory={"deadline_ms": 5_000}, server={"port": 0})
    async with opened(Home.at(tmp_path), config, Reminded()) as instance:
        say = talking(instance)
        boiler = (await instance.services.memories.add(BOILER, "fact")).id
        await instance.start()
        assert await say("/wrong") == "No memory came to mind in the last turns here."
        assert BOILER in await say(QUESTION)
        told = await say("/wrong")
        assert told.startswith(f"Left out here from now on: [fact] {BOILER} ({show('memory', boiler)})")
        assert BOILER not in await say(f"once more: {QUESTION}")
        story = await instance.operations.turn(await instance.operations.last_turn(HERE) or 0)
        assert story is not None
        [use, *_] = await instance.operations.uses(boiler, 99)
        assert isinstance(use.found, dict)
        assert (use.turn_id, use.how, use.found["cause"]) == (story.turn_id, MemoryUse.LEFT_OUT, "wrong")
        assert BOILER in await say("/wrong undo")
        assert await say("/wrong undo") == "Nothing here is said to be wrong."
        assert BOILER in await say(f"and again: {QUESTION}")


async def test_of_several_one_is_named_by_its_number_or_its_name(tmp_path: Path) -> None:
    config = Config(channels={"terminal": {"window_ms": 0}}, memory={"deadline_ms": 5_000}, server={"port": 0})
    async with opened(Home.at(tmp_path), config, Reminded()) as instance:
        say = talking(instance)
        ids = [(await instance.services.memories.add(text, "fact")).id for text in (BOILER, KETTLE)]
        await instance.start()
        await say("when is the boiler serviced, and where does the kettle boil?")
        listed = await say("/wrong")
        assert listed.startswith("Which one? /wrong and its number:\n1. [fact] ")
        number, name = re.findall(rf"(\d)\. \[fact\] {re.escape(KETTLE)} \((mem_\w+)\)", listed)[0]
        assert (await say("/wrong 7")).startswith("7 is not among them.")
        assert KETTLE in await say(f"/wrong {number}")
        shown = await say("so where does the kettle boil, and when is the boiler serviced?")
        assert BOILER in shown
        assert KETTLE not in shown
        assert KETTLE in await say(f"/wrong {name}")
        assert (await say(f"/wrong undo {show('memory', ids[0])}")).endswith("is not left out here.")
        assert KETTLE in await say(f"/wrong undo {name}")
        assert list(await instance.operations.list_active_feedback(HERE)) == []


async def test_the_same_over_http(tmp_path: Path) -> None:
    async with site(tmp_path, memory={"deadline_ms": 5_000}) as here:
        boiler = (await here.instance.services.memories.add(BOILER, "fact")).id
        say = talking(here.instance)
        await say(QUESTION)
        turn_id = await here.instance.operations.last_turn(HERE) or 0
        path, turn = f"/v1/memories/{show('memory', boiler)}/wrong", show("turn", turn_id)
        told = await here.client.post(path, json={"turn": turn}, headers=here.owner)
        assert told.json() == {"memory": show("memory", boiler), "turn": turn, "done": True}
        story = (await here.client.get(f"/v1/turns/{turn}", headers=here.owner)).json()["turn"]
        [said] = story["feedback"]
        assert (said["memory"], said["state"], said["by"]) == (show("memory", boiler), "wrong", PERSON)
        came_up = await here.client.get(f"/v1/memories/{show('memory', boiler)}/turns", headers=here.owner)
        [use] = came_up.json()["uses"]
        assert (use["turn"], use["how"], came_up.json()["feedback"]) == (turn, "injected", [said])
        undone = await here.client.post(path, json={"turn": turn, "undo": True}, headers=here.owner)
        assert undone.json()["done"] is True
        assert not await here.instance.services.memories.record_feedback(boiler, turn_id + 1, undo=False)
        refused(await here.client.post(path, json={"turn": 7}, headers=here.owner), 400)
        refused(await here.client.post(path, json={"turn": turn, "undo": "yes"}, headers=here.owner), 400)
        refused(await here.client.post("/v1/memories/mem_x/wrong", json={"turn": turn}, headers=here.owner), 404)
        refused(await here.client.get("/v1/turns/trn_x", headers=here.owner), 404)
        refused(await here.client.post(path, json={"turn": turn}), 401)


async def test_where_a_memory_came_up_and_why_it_did_not_over_http(tmp_path: Path) -> None:
    async with site(tmp_path, memory={"deadline_ms": 5_000}) as here:
        boiler, other = [
            show("memory", (await here.instance.services.memories.add(text, "fact")).id)
            for text in (BOILER, "Comets have tails of dust.")
        ]
        say = talking(here.instance)
        await say(QUESTION)
        asked = show("turn", await here.instance.operations.last_turn(HERE) or 0)
        await say("/help")
        command = show("turn", await here.instance.operations.last_turn(HERE) or 0)

        async def told(path: str) -> dict[str, Any]:
            answer = await here.client.get(path, headers=here.owner)
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            return found

        assert [use["turn"] for use in (await told(f"/v1/memories/{boiler}/turns"))["uses"]] == [asked]
        never = await told(f"/v1/memories/{other}/turns")
        assert (never["memory"]["id"], never["uses"], never["feedback"]) == (other, [], [])
        shown = await told(f"/v1/turns/{asked}/without/{boiler}")
        assert (shown["turn"], shown["memory"]["id"], shown["absence"]["stage"]) == (asked, boiler, "shown")
        assert (await told(f"/v1/turns/{asked}/without/{other}"))["absence"]["stage"] == "not_found"
        bare = (await told(f"/v1/turns/{command}/without/{boiler}"))["absence"]
        assert bare["stage"] == "not_searched"
        assert "/help is a command, carried out without a model" in bare["why"]
        for path in (
            "/v1/memories/mem_x/turns",
            f"/v1/turns/{asked}/without/mem_x",
            f"/v1/turns/trn_x/without/{boiler}",
        ):
            refused(await here.client.get(path, headers=here.owner), 404)
        for path in (f"/v1/memories/{boiler}/turns", f"/v1/turns/{asked}/without/{boiler}"):
            refused(await here.client.get(path), 401)
