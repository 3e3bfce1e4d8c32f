"""The inbox, by its owner's word: batches queued again or dropped, replies settled, a lane begun anew."""

from __future__ import annotations

from keepsaid.domain.commits import Decide, Drop, MarkReplyShown, Requeue
from keepsaid.domain.compaction import CutContext, CutReason
from keepsaid.domain.lane import Lane
from keepsaid.ports.runtime import Clock, Wakeups
from keepsaid.ports.store import Store
from keepsaid.text.normal import normalise


class InboxService:
    """Decides about what is stored; whoever works on it is woken."""

    def __init__(self, operations: Store, clock: Clock, hints: Wakeups) -> None:
        self._operations = operations
        self._clock = clock
        self._hints = hints

    async def requeue(self, batch_id: int, reason: str) -> bool:
        """Queue a dead, dropped or parked batch again; False when it is none of these."""
        done = await self._operations.apply(Requeue(batch_id, self._clock.now_ms(), normalise(reason)))
        self._hints.work.set()
        return done

    async def drop(self, batch_id: int, reason: str) -> bool:
        """Drop a queued batch; False when it is not queued."""
        done = await self._operations.apply(Drop(batch_id, self._clock.now_ms(), normalise(reason)))
        self._hints.work.set()
        return done

    async def mark_seen(self, reply_id: int, provider_id: str | None = None) -> bool:
        """Record that a reply was pulled; `provider_id` is what its medium calls it."""
        return await self._operations.apply(MarkReplyShown(reply_id, self._clock.now_ms(), provider_id))

    async def settle_reply(self, reply_id: int, *, again: bool) -> bool:
        """Send a dead reply `again`, or accept that it will not arrive; False when it is not dead."""
        done = await self._operations.apply(Decide(reply_id, self._clock.now_ms(), again))
        self._hints.deliver.set()
        return done

    async def reset_lane(self, lane: Lane) -> int:
        """End a lane's context here; returns how many records it had, -1 where it moved meanwhile."""
        tail = await self._operations.context(lane, 1)
        cut = CutContext(lane, tail.version, tail.head, CutReason.RESET, self._clock.now_ms())
        return tail.head - tail.covered if await self._operations.apply(cut) else -1
