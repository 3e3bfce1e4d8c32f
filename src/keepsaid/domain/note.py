"""Notes: what a process has to know again after its end, until a time."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.domain.commits import Commit
from keepsaid.domain.reply import ReplyDraft

ENDLESSLY = 1 << 62
"""Until when a note is kept that is never over (milliseconds UTC)."""


@dataclass(frozen=True, slots=True)
class Note(Commit[None]):
    """Keep a text under a name in place of the one before, until a time; times are milliseconds UTC.

    Notes that are over at `at` go with it.
    """

    name: str
    text: str
    until: int
    at: int


@dataclass(frozen=True, slots=True)
class NotifyOwner(Commit[bool]):
    """Put a notice to the owner in the outbox, where he last wrote in a direct chat, once under each name.

    True when it is there, now or from before; False when nobody knows where to tell him. The name is known for as
    long as a note of it is kept: until a time, milliseconds UTC.
    """

    notice: ReplyDraft
    name: str
    until: int
    at: int
