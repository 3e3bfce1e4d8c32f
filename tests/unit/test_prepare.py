"""The preparation of a turn: a part that is not ready in time is left out, named, and the turn goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from dataclasses import replace

import pytest
from tests.unit.memory_cast import claimed, message
from tests.unit.turn_cast import Remembers, Stage, staged

from keepsaid.domain.memory import Injection
from keepsaid.domain.personality import Skill, Skills
from keepsaid.domain.prompt import Json
from keepsaid.domain.scene import Contribution
from keepsaid.domain.turn import ClaimedBatch, Recent
from keepsaid.domain.views import TurnStory
from keepsaid.interfaces.cli.why import explained
from keepsaid.pipeline.prompt.assemble import Preparation, Sources
from keepsaid.testing.model_script import Say

SOON_S = 0.05
"""The time limit of parts that never end."""

LONG_S = 60.0
"""One that is not reached."""


async def never() -> str:
    await asyncio.Event().wait()
    raise AssertionError


async def quickly() -> str:
    return "ready"


class Hangs(Remembers):
    """Memory and identity files that never answer."""

    async def remind(self, claimed: ClaimedBatch, recent: Awaitable[Recent]) -> Injection:
        await never()
        raise AssertionError

    async def read(self) -> str:
        return await never()


class Shelf:
    """Skills that are read in a thread, which ends when it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    async def read(self) -> Skills:
        return await asyncio.to_thread(self._load)

    def _load(self) -> Skills:
        self.go.wait()
        return Skills((Skill("late", "never shown", "body"),))


def trace_of(turn: TurnStory) -> dict[str, Json]:
    assert isinstance(turn.trace, dict)
    return turn.trace


async def answered(stage: Stage) -> TurnStory:
    await stage.say("hello")
    assert await stage.work() == "done"
    return await stage.turn()


async def test_what_is_ready_in_time_is_used_and_nothing_is_named() -> None:
    preparation = Preparation()
    first, second = preparation.begin("first", quickly(), ""), preparation.begin("second", quickly(), "")
    assert await preparation.finish(LONG_S) == ()
    assert (first.value, second.value) == ("ready", "ready")


async def test_a_part_that_hangs_is_left_out_and_named_and_the_others_are_used() -> None:
    preparation = Preparation()
    late, quick = preparation.begin("late", never(), "nothing"), preparation.begin("quick", quickly(), "")
    assert await preparation.finish(SOON_S) == ("late took longer than 0.05 s",)
    assert (late.value, quick.value) == ("nothing", "ready")


async def test_a_part_that_ignores_being_cancelled_holds_up_nobody() -> None:
    free, cancelled = asyncio.Event(), asyncio.Event()

    async def stubborn() -> str:
        try:
            return await never()
        except asyncio.CancelledError:
            cancelled.set()
            await free.wait()
            return "too late"

    preparation = Preparation()
    part = preparation.begin("stubborn", stubborn(), "nothing")
    assert await preparation.finish(SOON_S) == ("stubborn took longer than 0.05 s",)
    assert part.value == "nothing"
    await cancelled.wait()
    free.set()
    await part.task


async def test_an_error_of_one_part_ends_the_preparation_at_once() -> None:
    async def broken() -> str:
        raise OSError("the disk is gone")

    preparation = Preparation()
    waiting = preparation.begin("waiting", never(), "")
    preparation.begin("broken", broken(), "")
    with pytest.raises(OSError, match="the disk is gone"):
        await preparation.finish(LONG_S)
    await asyncio.wait((waiting.task,))
    assert waiting.task.cancelled()


async def test_a_turn_that_is_broken_off_leaves_no_part_running() -> None:
    preparation = Preparation()
    part = preparation.begin("waiting", never(), "")
    waiting = asyncio.ensure_future(preparation.finish(LONG_S))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait((waiting, part.task))
    assert part.task.cancelled()


async def test_sources_that_are_late_are_empty_and_the_others_are_there() -> None:
    class Adds:
        def __init__(self, work: Awaitable[str] | None) -> None:
            self._work = work

        async def contribute(self, claimed: ClaimedBatch) -> tuple[Contribution, ...]:
            return (Contribution("weather", await self._work if self._work else "rain"),)

    who, preparation = Remembers(), Preparation()
    sources = Sources(contributors=(Adds(None), Adds(never())))
    reading = sources.begin(preparation, claimed(message(1, "hello")), who)
    assert await preparation.finish(SOON_S) == ("extensions took longer than 0.05 s",)
    assert [one.text for one in reading.turn_context(7).contributions] == ["rain"]
    assert reading.standing.identity == who.identity


async def test_a_turn_goes_on_without_memory_and_files_that_hang_and_says_so() -> None:
    async with staged(Say("hi"), memory=Hangs()) as stage:
        stage.flow.update_settings(replace(stage.flow.settings, prepare_s=SOON_S))
        turn = await answered(stage)
        replies = [reply.draft.text for reply in await stage.replies()]
    assert replies == ["hi"]
    left_out = ["identity files took longer than 0.05 s", "memory took longer than 0.05 s"]
    assert trace_of(turn)["left_out"] == left_out
    told = "\n".join(explained(turn))
    for part in left_out:
        assert part in told


async def test_a_turn_goes_on_without_a_part_that_is_slow_in_a_thread() -> None:
    shelf = Shelf()
    async with staged(Say("hi"), Say("hi")) as stage:
        stage.flow.update_settings(replace(stage.flow.settings, prepare_s=SOON_S))
        stage.flow.set_identity(stage.memory, shelf)
        try:
            turn = await answered(stage)
        finally:
            shelf.go.set()
        assert trace_of(turn)["left_out"] == ["skills took longer than 0.05 s"]
        stage.flow.update_settings(replace(stage.flow.settings, prepare_s=LONG_S))
        assert "left_out" not in trace_of(await answered(stage))
