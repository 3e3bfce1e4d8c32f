"""Busy lanes on a virtual clock: what comes while a turn runs, in every mode."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.unit.test_flow import Nothing

from keepsaid.domain.batch import Window
from keepsaid.domain.busy import BusyPolicy
from keepsaid.domain.commits import Commit
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.domain.prompt import Json, Role, ToolCall
from keepsaid.domain.route import Routes
from keepsaid.domain.turn import ModelAnswer, ToolClass
from keepsaid.domain.views import MessageFilter, Story
from keepsaid.engine.caretakers import CrashNotices, Rescuer
from keepsaid.engine.supervisor import ServiceLoop, keep_going
from keepsaid.engine.workers import TAKEN, Attempt, RetryPolicy, TurnConcurrency, Workers
from keepsaid.errors import StoreBroken
from keepsaid.pipeline.answering import AgentDeps, PipelineSettings
from keepsaid.pipeline.intake import IntakeLimits, MessageIntake
from keepsaid.pipeline.leasing import Leases, LeaseTerms
from keepsaid.pipeline.runner import MessagePipeline
from keepsaid.ports.model import Delta, ModelRequest, Tool
from keepsaid.ports.store import Store
from keepsaid.ports.store_views import FileView
from keepsaid.services.inbox import ProgressHub
from keepsaid.testing.clock import CountingIds, VirtualClock
from keepsaid_testkit.simulator.disk import Disk, FileDisk, InMemoryDisk

WINDOWS = {"chat": Window(500)}
EVERY_MODE = pytest.mark.parametrize("busy", list(BusyPolicy))
_WORD = re.compile(r"\bm\d+\b")


class Thinker(Nothing):
    """A model that uses a tool in each of its steps but the last, takes its time, and repeats every word it saw."""

    def __init__(self, clock: VirtualClock, step_ms: int = 20_000, steps: int = 3) -> None:
        self.requests: list[ModelRequest] = []
        self._clock = clock
        self._step_ms = step_ms
        self._steps = steps

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        self.requests.append(request)
        await self._clock.wait(asyncio.Event(), self._step_ms)
        done = sum(record.role is Role.ASSISTANT for record in request.exchange)
        if done + 1 < self._steps:
            return ModelAnswer("", (ToolCall(f"c{done}", "look", "{}"),), model="thinker")
        return ModelAnswer(" ".join(words(request)), model="thinker")


def words(request: ModelRequest) -> list[str]:
    """What people said to this turn."""
    said = [request.prompt.user, *(record.text for record in request.exchange if record.role is Role.USER)]
    return [word for text in said for word in _WORD.findall(text)]


class Mortal:
    """A store as one process has it: with its death every read and write ends."""

    def __init__(self, store: Store) -> None:
        self.dead = False
        self._store = store

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def ask(*args: object) -> object:
            if self.dead:
                raise StoreBroken("this process is dead")
            return await getattr(self._store, name)(*args)

        return ask

    @property
    def files(self) -> FileView:
        """What came with messages."""
        return self._store.files

    async def apply(self, commit: Commit[Any]) -> Any:
        """Nothing is written after the death."""
        return await self.__getattr__("apply")(commit)


@dataclass
class House:
    """One store, and the process that works on it at the moment."""

    busy: BusyPolicy
    disk: Disk = field(default_factory=InMemoryDisk)
    kind: ToolClass = ToolClass.PURE
    stale_ms: int = 0
    windows: dict[str, Window] = field(default_factory=lambda: dict(WINDOWS))

    def __post_init__(self) -> None:
        self.clock = VirtualClock()
        self.ids = CountingIds()
        self.hub = ProgressHub()
        self.model = Thinker(self.clock)
        self.looked = 0
        self.store = self.disk.open()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """A new process takes over."""
        self.mortal = Mortal(self.store)
        store: Any = self.mortal
        nothing, owner = Nothing(), f"owner-{self.ids.next()}"
        mind = AgentDeps(self.model, nothing, nothing, lambda _: (self.tool(),), self.hub)
        course = PipelineSettings(Routes(), self.windows, busy={"chat": self.busy}, stale_ms={"chat": self.stale_ms})
        self.flow = MessagePipeline(store, mind, course, self.clock, self.ids)
        self.door = MessageIntake(store, self.clock, self.ids, self.windows, IntakeLimits())
        leases = Leases(store, self.clock, self.ids, owner, LeaseTerms(), self.flow.hints)
        attempt = Attempt(store, self.hub, self.clock, self.ids, RetryPolicy())
        self.workers = Workers(self.flow, store, leases, attempt, self.clock, TurnConcurrency())
        await Rescuer(store, self.clock, self.ids, owner, CrashNotices("it died")).recover()
        stages = (
            ServiceLoop("route", self.flow.route, self.flow.hints.route),
            ServiceLoop("work", self.workers.claim, self.flow.hints.work),
        )
        self._tasks = [asyncio.create_task(keep_going(stage, self.clock, lambda _: None)) for stage in stages]

    def tool(self) -> Tool:
        """What the model looks with."""

        async def look(_: dict[str, Json]) -> str:
            self.looked += 1
            return "seen"

        return Tool("look", "Look.", {"type": "object"}, look, self.kind, serves=Trust.EXTERNAL)

    async def die(self) -> None:
        """The process ends in the middle of whatever it does; nothing of it is written after this."""
        self.mortal.dead = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, self.workers.stop(0), return_exceptions=True)

    async def say(self, text: str) -> int:
        origin = Origin("chat", "me", "room", "ann", "Ann", trust=Trust.KNOWN)
        return (await self.flow.receive(self.door, Inbound(origin, Content(text.encode(), text)))).id

    async def stories(self) -> list[Story]:
        found = await self.store.find(MessageFilter(limit=1_000))
        return sorted(found, key=lambda story: story.message.number)

    async def until_done(self) -> list[Story]:
        for _ in range(100):
            await self.clock.advance(10_000)
            seen = await self.store.overview()
            waiting = sum(channel.unrouted for channel in seen.channels)
            if not waiting + sum(seen.batches.get(state, 0) for state in ("queued", "leased")):
                break
        stories = await self.stories()
        assert {story.state for story in stories} == {"done"}, Counter(story.state for story in stories)
        return stories


async def started(busy: BusyPolicy, **changes: Any) -> House:
    house = House(busy, **changes)
    await house.start()
    return house


@EVERY_MODE
@pytest.mark.parametrize("files", [False, True], ids=["memory", "file"])
async def test_every_message_of_a_busy_minute_with_two_crashes_is_accounted_for(
    busy: BusyPolicy, tmp_path: Path, *, files: bool
) -> None:
    house = await started(busy, disk=FileDisk(tmp_path) if files else InMemoryDisk())
    for n in range(500):
        await house.say(f"m{n}")
        await house.clock.advance(120)
        if n in (170, 370):
            await house.die()
            await house.start()
    stories = await house.until_done()
    replies = {reply.id: reply for story in stories for reply in story.replies}
    said = [word for _, reply in sorted(replies.items()) for word in _WORD.findall(reply.draft.text)]
    assert said == [f"m{n}" for n in range(500)], "each in one answer, in order, and no answer twice"
    assert not any(reply.draft.notice for reply in replies.values())
    for story in stories:
        [reply] = story.replies
        assert story.message.text in reply.draft.text.split()
        assert reply.turn_id == story.turn_id
    seen = (await house.store.context(stories[0].message.lane, 10_000)).recent.refs
    shown = [ref for ref in seen if ref.startswith("message:")]
    assert shown == [f"message:{story.message.id}" for story in stories]
    works = await house.store.episode_work(1_000)
    assert Counter(one.id for work in works for one in work.messages) == Counter(one.message.id for one in stories)
    assert len([work for work in works if work.reply]) == len(replies)
    await house.die()


async def test_queued_messages_are_answered_after_the_turn() -> None:
    house = await started(BusyPolicy.QUEUE)
    await house.say("m1")
    await house.clock.advance(5_000)
    await house.say("m2")
    await house.until_done()
    assert [words(request) for request in house.model.requests] == [["m1"]] * 3 + [["m2"]] * 3
    await house.die()


async def test_a_steered_message_is_seen_by_the_next_step_under_its_name() -> None:
    house = await started(BusyPolicy.STEER)
    await house.say("m1")
    await house.clock.advance(5_000)
    second = await house.say("m2\nBob: m3")
    with house.hub.listening(second) as queue:
        await house.until_done()
        kinds = [queue.get_nowait().kind for _ in range(queue.qsize())]
        assert kinds[-1] == "settled", "whoever waits for it is notified"
    assert [words(request) for request in house.model.requests] == [["m1"], ["m1", "m2", "m3"], ["m1", "m2", "m3"]]
    assert house.model.requests[1].exchange[-1].text == "Ann: m2\n  Bob: m3"
    [first, last] = await house.stories()
    assert first.replies == last.replies
    records = (await house.store.context(first.message.lane, 20)).recent.records
    assert records[3].text == "m2\nBob: m3", "it is kept as it was said"
    await house.die()


async def test_a_retry_shows_each_step_what_it_was_shown() -> None:
    house = await started(BusyPolicy.STEER)
    await house.say("m1")
    await house.clock.advance(5_000)
    await house.say("m2")
    await house.clock.advance(20_000)
    await house.say("m3")
    await house.clock.advance(17_000)
    await house.die()
    await house.start()
    await house.until_done()
    seen = [words(request) for request in house.model.requests]
    assert seen == [["m1"], ["m1", "m2"], ["m1", "m2", "m3"], ["m1", "m2"], ["m3"], ["m3"], ["m3"]]
    assert house.looked == 4, "no step with a result was made again"
    await house.die()


async def test_an_interrupted_turn_ends_at_once_and_begins_anew_with_both() -> None:
    house = await started(BusyPolicy.INTERRUPT)
    first = await house.say("m1")
    await house.clock.advance(5_000)
    with house.hub.listening(first) as queue:
        await house.say("m2")
        await house.clock.advance(600)
        assert [words(request) for request in house.model.requests] == [["m1"], ["m1", "m2"]]
        told = queue.get_nowait()
        assert (told.kind, told.text) == ("waiting", TAKEN)
    [one, two] = await house.until_done()
    assert one.batch is not None
    assert two.batch is not None
    assert (one.batch.id, one.batch.attempts) == (two.batch.id, 0)
    assert len(house.model.requests) == 1 + 3
    await house.die()


async def test_who_never_stops_writing_is_answered() -> None:
    house = await started(BusyPolicy.INTERRUPT, windows={"chat": Window(500, count_max=5)})
    for n in range(30):
        await house.say(f"m{n}")
        await house.clock.advance(10_000)
    assert (await house.stories())[0].state == "done", "a batch begins anew only as often as it can grow"
    await house.until_done()
    await house.die()


async def test_what_was_done_for_good_is_not_begun_anew() -> None:
    house = await started(BusyPolicy.INTERRUPT, kind=ToolClass.UNSAFE)
    await house.say("m1")
    await house.clock.advance(25_000)
    assert house.looked == 1
    await house.say("m2")
    await house.until_done()
    assert [words(request) for request in house.model.requests] == [["m1"]] * 3 + [["m2"]] * 3
    assert house.looked == 4
    await house.die()
