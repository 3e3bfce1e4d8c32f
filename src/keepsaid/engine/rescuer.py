"""The rescuer: what dead owners held goes back to the queue, at start and continuously."""

from __future__ import annotations

from keepsaid.domain.commits import ExpireLeases, VoidLeases
from keepsaid.ports.clock import Clock, Ids
from keepsaid.ports.operations import Operations

_NOTICES_MAX = 64


class Rescuer:
    """Ends leases that nobody keeps."""

    def __init__(self, operations: Operations, clock: Clock, ids: Ids, owner: str, notice: str) -> None:
        self._operations = operations
        self._clock = clock
        self._ids = ids
        self._owner = owner
        self._notice = notice

    async def recover(self) -> tuple[int, ...]:
        """At start, under the instance lock: every lease of a former owner is void; returns dead batches."""
        reply_ids = tuple(self._ids.next() for _ in range(_NOTICES_MAX))
        return await self._operations.apply(VoidLeases(self._owner, self._clock.now_ms(), self._notice, reply_ids))

    async def rescue(self) -> int:
        """Continuously: leases that ran out; returns how many."""
        return await self._operations.apply(ExpireLeases(self._clock.steady_ms()))
