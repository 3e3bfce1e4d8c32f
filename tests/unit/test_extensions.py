"""Extensions in a running instance: their channels, tools and texts work, over restarts; what is broken is left out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.extension_cast import lifecycle, put, put_broken, put_folder
from tests.unit.golden_prompts import EVERYTHING
from tests.waits import HANG_S

from keepsaid import InputError
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Home, load
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.domain.scene import Contribution, TurnContext
from keepsaid.domain.trust import UNKEYED
from keepsaid.errors import ExtensionError
from keepsaid.extensions import loaded
from keepsaid.extensions.contributions import ExtensionContributions
from keepsaid.pipeline.prompt.layers import extensions
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.model_script import Call, Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.recording_runtime import RecordingRuntime

SETTINGS: dict[str, Any] = {
    "models": {"chat": "none"},
    "buffer": {"window_ms": 0},
    "bulletin": {"enabled": False},
    "collection": {"extractor": "none"},
}

POSTBOX = '''
import asyncio
from keepsaid.extensions import Incoming

@extension(id="postbox", channel={"window_ms": 0})
class Postbox:
    """A medium in memory."""

    async def initialize(self, context):
        self.arrived, self.sent, self.news = asyncio.Queue(), [], asyncio.Event()
        self.context = context

    async def listen(self, inbox):
        while True:
            await inbox.put(await self.arrived.get())

    async def stream(self, lane, piece):
        self.pieces = [*getattr(self, "pieces", ()), piece]

    async def send(self, reply):
        self.sent.append(reply.draft.text)
        self.news.set()
'''

DICE = '''
@extension(id="dice", secrets={"token": "DICE_TOKEN"})
class Dice:
    """Rolls dice."""

    async def initialize(self, context):
        context.log.warning("the token is %s", context.secret("token"))

    @tool(kind="pure", chars_max=12)
    async def roll(self, sides: int = 6) -> str:
        """Roll one die."""
        return f"{sides} sides, it shows 4"

    @context(priority=20)
    async def weather(self, claimed):
        return "It rains."
'''


@asynccontextmanager
async def runtime(folder: Path, settings: dict[str, Any] | None = None) -> AsyncIterator[Instance]:
    """An instance at work in a home."""
    home = Home.at(folder)
    config, _ = load(home.config_file, settings or SETTINGS)
    async with opened(home, config) as instance:
        await instance.start()
        yield instance


def made(instance: Instance, id_: str) -> Any:
    """The object of an extension."""
    return instance.extending.lifecycle.guests[id_].made


async def test_a_channel_hears_and_answers_with_a_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DICE_TOKEN", "tok-3f9a77c2b1")
    home = Home.at(tmp_path)
    put(home.extensions, "postbox", POSTBOX)
    put(home.extensions, "dice", DICE)
    put_broken(home.extensions, but="hangs_start")
    script = Script(Call("roll", {"sides": 20}), Say("It shows 4."))
    async with ModelServer(script) as server:
        models = {"chat": "openai/any", "base_url": server.url}
        async with runtime(tmp_path, {**SETTINGS, "models": models}) as instance:
            postbox = made(instance, "postbox")
            incoming = __import__("keepsaid.extensions").extensions.Incoming
            await postbox.arrived.put(incoming("roll a die", "ann", "room", "one"))
            await asyncio.wait_for(postbox.news.wait(), HANG_S)
        requests = await server.wait_for(2)
    assert postbox.sent == ["It shows 4."]
    assert "".join(postbox.pieces).endswith("It shows 4.")
    assert postbox.pieces[-1] == ""
    assert "roll" in requests[0].tool_names
    assert "It rains." in requests[0].raw.decode()
    said = requests[1].last("tool")
    assert said.startswith("20 sides")
    assert len(said) <= 12


async def test_the_account_tells_another_process_what_became_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LEAK_TOKEN", "tok-3f9a77c2b1")
    home = Home.at(tmp_path)
    source = """
    @extension(id='leak', secrets={'token': 'LEAK_TOKEN'})
    class A:
        async def initialize(self, context): raise ValueError(context.secret('token'))
    """
    put(home.extensions, "leak", source)
    put(home.extensions, "good", "@extension(id='good')\nclass A: ...\n")
    async with runtime(tmp_path):
        told = loaded.read(home.extensions_file)
    assert [told[name]["state"] for name in ("good", "leak")] == ["active", "quarantined"]
    assert told["leak"]["phase"] == "initialize"
    assert "ValueError" in told["leak"]["reason"]
    assert "tok-3f9a77c2b1" not in home.extensions_file.read_text("utf-8")
    assert "tok-3f9a77c2b1" not in caplog.text


async def test_a_subscription_outlives_the_process(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    source = """
    import asyncio

    @extension(id='ear')
    class Ear:
        heard = asyncio.Queue()

        @on('deploy.*')
        async def deployed(self, event):
            await self.heard.put(event.payload['build'])
    """
    file = put(home.extensions, "ear", source)
    async with runtime(tmp_path) as instance:
        await instance.telling.emit("deploy.finished", {"build": 1})
        assert await asyncio.wait_for(made(instance, "ear").heard.get(), HANG_S) == 1
    file.rename(file.with_suffix(".off"))
    async with runtime(tmp_path) as instance:
        assert "ear" not in instance.extending.lifecycle.guests
        await instance.telling.emit("deploy.finished", {"build": 2})
    file.with_suffix(".off").rename(file)
    async with runtime(tmp_path) as instance:
        assert await asyncio.wait_for(made(instance, "ear").heard.get(), HANG_S) == 2


async def test_a_user_message_goes_into_the_buffer_once(tmp_path: Path) -> None:
    put(Home.at(tmp_path).extensions, "postbox", POSTBOX)
    async with runtime(tmp_path) as instance:
        emit = made(instance, "postbox").context.emit
        said = {"text": "hello", "user_id": "ann", "channel_id": "postbox"}
        for _ in range(2):
            await emit("user.message", said, "delivery-1")
        seen = await instance.operations.overview()
        assert seen.messages == 1
        with pytest.raises(InputError, match="terminal is not a channel of an extension"):
            await emit("user.message", {**said, "channel_id": "terminal"})
        with pytest.raises(InputError, match="needs text and user_id"):
            await emit("user.message", {"text": "hello"})


async def test_a_text_for_the_prompt_that_fails_is_left_out_and_named(tmp_path: Path) -> None:
    source = """
    import asyncio

    @extension(id='slow')
    class A:
        hangs = True

        @context()
        async def a_snow(self, claimed): return "It snows."

        @context()
        async def about(self, claimed):
            if self.hangs:
                await asyncio.Event().wait()
            return "It hails."

        @context()
        async def broken(self, claimed): raise ValueError("not today")
    """
    put(tmp_path / "x", "slow", source)
    put(tmp_path / "x", "dice", DICE.replace("context.secret", "str"))
    life = lifecycle(tmp_path / "x", RecordingRuntime())
    await life.begin()
    clock, noted = VirtualClock(), list[str]()
    offers = ExtensionContributions(lambda: life.active, clock, lambda: noted.append("noted"), limit_s=0.01)
    added = await offers.contribute(EVERYTHING.claimed)
    assert [(one.name, one.text, one.missing) for one in added] == [
        ("dice", "It rains.", ""),
        ("slow", "It snows.", ""),
        ("slow", "", "it took longer than 0.01 s"),
        ("slow", "", "ValueError"),
    ]
    above, _ = extensions(replace(EVERYTHING, turn=TurnContext(contributions=added)), 1_000, UNKEYED)
    assert ("It rains." in above.text, "It snows." in above.text) == (True, True)
    assert above.cut == "left out: slow (it took longer than 0.01 s), slow (ValueError)"
    for _ in range(3):
        [hung] = [one for one in await offers.contribute(EVERYTHING.claimed) if "long" in one.missing]
    slow = life.guests["slow"]
    assert (hung.missing, len(noted)) == ("it took too long three times", 1)
    [note] = loaded.shape_of(slow)["notes"]
    assert note == "about took too long three times; prompts do without it for 10 min at a time"
    slow.made.hangs = False
    await clock.advance(600_001)
    again = [one.text for one in await offers.contribute(EVERYTHING.claimed) if one.name == "slow"]
    assert (again, slow.notes, len(noted)) == (["It snows.", "It hails.", ""], {}, 2)


def test_a_text_that_is_too_long_leaves_room_for_others() -> None:
    added = tuple(Contribution(name, name * size, 10) for name, size in (("a", 20), ("b", 2_000), ("c", 20)))
    above, _ = extensions(replace(EVERYTHING, turn=TurnContext(contributions=added)), 1_000, UNKEYED)
    assert ("a" * 20 in above.text, "b" * 20 in above.text, "c" * 20 in above.text) == (True, False, True)
    assert above.cut == "left out: b"


async def test_the_owner_is_told_in_his_direct_chat_by_an_event(tmp_path: Path) -> None:
    manifest = """
    id: herald
    api: 1
    agent: {instructions: Say what happened.}
    events:
      subscribes:
        - {topic: deploy.finished, handler: notify_user}
    """
    put_folder(Home.at(tmp_path).extensions, "herald", manifest)
    async with runtime(tmp_path) as instance:
        with pytest.raises(ExtensionError, match="the owner has not written here yet"):
            await instance.extending.host.notify("herald", "early", "")
        owner = Origin("terminal", "default", "terminal", "owner", direct=True, trust=Trust.OWNER)
        await instance.receive(Inbound(owner, Content(b"hello", "hello")))
        await instance.telling.emit("deploy.finished", {"text": "The deploy is done."})
        async with asyncio.timeout(HANG_S):
            while not any(one.draft.notice for one in await instance.operations.unseen("terminal", "terminal")):
                await instance.clock.wait(asyncio.Event(), 20)
        notices = [one for one in await instance.operations.unseen("terminal", "terminal") if one.draft.notice]
        assert [one.draft.text for one in notices] == ["The deploy is done."]


async def test_the_core_comes_in_through_the_same_door(tmp_path: Path) -> None:
    async with runtime(tmp_path) as instance:
        by_id = {one.id: one for one in instance.extending.lifecycle.active}
        assert set(by_id) == {"terminal", "http", "github", "memory", "memory_consolidator"}
        assert by_id["memory_consolidator"].manifest.depends_on == ("memory",)
        assert set(instance.channels) == {"terminal", "http", "library", "github"}
        assert set(instance.hooks) == {"github"}
        names = {tool.name for tool in instance.extending.offers.tools(EVERYTHING.claimed)[0]}
        assert "memory_search" in names
        assert not Home.at(tmp_path).extensions_file.exists()


async def test_a_part_of_the_core_that_is_off_takes_what_depends_on_it_with_it(tmp_path: Path) -> None:
    settings = {**SETTINGS, "extensions": {"memory": {"enabled": False}, "github": {"enabled": False}}}
    async with runtime(tmp_path, settings) as instance:
        guests = instance.extending.lifecycle.guests
        assert instance.extending.offers.tools(EVERYTHING.claimed) == ((), ())
        fault = guests["memory_consolidator"].fault
        assert fault is not None
        assert fault.reason == "it depends on memory: it is off"
        assert (set(instance.hooks), "http" in instance.channels) == (set(), True)


async def test_a_built_in_one_cannot_be_replaced_by_its_name(tmp_path: Path) -> None:
    put(Home.at(tmp_path).extensions, "memory", "@extension(id='memory')\nclass A: ...\n")
    async with runtime(tmp_path) as instance:
        fault = instance.extending.lifecycle.guests["memory@folder:memory.py"].fault
        assert fault is not None
        assert fault.reason.startswith("its id memory is taken: built-in")
        assert instance.extending.lifecycle.guests["memory"].active


async def test_schedules_of_extensions_come_and_go_with_them(tmp_path: Path) -> None:
    source = """
    @extension(id='clock')
    class Clock:
        @schedule(cron='0 3 * * *')
        async def nightly(self): self.ran = True

        @schedule(name='often', every_s=60)
        async def beat(self): ...
    """
    put(Home.at(tmp_path).extensions, "clock", source)
    async with runtime(tmp_path) as instance:
        found = await instance.services.schedules.view.schedules(("active",), 0, 10)
        assert {(one.new.source, one.new.name, one.new.text) for one in found if one.new.source != "core"} == {
            ("ext:clock", "nightly", "ext:clock:nightly"),
            ("ext:clock", "often", "ext:clock:often"),
        }
        nightly = next(one for one in found if one.new.name == "nightly")
        assert await instance.services.schedules.run(nightly)
        async with asyncio.timeout(HANG_S):
            while not hasattr(made(instance, "clock"), "ran"):
                await instance.clock.wait(asyncio.Event(), 20)
    async with runtime(tmp_path, {**SETTINGS, "extensions": {"clock": {"enabled": False}}}) as instance:
        found = await instance.services.schedules.view.schedules(("active",), 0, 10)
        assert [one for one in found if one.new.source == "ext:clock"] == []


async def test_replies_of_a_channel_that_is_quarantined_wait_until_it_is_back(tmp_path: Path) -> None:
    folder = Home.at(tmp_path).extensions
    put(folder, "postbox", POSTBOX + "\n    async def start(self): raise ValueError\n")
    async with runtime(tmp_path) as instance:
        assert not instance.extending.lifecycle.guests["postbox"].active
        ann = Origin("postbox", "default", "room", "ann", trust=Trust.KNOWN)
        await instance.receive(Inbound(ann, Content(b"hello", "hello")))
        async with asyncio.timeout(HANG_S):
            while not (await instance.operations.overview()).replies:
                await instance.clock.wait(asyncio.Event(), 20)
        assert (await instance.operations.overview()).replies == {"pending": 1}
    put(folder, "postbox", POSTBOX)
    async with runtime(tmp_path) as instance:
        await asyncio.wait_for(made(instance, "postbox").news.wait(), HANG_S)
        assert len(made(instance, "postbox").sent) == 1
