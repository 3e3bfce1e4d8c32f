"""What is not associated yet, as the pass needs it that associates it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from keepsaid.domain.space import VectorSpace


@dataclass(frozen=True, slots=True)
class Unrelated:
    """A memory that may be associated: its vector, as 32-bit floats, and the episodes it was made from."""

    memory_id: int
    vector: bytes
    episodes: tuple[int, ...] = ()


class Relating(Protocol):
    """Looks for what is to be associated; episodes and summaries are not."""

    async def related_upto(self) -> int:
        """The newest memory that was found to be related to an older one; 0 for none."""
        ...

    async def unrelated(self, space: VectorSpace, after: int, limit: int) -> Sequence[Unrelated]:
        """Learned memories that hold, behind this one, by id, up to the first that still waits for its vector."""
        ...

    async def among_learned(self, ids: Sequence[int]) -> Sequence[int]:
        """Those of the memories that are learned ones and hold, in the order given."""
        ...
