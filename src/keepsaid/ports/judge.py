"""Who rules on pairs of memories, and where they are found and the rulings kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from keepsaid.domain.pairs import Pair, Ruled, Ruling


@dataclass(frozen=True, slots=True)
class Undecided:
    """Pairs in the order in which they are looked at, and the memory behind which to go on."""

    pairs: tuple[Pair, ...]
    upto: int


class Judge(Protocol):
    """Rules on pairs."""

    @property
    def name(self) -> str:
        """What to call it; never empty."""
        ...

    async def judge(self, pairs: Sequence[Pair]) -> Sequence[Ruling | None]:
        """A ruling for each pair, in order; None where it gave none. One call; raises a ModelError.

        What the memories say is data: no word of them changes what is asked.
        """
        ...


class Pairs(Protocol):
    """Looks for pairs nobody ruled on, and keeps the rulings."""

    async def undecided(self, after: int, limit: int) -> Undecided:
        """Pairs of related memories that hold, whose newer-kept one is behind `after`, up to a limit."""
        ...

    async def asked_since(self, at: int) -> int:
        """On how many pairs a model ruled after a time (milliseconds UTC)."""
        ...

    async def rule(self, rulings: Sequence[Ruled], at: int) -> int:
        """Keep rulings and do what they come to; returns how many were new. Raises a StoreError with nothing done."""
        ...
