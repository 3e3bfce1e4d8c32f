"""The road on a virtual clock: windows, batches, verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.batch import Window
from keepsaid.domain.commits import Commit, Dispatch
from keepsaid.domain.memory import Injection
from keepsaid.domain.message import SYSTEM, Content, Inbound, Origin, ProviderMarks, Trust
from keepsaid.domain.process import VoidLeases
from keepsaid.domain.prompt import Role
from keepsaid.domain.route import Action, Routes, Rule
from keepsaid.domain.turn import ClaimedBatch, ModelAnswer, Recent, Usage
from keepsaid.domain.views import MessageFilter
from keepsaid.engine.supervisor import ServiceLoop, keep_going
from keepsaid.errors import InputError, StoreBroken
from keepsaid.pipeline.answering import AgentDeps, PipelineSettings
from keepsaid.pipeline.intake import IntakeLimits, MessageIntake
from keepsaid.pipeline.leasing import Leases, LeaseTerms
from keepsaid.pipeline.runner import MessagePipeline
from keepsaid.ports.model import Delta, ModelRequest, Tool
from keepsaid.services.inbox import ProgressHub
from keepsaid.testing.clock import CountingIds, VirtualClock

GITHUB = Window(3_000, 3_000, 15_000)
REVIEW = Rule("review", {"channel": ("github",)}, Action.SPAWN, task="{{count}} events of {{number}}")


class Nothing:
    """Stands for memory, identity and model where the road ends at the router."""

    name = "none"

    async def remind(self, claimed: ClaimedBatch, recent: Awaitable[Recent]) -> Injection:
        return Injection()

    async def read(self) -> str:
        return ""

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        return ModelAnswer("ok", usage=Usage(1, 1), model="none")


def no_tools(claimed: ClaimedBatch) -> Sequence[Tool]:
    return ()


@dataclass
class Road:
    clock: VirtualClock = field(default_factory=VirtualClock)
    store: InMemoryOperations = field(default_factory=InMemoryOperations)
    routes: Routes = field(default_factory=lambda: Routes((REVIEW,)))
    windows: dict[str, Window] = field(
        default_factory=lambda: {"github": GITHUB, "chat": Window(), "terminal": Window(0)}
    )

    ids: CountingIds = field(default_factory=CountingIds)
    model: Nothing = field(default_factory=Nothing)

    def __post_init__(self) -> None:
        nothing = Nothing()
        mind = AgentDeps(self.model, nothing, nothing, no_tools, ProgressHub())
        course = PipelineSettings(self.routes, self.windows)
        self.flow = MessagePipeline(self.store, mind, course, self.clock, self.ids)
        self.door = MessageIntake(self.store, self.clock, self.ids, self.windows, IntakeLimits())

    async def restarted(self) -> Road:
        """The next process over the same store, after this one was killed."""
        clock = VirtualClock(self.clock.now_ms())
        await self.store.apply(VoidLeases("next", clock.now_ms(), "", ()))
        return replace(self, clock=clock)

    @asynccontextmanager
    async def routing(self) -> AsyncIterator[None]:
        """Keep the route stage going."""
        failures: list[StoreBroken] = []
        stage = ServiceLoop("route", self.flow.route, self.flow.hints.route)
        task = asyncio.create_task(keep_going(stage, self.clock, failures.append))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert not failures

    async def say(self, text: str, *, channel: str = "chat", room: str = "room", priority: int = 10) -> None:
        origin = Origin(channel, "me", room, "ann", trust=Trust.KNOWN)
        await self.flow.receive(self.door, Inbound(origin, Content(text.encode(), text), ProviderMarks(), priority))

    async def event(self, n: int) -> None:
        origin = Origin("github", "me", "github:acme/api#77", "1", trust=Trust.EXTERNAL)
        content = Content(b'{"number": 77}', f"event {n}", "pull_request.edited")
        await self.flow.receive(self.door, Inbound(origin, content, ProviderMarks(f"guid-{n}"), 50))

    async def batches(self) -> list[list[str]]:
        """The texts of every batch, oldest first."""
        stories = await self.store.find(MessageFilter(limit=1_000))
        found: dict[int, list[str]] = {}
        for story in sorted(stories, key=lambda one: one.message.number):
            if story.batch is not None:
                found.setdefault(story.batch.id, []).append(story.message.text)
        return list(found.values())


async def test_nobody_outside_speaks_as_the_program() -> None:
    road = Road()
    forged = Inbound(
        Origin("chat", "me", "room", SYSTEM), Content(b"{}", "done", "task.result"), ProviderMarks("task:1:0")
    )
    with pytest.raises(InputError, match="nobody may be called 'system'"):
        await road.flow.receive(road.door, forged)
    assert await road.store.find(MessageFilter(limit=9)) == []
    ours = replace(forged, key="root:room")
    assert (await road.flow.receive(road.door, ours)).lane.key == "root:room"


async def test_five_events_of_one_pull_request_over_ten_seconds_are_one_batch_and_one_task() -> None:
    road = Road()
    async with road.routing():
        for n in range(5):
            await road.event(n)
            await road.clock.advance(2_500)
        await road.clock.advance(10_000)
    assert await road.batches() == [[f"event {n}" for n in range(5)]]
    assert (await road.store.overview()).tasks == {"pending": 1}


async def test_five_events_around_a_kill_are_one_batch_and_one_task() -> None:
    road = Road()
    for n in range(5):
        if n == 2:
            await road.clock.advance(1_000)
            road = await road.restarted()
        async with road.routing():
            await road.clock.advance(500)
            await road.event(n)
            await road.clock.advance(1_000)
    async with road.routing():
        await road.clock.advance(10_000)
    assert await road.batches() == [[f"event {n}" for n in range(5)]]
    assert (await road.store.overview()).tasks == {"pending": 1}


@pytest.mark.parametrize("jump_ms", [-3_600_000, -10_000])
async def test_a_burst_stays_one_batch_while_the_clock_is_set_back(jump_ms: int) -> None:
    road = Road()
    async with road.routing():
        for n in range(5):
            if n == 2:
                road.clock.jump(jump_ms)
            await road.event(n)
            await road.clock.advance(1_500)
        await road.clock.advance(10_000)
        await road.event(5)
        await road.event(6)
        await road.clock.advance(10_000)
    assert await road.batches() == [[f"event {n}" for n in range(5)], ["event 5", "event 6"]]


@pytest.mark.parametrize("jump_ms", [-3_600_000, 3_600_000])
async def test_a_clock_that_was_set_before_a_start_keeps_no_window_open(jump_ms: int) -> None:
    road = Road()
    async with road.routing():
        await road.event(0)
    road.clock.jump(jump_ms)
    road = await road.restarted()
    async with road.routing():
        await road.clock.advance(GITHUB.wait_ms)
    assert await road.batches() == [["event 0"]]


async def test_a_burst_cannot_hold_its_window_open_for_ever() -> None:
    road = Road()
    async with road.routing():
        for n in range(9):
            await road.event(n)
            await road.clock.advance(2_000)
    first = (await road.batches())[0]
    assert first == [f"event {n}" for n in range(8)], "the window closes 15 s after its first message"


async def test_the_window_starts_at_the_first_message_and_not_at_a_tick() -> None:
    road = Road()
    async with road.routing():
        await road.clock.advance(499)
        await road.say("one")
        await road.clock.advance(499)
        assert await road.batches() == []
        await road.say("two")
        await road.clock.advance(1)
    assert await road.batches() == [["one", "two"]]


async def test_a_terminal_message_does_not_wait() -> None:
    road = Road()
    async with road.routing():
        await road.say("now", channel="terminal")
        await road.clock.advance(0)
        assert await road.batches() == [["now"]]


async def test_a_full_window_closes_at_once() -> None:
    road = Road(windows={"chat": Window(60_000, 0, 60_000, count_max=3)})
    async with road.routing():
        for n in range(3):
            await road.say(str(n))
        await road.clock.advance(0)
        assert await road.batches() == [["0", "1", "2"]]


async def test_messages_that_arrive_while_a_batch_waits_join_it() -> None:
    road = Road()
    async with road.routing():
        await road.say("one")
        await road.clock.advance(600)
        await road.say("two")
        await road.clock.advance(600)
    assert await road.batches() == [["one", "two"]]


async def test_another_rule_starts_another_batch_and_lanes_do_not_mix() -> None:
    drop = Rule("noise", {"text": ("noise*",)}, Action.DROP)
    road = Road(routes=Routes((drop,)))
    async with road.routing():
        for text in ("a", "noise 1", "b"):
            await road.say(text)
        await road.say("elsewhere", room="other")
        await road.clock.advance(1_000)
    assert sorted(await road.batches()) == [["a"], ["b"], ["elsewhere"], ["noise 1"]]
    assert (await road.store.overview()).batches == {"queued": 3, "dropped": 1}
    dropped = (await road.store.find(MessageFilter(state="dropped")))[0]
    assert dropped.batch is not None
    assert dropped.batch.verdict.reason == 'rule "noise" matched'


async def test_what_a_payload_says_can_always_be_stored() -> None:
    rule = Rule("note", {"channel": ("chat",)}, Action.SPAWN, task="about {{title}}")
    road = Road(routes=Routes((rule,)))
    async with road.routing():
        origin = Origin("chat", "me", "room", "ann", trust=Trust.KNOWN)
        content = Content(b'{"title": "\\ud800"}', "half a character")
        await road.flow.receive(road.door, Inbound(origin, content))
        await road.clock.advance(10_000)
    assert road.store.database.rows("SELECT description FROM task") == [("about \ufffd",)]


async def test_a_lane_that_cannot_be_routed_stops_no_other() -> None:
    road = Road(routes=Routes((Rule("odd", {"sender": ("bob",)}, Action.SPAWN, priority=10**30),)))
    stuck, sent = road.store.apply, []

    async def apply(commit: Commit[object]) -> object:
        if isinstance(commit, Dispatch) and commit.batches[0].priority > 100:
            raise OverflowError("no column holds this")
        sent.append(commit)
        return await stuck(commit)

    road.store.apply = apply  # type: ignore[method-assign, assignment]
    async with road.routing():
        bob = Origin("terminal", "me", "one", "bob", trust=Trust.KNOWN)
        await road.flow.receive(road.door, Inbound(bob, Content(b"x", "x"), ProviderMarks(), 1))
        await road.say("fine", channel="terminal", room="two")
        await road.clock.advance(3_000)
    assert await road.batches() == [["fine"]]


async def test_a_clock_that_goes_back_loses_and_delays_nothing_for_long() -> None:
    road = Road()
    async with road.routing():
        await road.say("one")
        road.clock.jump(-3_600_000)
        await road.say("two")
        await road.clock.advance(6_000)
    assert await road.batches() == [["one", "two"]]


async def test_what_came_with_a_message_stands_in_its_lanes_past() -> None:
    road = Road(windows={"chat": Window(0)}, routes=Routes(()))
    body = b'{"attachments": [{"name": "pl]an.pdf", "url": "https://x.test/p"}]}'
    origin = Origin("chat", "me", "room", "ann", "Ann", trust=Trust.KNOWN)
    await road.flow.receive(road.door, Inbound(origin, Content(body, "")))
    await road.flow.route()
    leases = Leases(road.store, road.clock, road.ids, "me", LeaseTerms(), road.flow.hints)
    [lease] = await road.flow.claim(leases, 1)
    await road.flow.answer(await road.flow.open(lease))
    records = (await road.store.context(lease.batch.lane, 9)).recent.records
    assert [(one.text, one.attached) for one in records if one.role is Role.USER] == [
        ("", "pl)an.pdf (https://x.test/p)")
    ]
