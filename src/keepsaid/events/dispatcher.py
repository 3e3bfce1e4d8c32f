"""The dispatcher: what the journal tells becomes deliveries, for each subscriber from where it has come to."""

from __future__ import annotations

from keepsaid.domain.event import Distribute
from keepsaid.events.bell import Bell
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import Operations


class Dispatcher:
    """Makes deliveries, a piece at a time, and rings for those who wait for them."""

    def __init__(self, operations: Operations, clock: Clock, bell: Bell) -> None:
        self._operations = operations
        self._clock = clock
        self._bell = bell

    async def work(self) -> int | None:
        """Read the next lines; at once again while there are more."""
        if await self._operations.apply(Distribute(self._clock.now_ms())):
            self._bell.ring()
            return 0
        return None
