"""Fetching: files leave their channel for the store, each under a lease.

A file is fetched after its message is stored and routed; of what was dropped, nothing is. Its bytes are written in
pieces, each a commit of its own, so that a large file holds up no message (spec: channels, C14).
"""

from __future__ import annotations

from typing import NamedTuple

from keepsaid.domain.commits import Commit
from keepsaid.domain.message import Attachment
from keepsaid.values import frozen

PIECE_BYTES = 262_144
"""Bytes of a piece: so much is written in a few milliseconds."""


AWAITED, BROUGHT = "awaited", "brought"
"""The `ref` of a file whose bytes its sender brings with the message: until they are there, and once they are."""

AWAIT_MS = 60_000
"""For how long such bytes are waited for; a client that was answered nothing sends them again meanwhile."""

NOT_BROUGHT = "its bytes did not come: send the message again under its key"


def pieces_of(size: int) -> int:
    """The number of pieces in which a file of `size` bytes is kept; an empty one is one piece."""
    return max(1, -(-size // PIECE_BYTES))


class FileLease(NamedTuple):
    """The right to fetch a file, under its fence."""

    message_id: int
    number: int
    fence: int


@frozen
class FileJob:
    """A file to be fetched: whose message it came with, where its channel has it, and how often it was tried."""

    lease: FileLease
    channel: str
    account: str
    conversation: str
    attachment: Attachment
    tries: int


@frozen
class TakeFiles(Commit[tuple[FileJob, ...]]):
    """Take files to fetch, of messages that are routed; those of dropped messages are left.

    What is taken is due again at `until`, for whoever looks then: its fence tells the two apart.
    """

    limit: int
    at: int
    until: int


@frozen
class RecoverFiles(Commit[int]):
    """What another process began to fetch is due at once, and no longer its own; returns how many that are.

    Not so what is awaited: its sender has time to send it again.

    The try stays charged: a file that ends the process each time is left in the end.
    """

    at: int


@frozen
class TakeAwaited(Commit[tuple[FileLease, ...]]):
    """Take the files of a message whose bytes are there to be written: those that are awaited, and no others.

    Whoever wrote some of them before keeps no more of them. After `until` they are left.
    """

    message_id: int
    until: int


@frozen
class KeepBrought(Commit[bool]):
    """All pieces of a file are written, as many as `pieces`: the next fetching keeps it, and downloads nothing.

    Refused (False) with an old fence, or when its message is gone.
    """

    lease: FileLease
    pieces: int


@frozen
class KeepPiece(Commit[bool]):
    """Keep the `n`-th piece of a file, from 0; refused (False) with an old fence or when its message is gone."""

    lease: FileLease
    n: int
    content: bytes


@frozen
class KeepFile(Commit[bool]):
    """All pieces of a file are there. What is said in it is added to the text of its message.

    Refused (False) with an old fence, or when its message is gone or forgotten.
    """

    lease: FileLease
    pieces: int
    kind: str
    size: int
    words: str = ""
    reason: str = ""


@frozen
class LeaveFile(Commit[bool]):
    """A file is not kept, for a reason; its pieces go. Refused (False) with an old fence."""

    lease: FileLease
    reason: str


@frozen
class PutOffFile(Commit[bool]):
    """A file could not be fetched now and is due again at `until`; refused (False) with an old fence."""

    lease: FileLease
    until: int
    reason: str
