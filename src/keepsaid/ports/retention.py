"""What is kept and for how long, as the pruner, the gauge and `status` need it."""

from __future__ import annotations

from typing import Protocol

from keepsaid.domain.retention import Backlog, Prunable, PruneHistory


class RetentionView(Protocol):
    """Reads what waits, and what may go."""

    async def backlog(self) -> Backlog:
        """Messages without an answer that nobody works on yet, routed or not."""
        ...

    async def prune_history(self) -> PruneHistory:
        """The runs of the pruner."""
        ...

    async def prunable(self, messages_before: int, records_before: int) -> Prunable:
        """What a run would remove of what was settled before these times, milliseconds UTC."""
        ...
