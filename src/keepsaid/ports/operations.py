"""The operational store, as a need: the one way to write it."""

from __future__ import annotations

from typing import Protocol, TypeVar

from keepsaid.domain.commits import Commit

R = TypeVar("R")


class Operations(Protocol):
    """Applies commits."""

    async def apply(self, commit: Commit[R]) -> R:
        """Apply one commit, atomically; returns only after it is on disk.

        Raises StoreFull, StoreBroken or another StoreError with nothing of the commit kept, and
        IllegalMove when the commit asks for a move its table does not list.
        """
        ...
