"""What a lane is told of the other lanes of its conversation: their summaries, where the config wants them shown."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tests.waits import HANG_S

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.config.conversations import CompactionConfig
from keepsaid.domain.compaction import CutContext, CutReason, Summarise
from keepsaid.domain.context import Made, Sections, read, written
from keepsaid.domain.message import Content, Inbound, Lane, Origin, Trust
from keepsaid.domain.prompt import Prompt
from keepsaid.domain.turn import ModelAnswer
from keepsaid.memory.summaries import OtherLanes, WholeTerms
from keepsaid.ports.model import Delta, ModelRequest
from keepsaid.testing.builders import said
from keepsaid_testkit.contracts.store_driver import StoreDriver


def in_thread(topic: str, text: str = "hello", trust: Trust = Trust.KNOWN) -> Inbound:
    one = said(text)
    return replace(one, origin=replace(one.origin, trust=trust), topic=topic)


def thread(topic: str) -> Lane:
    return in_thread(topic).lane


class Conversation:
    """A conversation whose lanes hold eight records each; a summary stands for the first two."""

    def __init__(self, messages: int = 4) -> None:
        self.store = InMemoryOperations()
        self.road = StoreDriver(self.store)
        self.other_lanes = OtherLanes(self.store, WholeTerms(messages=messages, keep=2))

    async def begin(self, *topics: str, trust: Trust = Trust.KNOWN) -> None:
        for topic in topics:
            for n in range(4):
                await self.road.settle(in_thread(topic, f"say {n}", trust))
            await self.summarise(topic, 0, 2)

    async def summarise(self, topic: str, seen: int, last: int) -> None:
        text = written(Sections(facts=(f"{topic} up to {last}",)), Made.MODEL, 1_000)
        assert await self.store.apply(Summarise(thread(topic), seen, last, text, Made.MODEL, "m/1", 40))

    async def cut(self, topic: str, seen: int, last: int, why: CutReason) -> None:
        assert await self.store.apply(CutContext(thread(topic), seen, last, why, 50))

    async def facts(self, topic: str) -> tuple[str, ...]:
        return read(await self.other_lanes.render_other_lanes(thread(topic))).facts


async def test_a_lane_is_told_what_the_others_summarised() -> None:
    conversation = Conversation()
    await conversation.begin("a", "b", "c")
    assert await conversation.facts("a") == ("b up to 2", "c up to 2")
    assert await conversation.facts("new") == ("a up to 2", "b up to 2", "c up to 2")


async def test_a_conversation_of_one_lane_or_of_few_words_has_nothing_to_tell() -> None:
    conversation = Conversation(messages=3)
    await conversation.begin("a")
    assert await conversation.other_lanes.render_other_lanes(thread("b")) == "", (
        "two messages were taken in, three are wanted"
    )
    await conversation.summarise("a", 1, 6)
    assert await conversation.facts("b") == ("a up to 6",)
    assert await conversation.other_lanes.render_other_lanes(thread("a")) == ""


async def test_lanes_that_hold_words_from_outside_stay_out() -> None:
    conversation = Conversation()
    await conversation.begin("a", "b")
    await conversation.begin("outside", trust=Trust.EXTERNAL)
    assert await conversation.facts("a") == ("b up to 2",)


async def test_a_lane_that_began_anew_is_told_of_no_longer() -> None:
    conversation = Conversation()
    await conversation.begin("a", "b", "c")
    await conversation.cut("b", 1, 4, CutReason.GUARD)
    assert await conversation.facts("a") == ("b up to 2", "c up to 2"), "what did not fit is no reset"
    await conversation.cut("b", 2, 8, CutReason.RESET)
    assert await conversation.facts("a") == ("c up to 2",)
    for n in range(2):
        await conversation.road.settle(in_thread("b", f"anew {n}"))
    await conversation.summarise("b", 3, 10)
    assert await conversation.facts("a") == ("b up to 10", "c up to 2")


class Witness:
    """Says yes, and keeps what it was shown."""

    name = "test/witness"

    def __init__(self) -> None:
        self.shown: list[Prompt] = []

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        self.shown.append(request.prompt)
        return ModelAnswer("yes", model=self.name)


@pytest.mark.parametrize("wanted", [True, False])
async def test_it_stands_in_the_prompt_where_the_config_wants_it(tmp_path: Path, *, wanted: bool) -> None:
    terms = CompactionConfig(session_in_prompt=wanted, session_messages=2, session_keep=0)
    config = Config(compaction=terms, buffer={"window_ms": 0}, memory={"injection": "off"})
    model = Witness()
    async with asyncio.timeout(HANG_S), opened(Home.at(tmp_path), config, model) as instance:
        await instance.start()

        async def say(topic: str) -> Lane:
            origin = Origin("library", "me", "room", "ann", "Ann", trust=Trust.KNOWN)
            received = await instance.receive(Inbound(origin, Content(b"hi", "hi"), topic=topic))
            with instance.hub.listening(received.id) as told:
                story = await instance.operations.story(received.id)
                while story is None or story.state != "done":
                    await told.get()
                    story = await instance.operations.story(received.id)
            return received.lane

        boats = await say("boats")
        text = written(Sections(facts=("the boat is sold",)), Made.MODEL, 1_000)
        assert await instance.operations.apply(Summarise(boats, 0, 2, text, Made.MODEL, "m/1", 1))
        for topic in ("cars", "cars", "boats"):
            await say(topic)
    _, first, second, own = model.shown
    assert ("the boat is sold" in first.session_summary) is wanted
    assert first.session_summary == second.session_summary
    assert own.session_summary == ""
    assert "the boat is sold" in own.summary
