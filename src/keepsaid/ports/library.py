"""The library of memory: what is read closely by whoever asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.memory import Listener, Memory
from keepsaid.domain.narrowing import Narrowing


class Library(Protocol):
    """Reads memories closely. Every read says who listens."""

    async def narrowed(self, listener: Listener, ids: Sequence[int], to: Narrowing) -> Sequence[int]:
        """Those of the memories that the listener may hear and that fit, in the order given."""
        ...

    async def sources(self, listener: Listener, memory: Memory, limit: int) -> Sequence[Memory]:
        """The episodes a memory was made from that the listener may hear, in order; an episode is its own source."""
        ...

    async def around(self, listener: Listener, memory: Memory, each: int) -> Sequence[Memory]:
        """An episode between so many episodes of its lane before and after it that the listener may hear, in order."""
        ...
