"""Files: what came with messages, kept as long as they are; how the agent names them, and what it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from enum import StrEnum

from keepsaid.domain.attachment import described
from keepsaid.domain.ids import read, show
from keepsaid.domain.media_types import PICTURES
from keepsaid.domain.message import Attachment, Lane, StoredMessage
from keepsaid.text.normal import cut, is_storable, named_short, normalise
from keepsaid.values import frozen

FILES_MAX = 10
"""Fetched of one message; more are named alone."""

_NAME_CHARS_MAX = 200
_REF_CHARS_MAX = 4_096
_SIZE_MAX = 1 << 62


class FileState(StrEnum):
    """Whether the bytes of a file are kept; what is `left` stays where its channel has it."""

    WAITING = "waiting"
    KEPT = "kept"
    LEFT = "left"


@frozen
class StoredFile:
    """A file of a message: the `number`-th that came with it, from 1.

    `kind` is its media type, as its bytes show it once it is kept, `size` its bytes, 0 when not known. `words` are what
    is said in a recording, `reason` is why it was left.
    """

    message_id: int
    number: int
    name: str
    kind: str
    size: int
    state: FileState
    reason: str = ""
    words: str = ""

    @property
    def handle(self) -> str:
        """What the agent calls it by: `msg_01k2.../1`."""
        return handle_of(self.message_id, self.number)

    @property
    def is_picture(self) -> bool:
        """Whether a model that takes pictures can be shown it."""
        return self.state is FileState.KEPT and self.kind in PICTURES


@frozen
class PlacedFile:
    """A file, and the lane of its message."""

    file: StoredFile
    lane: Lane


def handle_of(message_id: int, number: int) -> str:
    """The handle of a message's file."""
    return f"{show('message', message_id)}/{number}"


def read_handle(text: str) -> tuple[int, int] | None:
    """The message and the number in a handle; None for a text that is none."""
    message, slash, number = text.strip().rpartition("/")
    found = read("message", message) if slash else None
    return None if found is None or not number.isascii() or not number.isdecimal() else (found, int(number[:3]))


def fitting(attachments: Sequence[Attachment]) -> tuple[Attachment, ...]:
    """What came with a message, fit to store: as many as are fetched, with names cut, and no size that none can have.

    One is left out whose address is too long, or cannot be stored: whoever sent it chose it so.
    """
    fit = [one for one in attachments if len(one.ref) <= _REF_CHARS_MAX and is_storable(one.ref)]
    return tuple(
        replace(one, name=_named(one.name), kind=_named(one.kind), size=min(max(0, one.size), _SIZE_MAX))
        for one in fit[:FILES_MAX]
    )


def _named(text: str) -> str:
    return cut(normalise(text), _NAME_CHARS_MAX)


@frozen
class Picture:
    """A picture as a model is shown it."""

    name: str
    kind: str
    content: bytes = field(repr=False)


def with_words(message: StoredMessage, files: Sequence[StoredFile]) -> str:
    """The text of a message with what is said in its recordings, as it is stored once they are kept."""
    text = message.text
    for one in files:
        if one.words and one.message_id == message.id and one.words not in text:
            text = adding_words(text, one.words)
    return text


def adding_words(text: str, words: str) -> str:
    """A text, and below it what is said in a recording."""
    return f"{text}\n{words}" if text else words


def attachment_line(message: StoredMessage, files: Iterable[StoredFile]) -> str:
    """What came with a message, in one line that can end no label it stands in; "" for nothing.

    Files are named with their state; without any, what came is named as the payload names it.
    """
    ours = [_described_file(one) for one in files if one.message_id == message.id]
    return "; ".join(ours) or described(message.inbound.content)


def _described_file(one: StoredFile) -> str:
    name = named_short(one.name)
    if one.state is FileState.KEPT:
        return f"{name} ({named_short(one.kind)}, {one.size:,} bytes, kept as {one.handle})"
    if one.state is FileState.WAITING:
        return f"{name} (not there yet)"
    return f"{name} (not kept: {named_short(one.reason)})"
