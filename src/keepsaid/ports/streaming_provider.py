"""What makes a channel show answers while they are written."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from keepsaid.domain.lane import Lane


@runtime_checkable
class StreamingProvider(Protocol):
    """Shows pieces of an answer as they come. Only the whole answer counts, which comes by `send`."""

    async def stream(self, lane: Lane, piece: str) -> None:
        """Show a piece; "" says that the answer is settled. What comes faster than it is shown is left out."""
        ...
