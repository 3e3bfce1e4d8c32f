"""Blocks that later turns show again, and turns that are cut off: none is lost, none stands there twice."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.unit.test_reminding import ASKED, KNOWN, OWL, OWNER, SECRET, Obedient, config, say
from tests.waits import HANG_S

from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Home
from keepsaid.domain.message import Content, Inbound
from keepsaid.domain.turn import ModelAnswer
from keepsaid.ports.model import Delta, ModelRequest

HANGS = "What does the owl in the barn eat?"
MICE = "eats mice"


@dataclass
class Hanging(Obedient):
    """Does not answer what it is asked about the owl, until it is let go."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        if HANGS in request.prompt.user and not self.go.is_set():
            self.prompts.append(request)
            self.asked.set()
            await asyncio.Event().wait()
        return await super().answer(request, delta)

    def count(self, word: str) -> list[tuple[int, int]]:
        """By prompt: how often a word stood in what was recalled, and in the history."""
        return [
            (one.prompt.recalled.count(word), sum(record.text.count(word) for record in one.prompt.history))
            for one in self.prompts
        ]


async def begun(instance: Instance, model: Hanging) -> None:
    """A turn that is shown the owl's block and does not come to its end."""
    await instance.memories.keep([KNOWN], 1)
    await instance.start()
    await say(instance, ASKED)
    await instance.memories.keep([OWL], 2)
    await instance.receive(Inbound(OWNER, Content(HANGS.encode(), HANGS)))
    await model.asked.wait()


async def test_a_turn_that_a_newer_message_took_the_place_of_costs_no_block(tmp_path: Path) -> None:
    """The block of a turn that was given up was shown to nobody who answered: it comes again, and stands there once."""
    model = Hanging()
    settings = config(memory={"history_blocks": 2}, channels={"terminal": {"busy": "interrupt", "window_ms": 0}})
    async with asyncio.timeout(HANG_S), opened(Home.at(tmp_path), settings, model) as instance:
        await begun(instance, model)
        model.go.set()
        await say(instance, "Never mind my hurry, take your time.")
        await say(instance, "And which codeword does vault seven have, and does the owl in the barn eat mice?")
    assert model.count(SECRET) == [(1, 0), (0, 1), (0, 1), (0, 1)]
    assert model.count(MICE) == [(0, 0), (1, 0), (1, 0), (0, 1)]


@pytest.mark.parametrize("blocks", [1, 2])
async def test_a_turn_that_was_cut_off_by_the_end_of_the_program_costs_no_block(tmp_path: Path, blocks: int) -> None:
    """It goes on with the block it had."""
    model = Hanging()
    settings = config(memory={"history_blocks": blocks}, turns={"grace_s": 0})
    async with asyncio.timeout(HANG_S), opened(Home.at(tmp_path), settings, model) as instance:
        await begun(instance, model)
    model.go.set()
    async with asyncio.timeout(HANG_S), opened(Home.at(tmp_path), settings, model) as instance:
        await instance.start()
        await say(instance, "And which codeword does vault seven have, and does the owl in the barn eat mice?")
    assert model.count(SECRET) == [(1, 0), (0, 1), (0, 1), (int(blocks == 1), int(blocks == 2))]
    assert model.count(MICE) == [(0, 0), (1, 0), (1, 0), (0, 1)]
