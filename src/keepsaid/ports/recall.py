"""Recall, as the pipeline needs it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from keepsaid.domain.memory import Hit, Injection, Listener, Recalled
from keepsaid.domain.turn import Claimed, Recent


class TextLeg(Protocol):
    """Full-text search over memories."""

    async def text(self, listener: Listener, query: str, limit: int) -> tuple[Hit, ...]:
        """The best matches the listener may hear. Any string is a legal query; none raises."""
        ...


class Recall(Protocol):
    """Ranked recall over all legs, ungated."""

    async def recall(self, listener: Listener, query: str, limit: int) -> Recalled:
        """The best memories for a query, best first, with the legs that were missing named."""
        ...


class Reminder(Protocol):
    """Recall done for a turn without the model asking."""

    async def remind(self, claimed: Claimed, recent: Awaitable[Recent]) -> Injection:
        """What comes to mind for these messages, less what the prompt already shows. Never raises.

        `recent` is what the prompt shows, read meanwhile.
        """
        ...
