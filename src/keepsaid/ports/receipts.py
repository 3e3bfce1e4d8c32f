"""Receipts, as who explains and who judges need them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.feedback import Feedback, Reminded, Use
from keepsaid.domain.lane import Lane


class ReceiptView(Protocol):
    """Reads in which turns memories came up, and what people said of that."""

    async def reminded(self, lane: Lane) -> Reminded | None:
        """The newest of the lane's last twenty turns that was shown any memory."""
        ...

    async def uses(self, memory_id: int, turns: int) -> Sequence[Use]:
        """The turns a memory was shown to, and of the newest `turns` those it was left out of; newest first."""
        ...

    async def wrong(self, lane: Lane) -> Sequence[Feedback]:
        """What was said to be wrong for turns of a lane and still stands, newest first."""
        ...

    async def feedback(self, memory_id: int) -> Sequence[Feedback]:
        """What people said of a memory, newest first, withdrawn or not."""
        ...
