"""`/forget` asks first, is the owner's alone, and never becomes part of the talk; the tool forgets nothing itself."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.command import Command, read_command
from keepsaid.domain.ids import show
from keepsaid.domain.memory import Listener
from keepsaid.domain.message import Content, Inbound, Lane, Origin, Trust, lane_key
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.errors import ToolError
from keepsaid.memory.forgetting import memory_forget
from keepsaid.ports.model import Delta, ModelRequest

OWNER = Origin("terminal", "default", "me", "ann", direct=True, trust=Trust.OWNER)
HERE = Lane("terminal", "default", "me", lane_key("me"))
ANYWHERE = Listener(None, everything=True)
SECRET = "my locker code is zebraquix"


class Listening:
    """Says that it heard."""

    name = "test/listening"

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        delta("")
        return ModelAnswer("I heard you", usage=Usage(9, 3), model=self.name)


async def say(instance: Instance, text: str, origin: Origin = OWNER) -> str:
    """Say something; returns what was answered."""
    heard = await instance.receive(Inbound(origin, Content(text.encode(), text), priority=10))
    with instance.hub.listening(heard.id) as stages:
        story = await instance.operations.story(heard.id)
        while story is None or story.state != "done":
            await stages.get()
            story = await instance.operations.story(heard.id)
    await instance.recorder.catch_up()
    return "\n".join(reply.draft.text for reply in story.replies)


async def remembered(instance: Instance) -> list[str]:
    """What was said, as memory has it."""
    found = await instance.memories.find(ANYWHERE, (), 50)
    return [one.text for one in found if one.new.key.startswith("message:")]


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/forget", Command("forget")),
        ("/forget that", Command("forget", "that")),
        ("/forget mem_01hz00000000a", Command("forget", "mem_01hz00000000a")),
        ("/forget msg_01hz00000000a yes", Command("forget", "msg_01hz00000000a yes")),
        ("/forget mem_nope", Command("forget", "mem_nope", misused=True)),
        ("/undo foo", Command("undo", "foo", misused=True)),
        ("/pause now", Command("pause", "now", misused=True)),
        ("/help me!", None),
        ("/forget yes", Command("forget", "yes")),
        ("/forget that I ever said so", Command("forget", "that I ever said so", misused=True)),
        ("/forget that yes", Command("forget", "that yes", misused=True)),
        ("/forget my dog?", None),
    ],
)
def test_talk_about_forgetting_is_no_command(text: str, command: Command | None) -> None:
    assert read_command(text) == command


async def test_it_is_forgotten_once_it_is_confirmed(tmp_path: Path) -> None:
    config = Config(channels={"terminal": {"window_ms": 0}}, server={"port": 0})
    async with opened(Home.at(tmp_path), config, Listening()) as instance:
        await instance.start()
        await say(instance, "the dentist is in Braga")
        await say(instance, SECRET)
        asked = await say(instance, "/forget that")
        assert SECRET in await remembered(instance)
        confirm = re.search(r"/forget msg_\w{13} yes", asked)
        assert confirm, asked
        await say(instance, "/status")
        assert (await say(instance, "/forget yes")).startswith("No question waits for a yes here.")
        assert SECRET in await remembered(instance)
        assert await say(instance, "/forget that") == asked
        assert await say(instance, "/forget yes") == "It is forgotten."
        assert (await say(instance, "/forget yes")).startswith("No question waits for a yes here.")
        assert await remembered(instance) == ["the dentist is in Braga"]
        tail = await instance.operations.context(HERE, 50)
        assert [one.text for one in tail.recent.records] == ["the dentist is in Braga", "I heard you"]
        assert await say(instance, confirm[0]) == "It is forgotten."
        for gone in ("msg_0000000000001", "msg_0000000000001 yes"):
            assert await say(instance, f"/forget {gone}") == "There is no msg_0000000000001."
        assert (await say(instance, "/forget mem_nope")).startswith("There is no mem_nope.")
        assert (await say(instance, "/forget Rex")).startswith("/forget does not take 'Rex'.\n/forget: delete for good")
        assert await remembered(instance) == ["the dentist is in Braga"]
        group = replace(OWNER, direct=False, conversation="room")
        stranger = replace(OWNER, trust=Trust.KNOWN, sender="bob", conversation="bob")
        for origin in (group, stranger):
            assert "Only the owner" in await say(instance, "/forget that", origin)


async def test_what_was_said_last_is_meant_though_it_waits_for_its_answer(tmp_path: Path) -> None:
    config = Config(channels={"terminal": {"window_ms": 0}}, server={"port": 0})
    async with opened(Home.at(tmp_path), config, Listening()) as instance:
        await instance.start()
        await say(instance, "the dentist is in Braga")
        await say(instance, "/pause")
        waiting = await instance.receive(Inbound(OWNER, Content(SECRET.encode(), SECRET)))
        asked = await say(instance, "/forget that")
        assert f"/forget {show('message', waiting.id)} yes" in asked
        assert re.match(r"This deletes what was said at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \(\d words?\): ", asked)
        await instance.receive(Inbound(OWNER, Content(b"the train leaves at nine", "the train leaves at nine")))
        assert await say(instance, "/forget yes") == "It is forgotten."
        await say(instance, "/resume")
        await say(instance, "and now?")
        assert "the train leaves at nine" in await remembered(instance)
        assert SECRET not in await remembered(instance)


async def test_the_tool_tells_what_to_confirm_and_changes_nothing(tmp_path: Path) -> None:
    async with opened(Home.at(tmp_path), Config(channels={"terminal": {"window_ms": 0}}), Listening()) as instance:
        await instance.start()
        await say(instance, SECRET)
        [memory] = [one for one in await instance.memories.find(ANYWHERE, (), 9) if one.text == SECRET]
        name = show("memory", memory.id)
        hears = Listener(HERE, "owner", direct=True)
        tool = memory_forget(instance.memories, instance.forgetter, hears)
        assert f"/forget {name} yes" in await tool.run({"id": name})
        assert SECRET in await remembered(instance)
        assert await instance.operations.forgettings.newest(1) == []
        deaf = memory_forget(instance.memories, instance.forgetter, Listener(Lane("x", "y", "z", "root:z")))
        with pytest.raises(ToolError, match="there is no memory"):
            await deaf.run({"id": name})
