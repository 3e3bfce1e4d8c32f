"""An owner to be put to sleep: its model answers when a line comes in. `python -m tests.crash.suspended HOME`.

On stdout it tells `{"asked": true}` when its model was asked, and then how the message it had taken in ended for it.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.config.settings import BufferConfig
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.domain.process import Beat
from keepsaid.domain.turn import ModelAnswer
from keepsaid.ports.model import Delta, ModelRequest
from keepsaid_testkit.crash.order import tell

SETTINGS = Config(buffer=BufferConfig(window_ms=0))
ORIGIN = Origin("http", "default", "room", "ann", trust=Trust.KNOWN)


class Waiting:
    """Answers when it is let."""

    name = "waiting"

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        """The answer of one who has slept."""
        tell({"asked": True})
        await asyncio.to_thread(sys.stdin.readline)
        return ModelAnswer("the sleeper's answer", model=self.name)


async def live(home: Path) -> None:
    """Take in a message and try to answer it; then say, late, that this process lives."""
    async with opened(Home.at(home), SETTINGS, Waiting()) as instance:
        received = await instance.receive(Inbound(ORIGIN, Content(b"hello", "hello")))
        with instance.hub.listening(received.id) as heard:
            await instance.start()
            progress = await heard.get()
            await instance.operations.apply(Beat(instance.owner, 9_000_000, 9_000_000))
            tell({"ended": progress.kind, "why": progress.text})


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1])))
