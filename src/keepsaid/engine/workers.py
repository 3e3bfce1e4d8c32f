"""Workers: claimed batches run side by side, each lane by itself, up to a limit."""

from __future__ import annotations

import asyncio
import logging

from keepsaid.domain.turn import Claimed
from keepsaid.engine.attempt import Attempt
from keepsaid.errors import StoreError
from keepsaid.pipeline.flow import Flow
from keepsaid.pipeline.lane.lease import Leases
from keepsaid.ports.clock import Clock
from keepsaid.ports.lanes import LaneView

_log = logging.getLogger("keepsaid.turn")
_MOMENT_MS = 20
"""After a claim the next is looked for a moment later, so that the turns just started go first."""


class Workers:
    """Runs turns."""

    def __init__(
        self, flow: Flow, lanes: LaneView, leases: Leases, attempt: Attempt, clock: Clock, turns_max: int
    ) -> None:
        self._flow = flow
        self._lanes = lanes
        self._leases = leases
        self._attempt = attempt
        self._clock = clock
        self._turns_max = turns_max
        self._running: set[asyncio.Task[None]] = set()

    async def claim(self) -> int | None:
        """Fill the free places; returns when the next batch is ready, or None while all places are taken."""
        free = self._turns_max - len(self._running)
        if not free:
            return None
        claimed = await self._flow.claim(self._leases, free)
        for one in claimed:
            task = asyncio.create_task(self._work(one), name=f"turn-{one.turn_id}")
            self._running.add(task)
            task.add_done_callback(self._finished)
        if len(claimed) == free:
            return None
        return self._clock.now_ms() + _MOMENT_MS if claimed else await self._lanes.next_ready()

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._flow.hints.work.set()

    async def _work(self, claimed: Claimed) -> None:
        async def answer() -> None:
            async with self._leases.kept(claimed):
                await self._flow.answer(claimed)

        try:
            how = await self._attempt.at(claimed, answer)
        except StoreError as error:
            _log.error("turn %s: %s", claimed.turn_id, error.what, extra={"code": error.code})
            return
        finally:
            self._flow.hints.deliver.set()
        _log.info("turn ended", extra={"turn": claimed.turn_id, "batch": claimed.batch.id, "how": how})

    async def stop(self, patience_s: float) -> None:
        """Let running turns end; those that take too long are returned to the queue."""
        if self._running:
            await asyncio.wait(self._running, timeout=patience_s)
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
