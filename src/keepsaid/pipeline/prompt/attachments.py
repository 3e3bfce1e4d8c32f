"""What came with the messages of a turn: waited for while it is fetched, and read where a model can be shown it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from keepsaid.domain.files import FileState, Picture, StoredFile, attachment_line, with_words
from keepsaid.domain.message import StoredMessage
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store_views import FileView

_LOOK_MS = 20
PICTURES_MAX = 5
"""Pictures of one turn; more are named alone."""

PICTURE_BYTES_MAX, PICTURES_BYTES_MAX = 5_000_000, 10_000_000
"""The largest picture that providers take, and all of one turn together."""


async def await_files(files: FileView, clock: Clock, claimed: ClaimedBatch, patience_s: float) -> ClaimedBatch:
    """The batch once its files are fetched, or `patience_s` seconds later; with what is said in its recordings."""
    ids, ends_at = [one.id for one in claimed.messages], clock.monotonic_ms() + 1_000 * patience_s
    found: Sequence[StoredFile] = claimed.files
    while any(one.state is FileState.WAITING for one in found) and clock.monotonic_ms() < ends_at:
        await clock.wait(asyncio.Event(), _LOOK_MS)
        found = await files.of_messages(ids)
    return replace(claimed, files=tuple(found), messages=tuple(_with_its_words(one, found) for one in claimed.messages))


def _with_its_words(message: StoredMessage, files: Sequence[StoredFile]) -> StoredMessage:
    if (text := with_words(message, files)) == message.text:
        return message
    inbound = message.inbound
    return replace(message, inbound=replace(inbound, content=replace(inbound.content, text=text)))


async def pictures_of(files: FileView, claimed: ClaimedBatch) -> tuple[Picture, ...]:
    """The pictures that came with the messages, as many and as large as models take."""
    fitting = [one for one in claimed.files if one.is_picture and 0 < one.size <= PICTURE_BYTES_MAX][:PICTURES_MAX]
    sizes = accumulate(one.size for one in fitting)
    shown = [one for one, size in zip(fitting, sizes, strict=True) if size <= PICTURES_BYTES_MAX]
    read = [(one, await files.content(one.message_id, one.number)) for one in shown]
    return tuple(Picture(one.handle, one.kind, content) for one, content in read if content)


def attached_to(claimed: ClaimedBatch) -> tuple[tuple[int, str], ...]:
    """What came with the messages of a turn, by their ids; those that brought nothing are left out."""
    lines = ((one.id, attachment_line(one, claimed.files)) for one in claimed.messages)
    return tuple((number, line) for number, line in lines if line)
