"""The memory store, as its writers need it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.memory import Kind, Listener, Memory, NewMemory


class Memories(Protocol):
    """Keeps memories. Every read says who listens."""

    async def keep(self, memories: Sequence[NewMemory], at: int) -> tuple[int, ...]:
        """Write memories, each under its key; one that is there already is left as it is. Returns their ids."""
        ...

    async def find(self, listener: Listener, kinds: Sequence[Kind], limit: int) -> Sequence[Memory]:
        """Memories the listener may hear, newest first; no kinds means all."""
        ...

    async def get(self, listener: Listener, memory_id: int) -> Memory | None:
        """One memory, if the listener may hear it."""
        ...

    async def fetch(self, listener: Listener, ids: Sequence[int]) -> Sequence[Memory]:
        """Those of the memories that are active or superseded and that the listener may hear, in the order given."""
        ...

    async def counts(self) -> dict[str, int]:
        """Active memories by kind."""
        ...
