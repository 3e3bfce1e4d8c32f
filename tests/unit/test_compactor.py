"""The compactor: beside the turns, each lane once at a time, and nothing that hangs or fails in its way."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.waits import HANG_S

from keepsaid.adapters.models.memory_calls import SUMMARY_TOOL
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.config.conversations import CompactionConfig
from keepsaid.domain.context import HEADINGS
from keepsaid.domain.message import Content, Inbound, Lane, Origin, Trust
from keepsaid.domain.prompt import Prompt, ToolCall
from keepsaid.domain.turn import ModelAnswer
from keepsaid.engine.caretakers import Compactor
from keepsaid.errors import StoreFull
from keepsaid.ports.model import Delta, ModelRequest
from keepsaid.testing.builders import lane_of


class Slow:
    """Compacts when it is let, and says how many lanes it works on."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.asked: list[tuple[Lane, float]] = []
        self.now: Counter[Lane] = Counter()
        self.most = 0
        self.failing: Exception | None = None

    async def compact(self, lane: Lane, share: float = 0.0, *, at_once: bool = False) -> int:
        assert not at_once, "nobody asked"
        self.asked.append((lane, share))
        self.now[lane] += 1
        self.most = max(self.most, self.now.total())
        assert self.now[lane] == 1, "a lane is worked on once at a time"
        try:
            await self.let.wait()
        finally:
            self.now[lane] -= 1
        if self.failing is not None:
            raise self.failing
        return 1


async def worked(compactor: Compactor) -> None:
    """Let the stage work until it has nothing to begin with."""
    while compactor.hint.is_set():
        compactor.hint.clear()
        await compactor.work()
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def test_a_few_lanes_at_once_and_each_only_once() -> None:
    slow = Slow()
    compactor = Compactor(slow, at_once=2)
    for room in ("a", "b", "c"):
        compactor.name(lane_of(room))
    compactor.name(lane_of("a"), 0.5)
    await worked(compactor)
    compactor.name(lane_of("a"), 0.3)
    await worked(compactor)
    assert slow.asked == [(lane_of("a"), 0.5), (lane_of("b"), 0.0)]
    slow.let.set()
    await compactor.settled()
    assert slow.asked[2:] == [(lane_of("c"), 0.0), (lane_of("a"), 0.3)]
    assert slow.most == 2


async def test_what_fails_is_left_and_the_others_go_on() -> None:
    for error in (StoreFull("no space left"), ValueError("odd")):
        slow = Slow()
        slow.failing = error
        slow.let.set()
        compactor = Compactor(slow, at_once=1)
        for room in ("a", "b"):
            compactor.name(lane_of(room))
        await compactor.settled()
        assert len(slow.asked) == 2


async def test_a_stop_leaves_what_is_not_done() -> None:
    slow = Slow()
    compactor = Compactor(slow)
    compactor.name(lane_of())
    await worked(compactor)
    await compactor.stop()
    assert not compactor.busy
    assert slow.now.total() == 0


@dataclass
class Talker:
    """Answers at once; summaries only when it is let."""

    let: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    prompts: list[Prompt] = field(default_factory=list)
    name: str = "test/model"

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        if any(tool.name == SUMMARY_TOOL for tool in request.tools):
            self.asked.set()
            await self.let.wait()
            told = json.dumps({name: [f"the {name} so far"] for name in HEADINGS})
            return ModelAnswer("", (ToolCall("c", SUMMARY_TOOL, told),))
        self.prompts.append(request.prompt)
        return ModelAnswer("ok")


async def say(instance: Instance, text: str) -> Lane:
    """Say something and wait until it is answered."""
    origin = Origin("library", "me", "room", "ann", "Ann", trust=Trust.KNOWN)
    received = await instance.receive(Inbound(origin, Content(text.encode(), text)))
    with instance.hub.listening(received.id) as told:
        story = await instance.operations.story(received.id)
        while story is None or story.state != "done":
            await told.get()
            story = await instance.operations.story(received.id)
    return received.lane


async def test_a_summary_that_hangs_delays_no_turn(tmp_path: Path) -> None:
    model, config = Talker(), Config(compaction=CompactionConfig(messages=2, keep=1), buffer={"window_ms": 0})
    async with asyncio.timeout(HANG_S), opened(Home.at(tmp_path), config, model) as instance:
        await instance.start()
        for n in range(3):
            lane = await say(instance, f"say {n}")
        await model.asked.wait()
        for n in range(3, 6):
            await say(instance, f"say {n}")
        assert [prompt.summary for prompt in model.prompts] == [""] * 6
        model.let.set()
        await instance.compactor.settled()
        assert (await instance.operations.context(lane, 99)).summary is not None
        await say(instance, "and now?")
        last = model.prompts[-1]
        assert "the decisions so far" in last.summary
        assert "say 0" not in [record.text for record in last.history]
