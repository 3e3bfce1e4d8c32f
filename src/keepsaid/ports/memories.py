"""The memory store, as its writers need it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.memory import Kind, Listener, Memory, NewMemory, Used
from keepsaid.domain.rarity import Rarity


class Memories(Protocol):
    """Keeps memories. Every read says who listens."""

    async def keep(self, memories: Sequence[NewMemory], at: int, used: Sequence[Used] = ()) -> tuple[int, ...]:
        """Write memories, each under its key; one that is there already is left as it is. Returns their ids.

        With them goes what turns `used`, which is counted once for every turn, however often it is told.
        """
        ...

    async def find(self, listener: Listener, kinds: Sequence[Kind], limit: int) -> Sequence[Memory]:
        """Memories the listener may hear, newest first; no kinds means all."""
        ...

    async def important(self, listener: Listener, kind: Kind, limit: int) -> Sequence[Memory]:
        """Memories of a kind the listener may hear, the most important first, then the newest.

        Of episodes none is more important than another; there are none.
        """
        ...

    async def get(self, listener: Listener, memory_id: int) -> Memory | None:
        """One memory, if the listener may hear it."""
        ...

    async def fetch(self, listener: Listener, ids: Sequence[int], as_of: int | None = None) -> Sequence[Memory]:
        """Those of the memories that are active or superseded and that the listener may hear, in the order given.

        With `as_of`, only what held true at that time (milliseconds UTC).
        """
        ...

    async def rarity(self, text: str) -> Rarity:
        """In how many of all pieces the words of a text stand; words that say nothing are left out."""
        ...

    async def alike(self, ids: Sequence[int], above: float) -> tuple[tuple[int, int], ...]:
        """Pairs of these memories, the smaller id first, that say the same: their cosine is above `above`.

        What has no vector yet is like nothing.
        """
        ...

    async def counts(self) -> dict[str, int]:
        """Active memories by kind."""
        ...
