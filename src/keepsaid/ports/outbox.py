"""The outbox, as its readers need it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.reply import Reply


class OutboxView(Protocol):
    """Reads replies."""

    async def unseen(self, channel: str, conversation: str, limit: int = 1_000) -> Sequence[Reply]:
        """The first replies of a pulled conversation that nobody has pulled yet, in order."""
        ...

    async def last_id(self) -> int:
        """The largest id of all messages, batches, replies and tasks, 0 before the first.

        New ones are larger: else the order of replies is lost, and after a clock that was set back two may be the same.
        """
        ...

    async def next_send(self, channels: tuple[str, ...]) -> int | None:
        """When the next reply of these channels may be tried; None when none waits."""
        ...
