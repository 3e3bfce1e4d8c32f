"""Truth as people look at it and put it right: all versions of what is known, and what they say of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.learnt import Learnt
from keepsaid.domain.memory import Listener, Memory, NewMemory


class Truth(Protocol):
    """Versions of memories. Every read says who listens."""

    async def history(self, listener: Listener, memory_id: int) -> Sequence[Memory]:
        """All memories of the slot of this one that the listener may hear, in the order in which they began to hold.

        Of one that has no slot, it and those that took its place; none when it may not be heard.
        """
        ...

    async def correct(self, memory_id: int, memory: NewMemory, at: int) -> Learnt:
        """Put a memory right: the new words stand in its slot and scope, what it said before is kept as past.

        Doing it again by the same key does nothing. `at` is milliseconds UTC.
        """
        ...

    async def pin(self, memory_id: int, *, pinned: bool) -> bool:
        """Pin a memory, so that it never fades, or unpin it; False when there is no such memory."""
        ...

    async def confirm(self, memory_id: int, at: int) -> bool:
        """Take a memory for certain from now on (milliseconds UTC); False when there is no such memory."""
        ...

    async def put_away(self, memory_ids: Sequence[int], at: int, *, back: bool = False) -> tuple[int, ...]:
        """Archive what is known, or bring it `back`, as used then (milliseconds UTC); returns those it was done to.

        Not archived are episodes and summaries.
        """
        ...

    async def merge(self, into: int, others: Sequence[int], at: int) -> bool:
        """Have one memory stand for others that say the same, with their sources; they are kept, and never recalled.

        All or none: False when one is not there or was merged before, is an episode or a summary, is of another scope
        or slot than `into`, or something else held between them.
        """
        ...
