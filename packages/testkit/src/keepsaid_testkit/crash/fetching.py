"""Files in a play: a message brings some, and its channel hands them out, late, never, or in pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from keepsaid.app.instance import Instance
from keepsaid.domain.commits import IntakeResult
from keepsaid.domain.fetching import AWAITED, PIECE_BYTES
from keepsaid.domain.files import FileState
from keepsaid.domain.message import Attachment, Content, Inbound, Origin, ProviderMarks, Trust
from keepsaid.errors import FileRefused, FileUnavailable
from keepsaid.ports.channel import Channel

CHANNEL = "http"
BROUGHT = "files:"
"""How the keys of messages begin that a play brings by itself."""

FILES = (
    "fetch.",
    "commit.TakeFiles.",
    "commit.KeepPiece.",
    "commit.KeepFile.",
    "commit.PutOffFile.",
    "commit.LeaveFile.",
    "commit.TakeAwaited.",
    "brought.",
    "commit.KeepBrought.",
)
"""Where a life dies that fetches files."""

_LOOK_MS = 20


class HandingOut:
    """A channel that hands out files, beside what it did before."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._is_late = True

    def __getattr__(self, name: str) -> Any:
        """What it did before."""
        return getattr(self._channel, name)

    async def fetch(self, account: str, file: Attachment) -> AsyncGenerator[bytes, None]:  # noqa: ARG002 - the port's
        """The first try of one file fails, another is gone for good; the rest come."""
        if file.ref == "gone":
            raise FileRefused("it is gone")
        if file.ref == "late" and self._is_late:
            self._is_late = False
            raise FileUnavailable("it is not there yet", 0.0)
        yield bytes(PIECE_BYTES)
        yield b"the rest"


async def fetch_files(instance: Instance) -> None:
    """Take in a message with three files, and wait until each is kept or left; then one whose sender brings them."""
    instance.channels[CHANNEL] = HandingOut(instance.channels[CHANNEL])
    number = instance.ids.next()
    origin = Origin(CHANNEL, "default", "files", f"sender-{number}", direct=True, trust=Trust.KNOWN)
    text = f"[pull] what came with it, {number}"
    files = tuple(Attachment(f"{ref}.bin", "", ref) for ref in ("gone", "late", "there"))
    marks = ProviderMarks(f"{BROUGHT}{number}")
    received = await instance.receive(Inbound(origin, Content(text.encode(), text), marks, files=files))
    await _ended(instance, received.id)
    await _bring_files(instance)


async def _bring_files(instance: Instance) -> None:
    """Bring files of a message as its sender does: those that a former life did not end are brought again.

    Raises AssertionError where a file that was brought is not whole.
    """
    is_new, n = False, 0
    while not is_new:
        text, contents = f"[pull] what its sender brings, {n}", (b"%d" % n * PIECE_BYTES, b"small %d" % n)
        origin = Origin(CHANNEL, "default", "files", "sender-brings", direct=True, trust=Trust.KNOWN)
        files = tuple(Attachment("brought.bin", "", AWAITED, len(content)) for content in contents)
        marks = ProviderMarks(f"{BROUGHT}brought-{n}")
        received = await instance.receive(Inbound(origin, Content(text.encode(), text), marks, files=files))
        assert await instance.fetcher.bring(received.id, contents)
        await _ended(instance, received.id)
        for number, content in enumerate(contents, 1):
            assert await instance.operations.files.content(received.id, number) == content
        is_new, n = received.intake is IntakeResult.STORED, n + 1


async def _ended(instance: Instance, message_id: int) -> None:
    """Wait until each file of a message is kept or left."""
    while True:
        found = await instance.operations.files.of_messages((message_id,))
        if all(one.state is not FileState.WAITING for one in found):
            return
        await instance.clock.wait(asyncio.Event(), _LOOK_MS)
