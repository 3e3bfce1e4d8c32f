"""Recall, as the pipeline needs it."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from keepsaid.domain.memory import Found, Injection, Listener, Memory, Recalled
from keepsaid.domain.turn import Claimed, Recent


class TextLeg(Protocol):
    """Full-text search over memories."""

    async def text(self, listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
        """The best matches the listener may hear. Any string is a legal query; none raises."""
        ...


class Shelf(Protocol):
    """Where what was found is read."""

    async def fetch(self, listener: Listener, ids: Sequence[int], as_of: int | None = None) -> Sequence[Memory]:
        """Those of the memories that are active or superseded and that the listener may hear, in the order given.

        With `as_of`, only what held true at that time (milliseconds UTC).
        """
        ...


class Recall(Protocol):
    """Ranked recall over all legs, ungated."""

    async def recall(self, listener: Listener, query: str, limit: int, as_of: int | None = None) -> Recalled:
        """The best memories for a query, best first, with the legs that were missing named.

        With `as_of`, of what held true at that time (milliseconds UTC); else what holds now comes first.
        """
        ...


class Reminder(Protocol):
    """Recall done for a turn without the model asking."""

    async def remind(self, claimed: Claimed, recent: Awaitable[Recent]) -> Injection:
        """What comes to mind for these messages, less what the prompt already shows. Never raises.

        `recent` is what the prompt shows, read meanwhile.
        """
        ...
