"""The redactor, as everything needs it that keeps or writes words elsewhere than in the buffer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.redaction import Mark


class Redactor(Protocol):
    """Finds secrets in texts. The time is linear in the text; a long one is read in a thread."""

    def marks(self, text: str) -> tuple[Mark, ...]:
        """The secrets in a text, in order; they do not overlap."""
        ...

    def redacted(self, text: str) -> str:
        """The text with every secret replaced by what kind it was; doing so again changes nothing."""
        ...


class MarksView(Protocol):
    """Reads where stored messages hold secrets."""

    async def marks(self, message_id: int) -> tuple[Mark, ...]:
        """The marks of a message's text; nothing before its episode is recorded."""
        ...


_INLINE_CHARS_MAX = 2_000
"""More is read in a thread: the event loop is not to be held for longer than 2 ms."""


async def marks_of(redactor: Redactor, texts: Sequence[str]) -> list[tuple[Mark, ...]]:
    """The secrets in each of some texts."""
    if sum(map(len, texts)) <= _INLINE_CHARS_MAX:
        return [redactor.marks(text) for text in texts]
    return await asyncio.to_thread(lambda: [redactor.marks(text) for text in texts])
