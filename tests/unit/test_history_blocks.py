"""Blocks of earlier turns in the history: so many as are set, the newest, and no others (seed 001)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.test_reminding import Obedient, config, say
from tests.waits import HANG_S

from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.memory import GLOBAL, Kind, NewMemory
from keepsaid.domain.message import Trust
from keepsaid.memory.gates import InjectionSettings

HEADING = "[Relevant to this message]"
TOLD = {
    "What is the codeword of vault seven?": "The codeword of vault seven is quetzalcoatl.",
    "What does the owl in the barn eat?": "The owl in the barn eats mice.",
    "When is the boiler in the cellar serviced?": "The boiler in the cellar is serviced every May.",
    "Who keeps bees behind the greenhouse?": "Greta keeps bees behind the greenhouse.",
    "Where does the ferry to Lindau leave?": "The ferry to Lindau leaves from the stone pier.",
}


@pytest.mark.parametrize(("most", "standing"), [(0, [0, 0, 0, 0, 0]), (3, [0, 1, 2, 3, 3]), (9, [0, 1, 2, 3, 4])])
async def test_so_many_blocks_stand_in_the_history_the_newest(tmp_path: Path, most: int, standing: list[int]) -> None:
    """Of four, three stay; fewer are left as they are; at 0 each has its turn alone."""
    model, settings = Obedient(), config(memory={"history_blocks": most})
    async with asyncio.timeout(HANG_S), opened(Home.at(tmp_path), settings, model) as instance:
        await instance.start()
        for n, (question, fact) in enumerate(TOLD.items()):
            await instance.memories.keep([NewMemory(f"{n}", Kind.FACT, fact, GLOBAL, Trust.OWNER)], n + 1)
            await say(instance, question)
    facts = list(TOLD.values())
    for n, request in enumerate(model.prompts):
        assert facts[n] in request.prompt.recalled
        blocks = [record.text for record in request.prompt.history if HEADING in record.text]
        assert len(blocks) == standing[n]
        expected = facts[n - standing[n] : n]
        assert [fact for block in blocks for fact in facts if fact in block] == expected, "the oldest goes first"


async def test_a_message_like_the_last_one_is_not_reminded_again(tmp_path: Path) -> None:
    model, settings = Obedient(), config(memory={"reinject_turns": 5})
    (question, fact), *_ = TOLD.items()
    async with asyncio.timeout(HANG_S), opened(Home.at(tmp_path), settings, model) as instance:
        await instance.memories.keep([NewMemory("0", Kind.FACT, fact, GLOBAL, Trust.OWNER)], 1)
        await instance.start()
        await say(instance, question)
        await say(instance, "Tell me which codeword vault seven has, please?")
    assert [fact in request.prompt.recalled for request in model.prompts] == [True, False]


def test_nothing_is_pinned_unless_that_is_set() -> None:
    assert InjectionSettings().pinned_kinds == ()
    assert Config().memory.pinned_kinds == ()
