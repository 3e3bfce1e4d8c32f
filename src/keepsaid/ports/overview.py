"""What is known of a conversation beside the lane at hand, as the context needs it."""

from __future__ import annotations

from typing import Protocol

from keepsaid.domain.lane import Lane


class Overview(Protocol):
    """Tells of the other lanes of a conversation."""

    async def told(self, lane: Lane) -> str:
        """What stands for the past of a conversation's other lanes; "" where there is none, or nothing to tell."""
        ...
