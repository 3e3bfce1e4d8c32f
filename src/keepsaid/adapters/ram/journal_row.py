"""What the RAM store holds of subscribers and of what is on its way to them."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.domain.event import Event
from keepsaid.domain.states import move


@dataclass(slots=True)
class SubscriptionRow:
    """Who is told of what, and up to which line."""

    topics: tuple[str, ...]
    reached: int


@dataclass(slots=True)
class DeliveryRow:
    """One event on its way to one subscriber."""

    id: int
    subscriber: str
    event: Event
    due_at: int
    state: str = "pending"
    attempts: int = 0
    fence: int = 0
    held_until: int = 0
    ended_at: int | None = None
    error: str = ""

    def go(self, verb: str) -> None:
        """Move on."""
        self.state = move("delivery", self.state, verb)
