"""A channel of an extension that fails again and again: it is named, with the line, until it listens again."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.extension_cast import lifecycle, put
from tests.waits import HANG_S

from keepsaid.extensions.contributions import Listeners
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.recording_runtime import RecordingRuntime

FAILING = '''
import asyncio

@extension(id="radio", channel={})
class Radio:
    """Fails three times, and then listens."""

    tries = 0

    async def listen(self, inbox):
        self.tries += 1
        if self.tries <= 3:
            raise ValueError("what a person said")
        await asyncio.Event().wait()

    async def send(self, reply):
        pass
'''


async def test_listening_that_fails_three_times_in_a_row_is_noted_until_it_goes_on(tmp_path: Path) -> None:
    put(tmp_path, "radio", FAILING)
    clock = VirtualClock()
    life = lifecycle(tmp_path, RecordingRuntime(clock=clock))
    noted: list[str] = []
    await life.begin()
    radio = life.guests["radio"]
    listeners = Listeners(clock, lambda: noted.append(radio.notes.get("listen", "")))
    async with asyncio.timeout(HANG_S):
        listeners.begin(radio)
        for wait_ms in (0, 1_000, 2_000, 4_000, 10_000):
            await clock.advance(wait_ms)
        await listeners.end()
    [note, after] = noted
    assert note.startswith("listening failed 3 times in a row (ValueError at radio.py:")
    assert "person" not in note
    assert after == ""
    assert radio.notes == {}
