"""Lanes whose model hangs cost the others one wait of `turns.slow_s` at most, at first, and nothing later."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import pytest

from keepsaid.adapters.models.choose import Punctual
from keepsaid.adapters.system.machine import SystemIds
from keepsaid.app.instance import Instance, Outside
from keepsaid.config import Config, Home
from keepsaid.config.settings import BufferConfig, MemoryConfig, ModelsConfig, TurnsConfig
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.domain.turn import ModelAnswer
from keepsaid.ports.model import Delta, Model, ModelRequest
from keepsaid.ports.runtime import Clock
from keepsaid_testkit.simulator.clock import SimClock, Wall
from keepsaid_testkit.simulator.disk import InMemoryDisk, MemoryStoreDisk
from keepsaid_testkit.simulator.loop import VirtualLoop

_PLACES = 8
_SLOW_S = 2.0
_CALL_S = 5.0
"""A call that hangs is given up after it, and made again a little later: four times in a test."""

_THINKING_MS = 400
_TALKERS = 12
_TEST_S = 20.0
_LATE_S = 1.6
"""A turn takes less than a second, with twelve talkers at eight places."""


class Moody:
    """Answers in less than half a second, or never."""

    name = "moody"

    def __init__(self, clock: Clock) -> None:
        self.hung = 0
        self._clock = clock

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        never = "hang" in request.prompt.user
        self.hung += never
        await self._clock.wait(asyncio.Event(), 1e9 if never else _THINKING_MS)
        return ModelAnswer("fine", model=self.name)


class Polite(Moody):
    """Answers whatever it is asked."""

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        await self._clock.wait(asyncio.Event(), _THINKING_MS)
        return ModelAnswer("fine", model=self.name)


class Narrow:
    """A model that takes one call at a time; the others wait at its door."""

    name = "narrow"

    def __init__(self, model: Model) -> None:
        self._model = model
        self._door = asyncio.Semaphore(1)

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        async with self._door:
            return await self._model.answer(request, delta)


@dataclass(frozen=True)
class Talked:
    """A turn that somebody waited for: when it was asked for and how long it took, in seconds."""

    at: float
    took: float


def instance_of(model: Model, clock: Clock) -> Instance:
    config = Config(
        buffer=BufferConfig(window_ms=0),
        models=ModelsConfig(timeout_s=_CALL_S),
        turns=TurnsConfig(concurrent_max=_PLACES, slow_s=_SLOW_S, shutdown_timeout_s=0),
        memory=MemoryConfig(injection="off"),
    )
    ids = SystemIds(clock.now_ms, lambda _: 0)
    stores = InMemoryDisk().open(), MemoryStoreDisk().open(ids)
    return Instance(Home.at(Path("nowhere")), config, stores, model, Outside(clock, ids))


async def hear(instance: Instance, room: str, text: str) -> int:
    origin = Origin("http", "default", room, "ann", trust=Trust.KNOWN)
    return (await instance.receive(Inbound(origin, Content(text.encode(), text)))).id


async def talk(instance: Instance, room: str) -> list[Talked]:
    """Turn after turn in one room."""
    time, turns = asyncio.get_running_loop().time, list[Talked]()
    while time() < _TEST_S:
        began = time()
        with instance.hub.listening(await hear(instance, room, "hello")) as heard:
            while (await heard.get()).kind != "settled":
                pass
        turns.append(Talked(began, time() - began))
    return turns


async def beside(hung: int, model: Model, clock: Clock) -> list[Talked]:
    """All turns of talkers beside so many lanes that hang and came first."""
    instance = instance_of(model, clock)
    await instance.start()
    for n in range(hung):
        await hear(instance, f"hung {n}", "hang")
    turns = await asyncio.gather(*(talk(instance, f"room {n}") for n in range(_TALKERS)))
    await instance.stop()
    return [turn for room in turns for turn in room]


@contextmanager
def virtual_time() -> Iterator[VirtualLoop]:
    """A loop that never sleeps."""
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    try:
        yield loop
    finally:
        asyncio.set_event_loop(None)
        loop.close()


@pytest.mark.parametrize("hung", [0, _PLACES, 20])
def test_lanes_that_hang_delay_the_others_once(hung: int) -> None:
    with virtual_time() as loop:
        clock = SimClock(Wall(loop.time))
        model = Moody(clock)
        turns = loop.run_until_complete(beside(hung, Punctual(model), clock))
    at_first = _SLOW_S * ceil(hung / _PLACES)
    assert model.hung >= 3 * hung, "they were tried again and again"
    assert max(turn.took for turn in turns) <= at_first + _LATE_S
    assert [turn for turn in turns if turn.at > at_first and turn.took > _LATE_S] == []


def test_who_waits_at_the_door_of_the_model_does_not_hang() -> None:
    with virtual_time() as loop:
        clock = SimClock(Wall(loop.time))
        turns = loop.run_until_complete(beside(20, Narrow(Punctual(Polite(clock))), clock))
    waiting_s = (20 + _TALKERS) * _THINKING_MS / 1_000
    assert waiting_s > 2 * _CALL_S
    assert max(turn.took for turn in turns) <= waiting_s + _LATE_S, "nobody was sent back to wait some more"
