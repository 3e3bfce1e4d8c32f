"""Without a model, what is remembered is the answer: it is waited for, however slow the machine is."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.test_commands import talking
from tests.waits import HANG_S

from keepsaid.adapters.models.choose import OfflineResponder
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home

CONFIG = Config(buffer={"window_ms": 0}, memory={"embedder": "none", "deadline_ms": 1})


async def test_a_slow_memory_is_waited_for_where_nothing_else_answers(tmp_path: Path) -> None:
    """A turn of a model goes on after `memory.deadline_ms`, here a millisecond."""
    home = Home.at(tmp_path)
    async with asyncio.timeout(HANG_S), opened(home, CONFIG, OfflineResponder()) as instance:
        say = talking(instance)
        await instance.start()
        await say("The kettle is in the cellar.")
        await say("/reset")
        answer = await say("Where is the kettle?")
    assert "in the cellar" in answer
    assert "nothing about it" not in answer


async def test_an_old_value_in_another_language_brings_the_one_that_holds_now(tmp_path: Path) -> None:
    """However often it changed between, and although the new one shares no word with the question."""
    home = Home.at(tmp_path)
    async with asyncio.timeout(HANG_S), opened(home, CONFIG, OfflineResponder()) as instance:
        say = talking(instance)
        await instance.start()
        for text in ("Ich wohne in Hamburg.", "I moved to Madrid.", "I moved to Porto.", "I moved to Rome.", "/reset"):
            await say(text)
        answer = await say("Wo wohne ich?")
    assert "Rome" in answer
    assert answer.index("Rome") < answer.index("Hamburg")
    assert "held until" in answer[answer.index("Rome") :]
