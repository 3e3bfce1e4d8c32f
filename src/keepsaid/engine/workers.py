"""Workers: claimed batches run side by side, each lane by itself, up to a limit."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial

from keepsaid.domain.lane import Lane
from keepsaid.domain.turn import Claimed, Lease
from keepsaid.engine.attempt import Attempt
from keepsaid.errors import StoreError
from keepsaid.pipeline.flow import Flow
from keepsaid.pipeline.leasing import Leases
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store_views import LaneView

_log = logging.getLogger("keepsaid.turn")
_MOMENT_MS = 50
"""After a claim the next is looked for a moment later, so that the turns just started go first."""

_SENT_BACK = 0.1
"""The share of its time in a place that a turn gets which an outage sent back: not none, or all would call at once."""


@dataclass(frozen=True, slots=True)
class Places:
    """How many turns run at a time.

    A turn that takes longer than `slow_s` seconds gives its place to another, so that lanes whose model hangs
    hold up nobody else; one that an outage sent back does so after a tenth of that. No more than `open_max` are ever
    open.
    """

    at_once: int = 8
    slow_s: float = 2.0
    open_max: int = 256


class Workers:
    """Runs turns."""

    def __init__(
        self, flow: Flow, lanes: LaneView, leases: Leases, attempt: Attempt, clock: Clock, places: Places
    ) -> None:
        self._flow = flow
        self._lanes = lanes
        self._leases = leases
        self._attempt = attempt
        self._clock = clock
        self._places = places
        self._running: set[asyncio.Task[None]] = set()
        self._slow: set[asyncio.Task[None]] = set()
        self._of_lane: dict[Lane, asyncio.Task[None]] = {}
        self._full = False

    async def claim(self) -> int | None:
        """Fill the free places; returns when the next batch is ready, or None while all places are taken."""
        places = self._places
        free = min(places.at_once + len(self._slow), places.open_max) - len(self._running)
        self._full = True
        if free < 1:
            return None
        now, lived_ms = self._clock.due_ms(), self._leases.lived_ms
        leases = await self._flow.claim(self._leases, free)
        for one in leases:
            lane = one.batch.lane
            task = asyncio.create_task(self._work(one, self._of_lane.get(lane)), name=f"turn-{one.turn_id}")
            self._running.add(task)
            self._of_lane[lane] = task
            task.add_done_callback(partial(self._finished, lane))
            slow_after_s = places.slow_s * (_SENT_BACK if one.batch.deferrals else 1)
            asyncio.get_running_loop().call_later(slow_after_s, self._slowed, task)
        self._full = len(leases) == free
        if self._full:
            return None
        if leases:
            return now + _MOMENT_MS
        due = await self._lanes.next_ready()
        return due if due is None or due > now else await self._trial_due(now, lived_ms)

    async def _trial_due(self, now: int, lived_ms: int) -> int | None:
        """Return when a trial may begin; None when it cannot before a turn has ended.

        A ready batch that was not claimed waits for one or the other. `lived_ms` is the age of the process at `now`,
        before the claim: read after it, an age that was reached meanwhile would be missed until the next poll.
        """
        after_ms = await self._lanes.next_trial()
        return None if after_ms is None or after_ms <= lived_ms else now + after_ms - lived_ms

    def _slowed(self, task: asyncio.Task[None]) -> None:
        if task in self._running:
            self._slow.add(task)
            self._flow.hints.work.set()

    def _finished(self, lane: Lane, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._slow.discard(task)
        if self._of_lane.get(lane) is task:
            del self._of_lane[lane]
        if self._full:
            self._flow.hints.work.set()

    async def _work(self, lease: Lease, before: asyncio.Task[None] | None) -> None:
        how = "broken off"
        try:
            how = await self._worked(lease, before)
        except StoreError as error:
            _log.error("turn broken off: %s", error.what, extra={"code": error.code, "turn": lease.turn_id})
        finally:
            self._flow.hints.deliver.set()
            if how != "done":
                self._flow.hints.work.set()  # it may be due again soon; a committed turn has told so itself
        if how not in ("broken off", "waiting"):
            _log.info("turn ended", extra={"turn": lease.turn_id, "batch": lease.batch.id, "how": how})

    async def _worked(self, lease: Lease, before: asyncio.Task[None] | None) -> str:
        async def opened(lease: Lease) -> Claimed:
            if before is not None:  # it lost its lane to this one, and nobody told it yet
                before.cancel()
                await asyncio.wait((before,))
            return await self._flow.open(lease)

        claimed = await self._attempt.opened(lease, opened)
        if claimed is None:
            return "waiting"

        async def answer() -> None:
            async with self._leases.kept(claimed):
                await self._flow.answer(claimed)

        return await self._attempt.at(claimed, answer)

    async def stop(self, patience_s: float) -> None:
        """Let running turns end; those that take too long are returned to the queue."""
        if self._running:
            await asyncio.wait(self._running, timeout=patience_s)
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
