"""A life among innocents whose model cannot bear one word; a fork server runs `main([KIND, NUMBER])`.

KIND is what the word does to the model. Every life takes in a message of each innocent, and ends well when nothing is
left to be answered. Each time the model meets the word is a line in the file `met` of the home.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import time
from collections.abc import Callable
from functools import partial

import keepsaid.app.instance as instances
from keepsaid.app.instance import Instance, Outside
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.config.settings import BufferConfig, ModelsConfig, TurnsConfig
from keepsaid.domain.batch import TrialTerms
from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks, Trust
from keepsaid.domain.turn import ModelAnswer
from keepsaid.pipeline.leasing import LeaseTerms, LifeTerms
from keepsaid.ports.model import Delta, ModelRequest

POISON = "mandrake"
FIRST = "hello 0"
VICTIM = "victim"
INNOCENTS = tuple(f"innocent {n}" for n in range(4))
CROWD = "crowd"
CROWDED = ("one", f"say {POISON}")
WAITS = ("hang", "fickle")
CRASHES = 2
_ALONE_MS = 400
_CALL_S = 0.8
_ROOM_BYTES = 2 << 30
_THINKING_MS = 40
"""How long an answer takes."""

_LOOK_MS = 10
_TERMS = LifeTerms(TrialTerms(after_ms=400, beat_ms=250, trial_beat_ms=60))
"""A trial comes after less than half a second, and lengths of lives and trials are known as exactly in proportion."""


def _segfault() -> None:
    ctypes.string_at(0)


def _memory() -> None:
    bytearray(8 * _ROOM_BYTES)


def _stuck() -> None:
    while True:
        time.sleep(60)


KINDS: dict[str, Callable[[], None]] = {
    "segfault": _segfault,
    "abort": os.abort,
    CROWD: _segfault,
    "stuck": _stuck,
    "memory": _memory,
}
"""What the word does, at once. `hang` waits for ever and lets others go on, `fickle` does so after two crashes.

A `crowd` is a batch of several messages, of which one is poison.
"""


class Frail:
    """A model that answers all but one word. Before that works, the lane hears one message more."""

    name = "frail"

    def __init__(self, kind: str, home: Home) -> None:
        self._kind = kind
        self._met = home.data.parent / "met"
        self.all_heard = asyncio.Event()
        self._company, self._struck = asyncio.Event(), asyncio.Event()
        self.instance: Instance | None = None

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        """The answer, if there is one."""
        if POISON not in request.prompt.user:
            await self._think(request.prompt.user)
            return ModelAnswer(f"you said {request.prompt.user}", model=self.name)
        assert self.instance is not None, "a model is asked by an instance"
        await hear(self.instance, VICTIM, "and then?")
        if not self._met.exists():
            await self.all_heard.wait()
            await self._company.wait()
        with self._met.open("a") as file:
            file.write(f"{self._kind}\n")
        self._struck.set()
        if self._kind == "fickle" and self._met.read_text().count("\n") <= CRASHES:
            os.abort()
        await asyncio.Event().wait() if self._kind in WAITS else KINDS[self._kind]()
        raise AssertionError("it survived")

    async def _think(self, said: str) -> None:
        """Take a moment; the first of the innocent are in company with the poison when it strikes first."""
        assert self.instance is not None, "a model is asked by an instance"
        if said.endswith(FIRST) and not self._met.exists():
            self._company.set()
            await self._struck.wait()
        await self.instance.clock.wait(asyncio.Event(), _THINKING_MS)


async def hear(instance: Instance, room: str, text: str) -> None:
    """Take in a message, if it was not heard before."""
    origin = Origin("http", "default", room, "ann", trust=Trust.KNOWN)
    await instance.receive(Inbound(origin, Content(text.encode(), text), ProviderMarks(f"{room}: {text}")))


async def _live(kind: str, number: int) -> None:
    home = Home.at()
    models = ModelsConfig(timeout_s=_CALL_S, outage_s=1.0)
    config = Config(buffer=BufferConfig(window_ms=0), models=models, turns=TurnsConfig(concurrent_max=3))
    model = Frail(kind, home)
    async with opened(home, config, model, Outside(life=_TERMS)) as instance:
        model.instance = instance
        begins_apart = not number and kind != CROWD
        if begins_apart:
            await instance.start()
            await hear(instance, VICTIM, "hello")
            await nothing_left(instance)
        for text in CROWDED if kind == CROWD else (f"say {POISON}",):
            await hear(instance, VICTIM, text)
        for room in INNOCENTS:
            await hear(instance, room, f"hello {number}")
        model.all_heard.set()
        if not begins_apart:
            await instance.start()
        await nothing_left(instance)


async def nothing_left(instance: Instance) -> None:
    """Return once nothing is unrouted, queued or leased."""
    while True:
        seen = await instance.operations.overview()
        if not any(depth.unrouted for depth in seen.channels) and not {"queued", "leased"} & seen.batches.keys():
            return
        await instance.clock.wait(asyncio.Event(), _LOOK_MS)


def main(arguments: list[str]) -> int:
    """Live one life."""
    kind, number = arguments
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if kind == "memory":
        resource.setrlimit(resource.RLIMIT_AS, (_ROOM_BYTES, _ROOM_BYTES))
    setattr(instances, "LeaseTerms", partial(LeaseTerms, alone_ms=_ALONE_MS))  # noqa: B010 - not its to export
    asyncio.run(_live(kind, int(number)))
    return 0
