"""Learning, as whoever found something to remember needs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.learnt import How, Learnt
from keepsaid.domain.memory import NewMemory
from keepsaid.ports.echoes import Echoes

__all__ = ["How", "Learning", "Learnt"]


class Learning(Protocol):
    """Learns what is true, each thing once."""

    @property
    def echoes(self) -> Echoes:
        """The sentences that were forgotten."""
        ...

    async def learn(self, memories: Sequence[NewMemory], at: int) -> tuple[Learnt, ...]:
        """Learn memories, all of a call or none; says of each, in order, what became of it.

        What says the same as a memory that is there becomes evidence for it; what says otherwise of the same slot
        ends what held before. Learning the same again, by key or from the same source, changes nothing. `at` is
        milliseconds UTC. Raises a StoreError with nothing learned.
        """
        ...
