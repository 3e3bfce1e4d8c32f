"""Hearing: letting more hear a memory, and telling who did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.memory import Listener
from keepsaid.domain.widening import Refusal, Widened, WidenMemory


class Hearing(Protocol):
    """Who may hear a memory, changed by a person's word alone and on record."""

    async def widen(self, commit: WidenMemory) -> Widened | Refusal:
        """Let a memory be heard more widely, or say why not; nothing is changed then."""
        ...

    async def widened(self, listener: Listener, memory_id: int) -> Sequence[Widened]:
        """How a memory that the listener may hear was widened, the first first."""
        ...
