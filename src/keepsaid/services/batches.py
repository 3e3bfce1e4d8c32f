"""Batches for those who answer them in place of turns: the program that opened the library, or workers over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from keepsaid.domain import commits, ids, prompt, turn
from keepsaid.domain.route import Action
from keepsaid.engine.workers import Attempt
from keepsaid.errors import KeepsaidError, LeaseLost, MessageDamaged, StoreError
from keepsaid.pipeline.answering import check
from keepsaid.pipeline.leasing import Leases
from keepsaid.pipeline.runner import MessagePipeline
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import Store
from keepsaid.text.normal import normalise
from keepsaid.values import frozen

_POLL_MS = 1_000
EXPIRED = "its worker neither answered nor renewed the lease in time"
"""Why a batch was charged whose lease ran out."""


@frozen
class BatchService:
    """Leases batches and settles them. A lease is its batch and its fence: nothing in memory decides about it."""

    operations: Store
    flow: MessagePipeline
    leases: Leases
    attempt: Attempt
    clock: Clock

    async def claim(self, limit: int = 1) -> Sequence[turn.ClaimedBatch]:
        """Lease batches that are ready, best first; a caller who is cancelled meanwhile leaves them in the queue."""
        claiming = asyncio.ensure_future(self.flow.claim(self.leases, limit))
        try:
            leases = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            await asyncio.shield(self._release(claiming))
            raise
        opened = [await self.attempt.opened(lease, self.flow.open) for lease in leases]
        return [one for one in opened if one is not None and await self._is_whole(one) and not await self._kept(one)]

    async def _kept(self, claimed: turn.ClaimedBatch) -> bool:
        """Whether nobody is to answer a batch: then it is settled, as the runtime itself does."""
        if claimed.batch.verdict.action is not Action.LISTEN:
            return False
        await self.flow.answer(claimed)
        return True

    async def _is_whole(self, claimed: turn.ClaimedBatch) -> bool:
        """Whether every message is what was stored; a batch with one that is not is parked."""
        try:
            check(claimed)
        except MessageDamaged as error:
            await self.attempt.failed(claimed, commits.Failure.PARK, error)
            return False
        return True

    async def _release(self, claiming: asyncio.Future[tuple[turn.Lease, ...]]) -> None:
        with suppress(StoreError):
            for lease in await claiming:
                await self.attempt.released(lease.batch)

    async def until_ready(self, asked_at: int, most_ms: float) -> None:
        """Wait for work, at most `most_ms`; a batch that was ready and not leased waits until other work ends."""
        due = await self.operations.next_ready()
        wait_ms = _POLL_MS if due is None or due <= asked_at else max(1, min(_POLL_MS, due - self.clock.now_ms()))
        await self.clock.wait(self.flow.hints.work, min(wait_ms, most_ms))

    async def lease(self, limit: int, lease_ms: int, wait_ms: int) -> Sequence[turn.ClaimedBatch]:
        """Lease up to `limit` batches for as long as the worker asked; waits for the first, at most `wait_ms`.

        A batch that runs alone is leased for no longer than a trial may take.
        """
        until = self.clock.monotonic_ms() + wait_ms
        while True:
            asked_at = self.clock.now_ms()
            found = [one for one in await self.claim(limit) if await self._renewed(one, lease_ms)]
            left_ms = until - self.clock.monotonic_ms()
            if found or left_ms <= 0:
                return found
            await self.until_ready(asked_at, left_ms)

    async def _renewed(self, claimed: turn.ClaimedBatch, lease_ms: int) -> bool:
        until = self.clock.steady_ms() + self.bounded_ms(claimed, lease_ms)
        return await self.operations.apply(commits.Renew(claimed.batch.id, claimed.batch.fence, until))

    def bounded_ms(self, claimed: turn.ClaimedBatch, lease_ms: int) -> int:
        """Return how long a batch is leased for, of what was asked: one that runs alone as long as a trial may take."""
        limit_s = self.leases.limit_s(claimed)
        return lease_ms if limit_s is None else min(lease_ms, int(limit_s * 1000))

    async def renew(self, batch_id: int, fence: int, lease_ms: int) -> None:
        """Hold a lease for longer, from now on. Raises LeaseLost."""
        until = self.clock.steady_ms() + lease_ms
        if not await self.operations.apply(commits.Renew(batch_id, fence, until)):
            raise _lost(batch_id)

    async def charge_expired(self) -> None:
        """Charge an attempt to each batch whose lease ran out: its worker died of it, or takes too long."""
        for lease in await self.operations.expired(self.clock.steady_ms()):
            if (claimed := await self.operations.claimed(lease)) is not None:
                await self.fail(claimed, EXPIRED)

    async def find(self, batch_id: int, fence: int) -> turn.ClaimedBatch | None:
        """Return what a lease is for; None for one whose batch was done under it. Raises LeaseLost."""
        state, lease = await self.operations.lease(batch_id, fence)
        if lease is not None:
            return await self.flow.open(lease)
        if state == "done":
            return None
        raise _lost(batch_id)

    async def done(self, claimed: turn.ClaimedBatch, reply: str, worker: str) -> int | None:
        """Settle a batch, with the reply in the same commit; returns the reply's id. Raises LeaseLost."""
        said = normalise(reply)
        records = (prompt.Record(prompt.Role.ASSISTANT, said),) if said else ()
        outcome = turn.Outcome(said, records, turn.Usage(), normalise(f"consumer:{worker}"))
        return await self.flow.answering.commit(claimed, outcome)

    async def release(self, batch_id: int, fence: int) -> str:
        """Queue a batch again without charging it an attempt; returns its state. Raises LeaseLost."""
        if await self.find(batch_id, fence) is None:
            return "done"
        if not await self.operations.apply(commits.Release(batch_id, fence, 0)):
            raise _lost(batch_id)
        return "queued"

    async def fail(self, claimed: turn.ClaimedBatch, reason: str) -> str:
        """Charge a batch an attempt; it comes again, or is dead after the third. Returns its new state."""
        return await self.attempt.failed(claimed, commits.Failure.RETRY, KeepsaidError(normalise(reason)))


def _lost(batch_id: int) -> LeaseLost:
    return LeaseLost(f"{ids.show('batch', batch_id)} has another owner now, or none")
