"""`/remember` and `/undo`: what a person has stored, where it is visible, and how it is taken back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.ids import show
from keepsaid.domain.memory import Kind, Listener
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.domain.prompt import ToolCall
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.interfaces.shapes import story_shape
from keepsaid.ports.model import Delta, ModelRequest
from keepsaid.services.memories import OWNER_HEARS

OWNER = Origin("terminal", "default", "me", "ann", direct=True, trust=Trust.OWNER)
FRIEND = Origin("http", "default", "bob", "bob", direct=True, trust=Trust.KNOWN)
FRIEND_IN_GROUP = replace(FRIEND, conversation="team", direct=False)
STRANGER = Origin("http", "default", "eve", "eve", direct=True, trust=Trust.EXTERNAL)


class Saving:
    """Saves with its tool where the speaker lives, if the message says so; then answers."""

    name = "test/saving"

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        delta("")
        said = request.prompt.user
        if not request.exchange and "live in" in said:
            city = said.rpartition(" ")[2]
            text = {"text": f"Ann lives in {city}", "subject": "Ann", "attribute": "lives in", "value": city}
            return ModelAnswer("", (ToolCall("1", "memory_save", _json(text)),), Usage(9, 3), self.name)
        return ModelAnswer("noted", usage=Usage(9, 3), model=self.name)


def _json(text: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": "{value}"' for name, value in text.items()) + "}"


@asynccontextmanager
async def running(home: Path) -> AsyncIterator[Instance]:
    async with opened(Home.at(home), Config(server={"port": 0}), Saving()) as instance:
        await instance.start()
        yield instance


async def tell(instance: Instance, text: str, origin: Origin = OWNER) -> dict[str, Any]:
    """Say something; returns the story of the message as clients read it."""
    asked = await instance.services.asking.ask(Inbound(origin, Content(text.encode(), text), priority=10))
    return story_shape(asked.story)


async def say(instance: Instance, text: str, origin: Origin = OWNER) -> str:
    """Say something; returns the answer."""
    return "\n".join(reply["text"] for reply in (await tell(instance, text, origin))["replies"])


async def facts(instance: Instance, listener: Listener = OWNER_HEARS) -> list[tuple[str, str]]:
    """Active facts with their scopes, newest first."""
    found = await instance.memories.find(listener, (), 50)
    return [(one.text, one.new.scope) for one in found if one.new.kind == "fact"]


async def test_the_same_text_is_remembered_once_and_holds_no_secret(tmp_path: Path) -> None:
    async with running(tmp_path) as instance:
        text = "the spare key is under the blue pot"
        assert await say(instance, f"/remember {text}") == f"remembered: [fact] {text}   undo: /undo"
        assert await say(instance, f"/remember {text}") == f"already remembered: [fact] {text}"
        assert await facts(instance) == [(text, "person:owner")]
        secret = "sk-ant-api03-" + "Ab1" * 31
        answer = await say(instance, f"/remember the key of the model is {secret}")
        assert answer.startswith("remembered: [fact] the key of the model is")
        assert secret not in answer
        assert all(secret not in one for one, _ in await facts(instance))
        assert (await say(instance, "/remember")).startswith("/remember takes a text")
        assert await say(instance, "/remember ok thanks") == "Not remembered: it is small talk."
        await instance.recorder.catch_up()
        assert (await instance.memories.counts()).get("episode", 0) == 0


async def test_others_remember_for_their_own_direct_chat_and_strangers_do_not(tmp_path: Path) -> None:
    async with running(tmp_path) as instance:
        assert (await say(instance, "/remember my desk is by the window", FRIEND_IN_GROUP)).startswith("remembered")
        assert await facts(instance) == [("my desk is by the window", "person:http:default:bob")]
        assert await say(instance, "/remember the code is 1234", STRANGER) == "Only people known to me may do that."
        assert (await say(instance, "/undo", FRIEND)).startswith("There is nothing to undo")
        assert await say(instance, "/undo", FRIEND_IN_GROUP) == "undone: [fact] my desk is by the window"


async def test_undo_takes_back_one_memory_after_the_other(tmp_path: Path) -> None:
    async with running(tmp_path) as instance:
        await say(instance, "/remember the spare key is under the blue pot")
        await say(instance, "I live in Porto")
        await say(instance, "I live in Lisbon")
        first, *_ = (await say(instance, "/undo")).splitlines()
        assert first == "undone: [fact] Ann lives in Lisbon"
        assert [one for one, _ in await facts(instance)] == [
            "Ann lives in Porto",
            "the spare key is under the blue pot",
        ]
        undone, stays = (await say(instance, "/undo")).splitlines()
        assert undone == "undone: [fact] Ann lives in Porto"
        assert stays.startswith("What was said stays; to delete it: /forget msg_")
        assert await say(instance, "/undo") == "undone: [fact] the spare key is under the blue pot"
        assert (await say(instance, "/undo")).startswith("There is nothing to undo")
        assert await facts(instance) == []
        assert (await say(instance, "/remember the spare key is under the blue pot")).startswith("remembered")
        assert [one for one, _ in await facts(instance)] == ["the spare key is under the blue pot"]


async def test_undo_makes_a_replaced_fact_active_again_and_says_so(tmp_path: Path) -> None:
    async with running(tmp_path) as instance:
        old = (await tell(instance, "I live in Porto"))["remembered"]
        assert [(one["kind"], one["text"], one["replaces"]) for one in old] == [("fact", "Ann lives in Porto", [])]
        story = await tell(instance, "I live in Lisbon")
        [new] = story["remembered"]
        assert (new["text"], new["replaces"]) == ("Ann lives in Lisbon", [old[0]["id"]])
        undone = await say(instance, "/undo")
        what = f"undone: [fact] Ann lives in Lisbon\nactive again: [fact] Ann lives in Porto ({old[0]['id']})"
        assert undone == f"{what}\nWhat was said stays; to delete it: /forget {story['id']}"
        assert [show("memory", one.id) for one in await instance.memories.find(OWNER_HEARS, (Kind.FACT,), 9)] == [
            old[0]["id"]
        ]


async def test_the_story_of_a_command_names_what_it_stored(tmp_path: Path) -> None:
    async with running(tmp_path) as instance:
        story = await tell(instance, "/remember the shop opens at nine")
        [one] = story["remembered"]
        assert (one["kind"], one["text"], one["replaces"]) == ("fact", "the shop opens at nine", [])
        assert (await tell(instance, "hello there"))["remembered"] == []


async def test_status_and_inbox_are_the_owners_alone(tmp_path: Path) -> None:
    async with running(tmp_path) as instance:
        assert await say(instance, "/status") == "Running: nothing waits."
        assert await say(instance, "/inbox") == "No message waits."
        for command in ("/status", "/inbox"):
            answer = await say(instance, command, FRIEND)
            assert answer == "Only the owner may see that, in a chat between the two of us."
