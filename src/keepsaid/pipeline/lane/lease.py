"""Leases: take the next batches, and keep each while its turn runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass

from keepsaid.domain.commits import Claim, Renew
from keepsaid.domain.priority import Ageing
from keepsaid.domain.suspicion import trial_limit_ms
from keepsaid.domain.turn import Claimed, Lease
from keepsaid.errors import LeaseLost, StoreError
from keepsaid.pipeline.lane.life import Life
from keepsaid.ports.runtime import Clock, Hints, Ids
from keepsaid.ports.store import Operations

_AGAIN_MS = 100
"""After a renewal that the store refused: what the lease was for may be another's by now."""


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """How long a lease lasts, how often it is renewed, and how long a first trial may take (ms)."""

    lease_ms: int = 60_000
    renew_ms: int = 20_000
    alone_ms: int = 60_000
    ageing: Ageing = Ageing()


class Leases:
    """Claims for one owner. With `hints` it is told at once that a batch was taken away, else at the next renewal.

    By `life`, the life of this process, trials may begin.
    """

    def __init__(
        self,
        operations: Operations,
        clock: Clock,
        ids: Ids,
        owner: str,
        terms: LeaseTerms,
        hints: Hints | None = None,
        life: Life | None = None,
    ) -> None:
        self._operations = operations
        self._clock = clock
        self._ids = ids
        self._owner = owner
        self._terms = terms
        self._hints = hints or Hints()
        self._life = life or Life(operations, clock, owner)

    @property
    def lived_ms(self) -> int:
        """How long the process has lived."""
        return self._life.lived_ms

    async def claim(self, limit: int) -> tuple[Lease, ...]:
        """Lease up to `limit` batches, best first."""
        turn_ids = tuple(self._ids.next() for _ in range(limit))
        until = self._clock.steady_ms() + self._terms.lease_ms
        return await self._operations.apply(
            Claim(
                self._owner,
                limit,
                turn_ids,
                self._clock.due_ms(),
                until,
                self._terms.ageing,
                self._life.trial_age_ms,
                self._life.terms.trials,
            )
        )

    @asynccontextmanager
    async def kept(self, claimed: Claimed) -> AsyncIterator[None]:
        """Hold the lease while the block runs; the block is cancelled and LeaseLost raised when it is lost.

        Raises TimeoutError when a batch that runs alone takes too long.
        """
        turn = asyncio.current_task()
        assert turn is not None, "a lease is kept by a coroutine"
        lost = False

        def give_up() -> None:
            nonlocal lost
            lost = True
            turn.cancel()

        try:
            async with self.renewed(claimed, give_up), asyncio.timeout(self.limit_s(claimed)):
                yield
        except asyncio.CancelledError:
            if not lost:
                raise
            turn.uncancel()
            raise LeaseLost(f"batch {claimed.batch.id} has another owner now") from None

    def limit_s(self, claimed: Claimed) -> float | None:
        """Seconds a batch may take: a bound for a trial, because nothing runs beside it."""
        return trial_limit_ms(self._terms.alone_ms, claimed.batch.survived) / 1000 if claimed.alone else None

    @asynccontextmanager
    async def renewed(self, claimed: Claimed, lost: Callable[[], None]) -> AsyncIterator[None]:
        """Renew the lease while the block runs; `lost` is called once when another owner has it."""
        held, taken = self._hints.held, asyncio.Event()
        held.setdefault(claimed.batch.id, []).append(taken)
        renewal = asyncio.create_task(self._renew(claimed, lost, taken))
        try:
            with self._life.trial() if claimed.alone else nullcontext():
                yield
        finally:
            renewal.cancel()
            held[claimed.batch.id].remove(taken)
            if not held[claimed.batch.id]:
                del held[claimed.batch.id]

    async def _renew(self, claimed: Claimed, lost: Callable[[], None], taken: asyncio.Event) -> None:
        held, wait_ms = True, self._terms.renew_ms
        while held:
            await self._clock.wait(taken, wait_ms)
            renewal = Renew(claimed.batch.id, claimed.batch.fence, self._clock.steady_ms() + self._terms.lease_ms)
            wait_ms = min(_AGAIN_MS, self._terms.renew_ms)
            with suppress(StoreError):
                held = await self._operations.apply(renewal)
                wait_ms = self._terms.renew_ms
        lost()
