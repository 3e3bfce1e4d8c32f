"""Marked sessions and what was said in them, as the collector needs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.collection import CollectionLine, Passage


class CollectionView(Protocol):
    """Reads marks, and the records they stand for."""

    async def collections(self, states: Sequence[str], limit: int) -> Sequence[CollectionLine]:
        """Sessions whose collection is `marked`, `claimed` or `parked`, those first that are due first."""
        ...

    async def passage(self, session_id: int, after: int, limit: int) -> Passage | None:
        """What people and agent said in a session after a position, `limit` records at most; None for no session.

        Results of tools and what the program said by itself are left out; they are covered all the same.
        """
        ...

    async def marked_at(self) -> int | None:
        """When the last run that marked every unread session ended, milliseconds UTC; None before the first."""
        ...
