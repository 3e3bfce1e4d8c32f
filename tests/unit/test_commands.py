"""Commands in a chat: which texts are one, who may give it, and that a crash carries it out once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.command import COMMANDS, Command, read_command
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.domain.prompt import Json, LayerShare, in_one_line, shares_of
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.interfaces.pictures import context_bar
from keepsaid.ports.model import Delta, ModelRequest


class Parrot:
    """Says how many records of the lane it was shown, and the last words."""

    name = "test/parrot"

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        delta("")
        return ModelAnswer(f"{len(request.prompt.history)}: {request.prompt.user}", usage=Usage(9, 3), model=self.name)


OWNER = Origin("terminal", "default", "me", "ann", direct=True, trust=Trust.OWNER)
FRIEND = Origin("http", "default", "me", "bob", direct=True, trust=Trust.KNOWN)
IN_GROUP = replace(FRIEND, direct=False)
STRANGER = Origin("http", "default", "me", "eve", trust=Trust.EXTERNAL)

Say = Callable[..., Awaitable[str]]


def talking(instance: Instance) -> Say:
    """Says things, each in a batch with the next, and waits for the reply."""

    async def say(*texts: str, origin: Origin = OWNER) -> str:
        inbounds = [Inbound(origin, Content(text.encode(), text), priority=10) for text in texts]
        *_, last = await asyncio.gather(*(instance.receive(inbound) for inbound in inbounds))
        with instance.hub.listening(last.id) as heard:
            story = await instance.operations.story(last.id)
            while story is None or story.state != "done":
                await heard.get()
                story = await instance.operations.story(last.id)
        return "\n---\n".join(reply.draft.text for reply in story.replies)

    return say


def instance_in(home: Path) -> Config:
    channels = {"terminal": {"window_ms": 100}, "http": {"window_ms": 100}}
    return Config(channels=channels, memory={"injection": "off"}, server={"port": 0})


def rows(home: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(apsw.Connection(str(home / "data" / "buffer.db"))) as db:
        return db.execute(statement).fetchall()


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/reset", Command("reset")),
        (" /Context \n", Command("context")),
        ("/reset@keepsaid_bot", Command("reset")),
        ("/personality set be brief\nand kind", Command("personality", "set be brief\nand kind")),
        ("/personality", Command("personality")),
        ("/rset", Command("reset", known=False)),
        ("/contxt", Command("context", known=False)),
        ("/usr/bin is full", None),
        ("/reset the router please", None),
        ("/help me with this", None),
        ("/personality is what I lack", None),
        ("/tmp", None),
        ("/", None),
        ("/1", None),
        ("//reset", None),
        ("say /reset", None),
        ("```\n/reset\n```", None),
        ("reset", None),
        ("/rset now", None),
        ("", None),
    ],
)
def test_only_what_is_exactly_a_command_is_one(text: str, command: Command | None) -> None:
    assert read_command(text) == command


async def test_a_command_reaches_no_model_and_no_transcript(tmp_path: Path) -> None:
    async with opened(Home.at(tmp_path), instance_in(tmp_path), Parrot()) as instance:
        say = talking(instance)
        await instance.start()
        assert await say("hello") == "0: hello"
        assert "message 1" in await say("/context")
        assert (await say("/hlp")).startswith("There is no such command; did you mean /help?")
        assert (await say("/help")).count("\n") == len(COMMANDS) - 1
        assert "message 1" in await say("/context"), "commands since then asked no model"
        assert await say("//reset") == "2: //reset"
        assert await say("/usr/bin is full") == "4: /usr/bin is full"
        await instance.recorder.catch_up()
        assert (await instance.memories.counts())["episode"] == 6
    told = [
        json.loads(str(row[0])) for row in rows(tmp_path, "SELECT payload FROM journal WHERE topic LIKE 'command.%'")
    ]
    assert told == [
        {"name": "context", "outcome": "done", "arguments": 0},
        {"name": "unknown", "outcome": "unknown", "arguments": 0},
        {"name": "help", "outcome": "done", "arguments": 0},
        {"name": "context", "outcome": "done", "arguments": 0},
    ]
    assert rows(tmp_path, "SELECT count(*) FROM transcript WHERE text LIKE '/h%' OR text = '/context'") == [(0,)]
    assert rows(tmp_path, "SELECT count(*) FROM message") == [(7,)]


async def test_reset_begins_anew_and_keeps_everything(tmp_path: Path) -> None:
    async with opened(Home.at(tmp_path), instance_in(tmp_path), Parrot()) as instance:
        say = talking(instance)
        await instance.start()
        assert await say("one") == "0: one"
        assert await say("two") == "2: two"
        assert (await say("/reset")).startswith("Conversation reset")
        assert await say("three") == "0: three"
        assert await say("four") == "2: four"
    assert rows(tmp_path, "SELECT count(*) FROM transcript") == [(8,)]
    assert rows(tmp_path, "SELECT invalidated_reason FROM session WHERE state = 'ended'") == [("reset",)]


async def test_what_is_said_beside_a_command_is_answered_after_it(tmp_path: Path) -> None:
    async with opened(Home.at(tmp_path), instance_in(tmp_path), Parrot()) as instance:
        say = talking(instance)
        await instance.start()
        await say("one")
        both = await say("/reset", "and now?")
        assert both == "Conversation reset. Everything said so far is still stored and remembered.\n\n0: and now?"
        assert await say("more") == "2: more"


async def test_compact_says_what_came_of_it(tmp_path: Path) -> None:
    async with opened(Home.at(tmp_path), instance_in(tmp_path), Parrot()) as instance:
        say = talking(instance)
        await instance.start()
        assert await say("/compact") == "There was nothing to summarise."


async def test_everyone_sets_his_own_personality_and_the_owner_all(tmp_path: Path) -> None:
    async with opened(Home.at(tmp_path), instance_in(tmp_path), Parrot()) as instance:
        say = talking(instance)
        await instance.start()
        assert await say("/personality set be brief", origin=FRIEND) == "I speak so in this conversation from now on."
        assert await say("/personality", origin=FRIEND) == "be brief\n\n(in this conversation)"
        assert await say("/personality set be kind --person", origin=FRIEND) == "I speak so with you from now on."
        assert await say("/personality reset", origin=FRIEND) == "What was set in this conversation is taken back."
        assert await say("/personality show", origin=FRIEND) == "be kind\n\n(person)"
        assert (await say("/personality set x --global", origin=FRIEND)).startswith("Only the owner")
        assert await say("/personality set --global be plain") == "I speak so with everybody from now on."
        assert await say("/personality") == "be plain\n\n(global)"
        assert await say("/personality set") == "/personality set needs a text."
        assert await say(f"/personality set {'x' * 2_001}") == "A personality may have 2,000 characters."


async def test_in_a_group_strangers_change_nothing(tmp_path: Path) -> None:
    async with opened(Home.at(tmp_path), instance_in(tmp_path), Parrot()) as instance:
        say = talking(instance)
        await instance.start()
        for command in ("/reset", "/compact"):
            assert await say(command, origin=STRANGER) == "In a group only people known to me may do that."
        assert (await say("/reset", origin=IN_GROUP)).startswith("Conversation reset")
        assert (await say("/personality set be rude", origin=IN_GROUP)).startswith("In a group only the owner")


def test_the_bar_of_a_context_is_one_safe_file() -> None:
    trace: Json = {
        "layers": [{"name": "policy", "tokens": 120, "chars": 480, "cut": ""}, {"name": "<b>&", "tokens": 80}]
    }
    shares = shares_of(trace)
    assert shares == (LayerShare("policy", 120, 480), LayerShare("<b>&", 80, 0))
    assert in_one_line(shares, 1_000) == "policy 120 | <b>& 80   about 200 tokens of 1,000 (20 %)"
    picture = context_bar("turn <1>", (*shares, LayerShare("recent", 300, 9, "4 older records left out\x00")), 1_000)
    assert picture.startswith("<svg xmlns=")
    assert "&lt;b&gt;&amp;" in picture
    assert "<b>" not in picture
    assert "prefers-color-scheme: dark" in picture
    assert "4 older records left out" in picture
    assert "500 of 1,000 tokens (50.0 %)" in picture
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")
    assert "\x00" not in picture


async def test_why_says_what_the_last_answer_rests_on(tmp_path: Path) -> None:
    """To the owner alone: a memory is nobody else's business."""
    config = instance_in(tmp_path).model_copy(update={"memory": Config().memory})
    async with opened(Home.at(tmp_path), config, Parrot()) as instance:
        say = talking(instance)
        await instance.start()
        assert await say("/why") == "No message here was answered yet."
        await say("/remember the ferry leaves from pier nine at noon")
        await instance.recorder.catch_up()
        await say("from which pier does the ferry leave at noon?")
        told = await say("/why")
        assert told.startswith("The last message here: forward, because no rule matched; routes.default is forward.")
        assert "came to mind:" in told
        assert "pier nine" in told
        assert "(mem_" in told
        assert "keepsaid inbox why trn_" in told
        for origin in (FRIEND, replace(OWNER, direct=False)):
            assert "Only the owner" in await say("/why", origin=origin)
