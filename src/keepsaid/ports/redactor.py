"""The redactor, as everything needs it that keeps or writes words elsewhere than in the buffer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.redaction import Masked, SecretMark, masked


class Redactor(Protocol):
    """Finds secrets in texts. The time is linear in the text; a long one is read in a thread."""

    def marks(self, text: str) -> tuple[SecretMark, ...]:
        """The secrets in a text, in order; they do not overlap."""

    def redacted(self, text: str) -> str:
        """The text with every secret replaced by what kind it was; doing so again changes nothing."""


class MarksView(Protocol):
    """Reads where stored messages hold secrets."""

    async def marks(self, message_id: int) -> tuple[SecretMark, ...]:
        """The marks of a message's text; nothing before its episode is recorded."""


_INLINE_CHARS_MAX = 2_000
"""More is read in a thread: the event loop is not to be held for longer than 2 ms."""


async def masked_texts(redactor: Redactor, texts: Sequence[str]) -> list[Masked]:
    """Each of some texts without its secrets."""

    def read() -> list[Masked]:
        found = ((text, redactor.marks(text)) for text in texts)
        return [Masked(masked(text, marks) if marks else text, marks) for text, marks in found]

    return read() if sum(map(len, texts)) <= _INLINE_CHARS_MAX else await asyncio.to_thread(read)
