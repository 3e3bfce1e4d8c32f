"""Workers: claimed batches run side by side, each lane by itself, up to a limit; each try is charged when it fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from keepsaid import errors
from keepsaid.domain import commits, message
from keepsaid.domain.batch import StoredBatch
from keepsaid.domain.reply import ReplyDraft, address
from keepsaid.domain.turn import ClaimedBatch, Lease
from keepsaid.pipeline import leasing, runner
from keepsaid.pipeline.turn import commands, run
from keepsaid.ports import runtime, store_views
from keepsaid.ports.channel import Progresses, TurnProgress
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.turn")
SURVIVED = "the program ran for as long as a trial lasts while it worked on this alone"
"""Why a trial ended; nothing is charged for it."""

TAKEN = "this try was broken off; the message is taken up again"
"""The reason for clients that wait for a batch that was interrupted, or that another owner has."""

_ADDRESSES_MAX = 16
"""The further addresses that get a notice when other batches had joined the turn; the rest stays in review."""

HOPELESS = (errors.ModelAuth, errors.ModelQuota, errors.ModelRejected)
"""Trying again cannot help before a person does something."""


@frozen
class RetryPolicy:
    """How long an outage may last before work is given up, and the waits between attempts, in milliseconds."""

    outage_ms_max: int = 900_000
    wait_ms_first: int = 1_000
    wait_ms_max: int = 60_000

    def wait_ms(self, tries: int) -> int:
        """The wait after a number of tries, doubling."""
        return int(min(self.wait_ms_max, self.wait_ms_first * 2 ** min(tries, 16)))

    def outage_wait_ms(
        self, outage: errors.ModelUnavailable | errors.StoreError, tries: int, lasted_ms: int
    ) -> int | None:
        """The wait after an outage, as long as a provider asks for; None when the outage has lasted too long.

        That is by its own length, and by the sum of the waits between attempts: both, because a new process does not
        finish the wait of the last one, and a clock may be set forward.
        """
        if min(lasted_ms + self.wait_ms_first, sum(map(self.wait_ms, range(tries)))) >= self.outage_ms_max:
            return None
        asked_s = outage.retry_after_s if isinstance(outage, errors.ModelUnavailable) else None
        return max(self.wait_ms(tries), min(int((asked_s or 0) * 1000), self.outage_ms_max))


@frozen
class Attempt:
    """Runs the work of a batch and settles what it raises."""

    operations: store_views.Operations
    progress: Progresses
    clock: runtime.Clock
    ids: runtime.Ids
    patience: RetryPolicy

    async def opened(self, lease: Lease, reading: Callable[[Lease], Awaitable[ClaimedBatch]]) -> ClaimedBatch | None:
        """What a lease is for; None when it cannot be had, and then the batch is settled as after any failure."""
        found: list[ClaimedBatch] = []

        async def read() -> None:
            found.append(await reading(lease))

        await self.at(ClaimedBatch(lease.batch, lease.turn_id, (), alone=lease.alone), read)
        return next(iter(found), None)

    async def at(self, claimed: ClaimedBatch, work: Callable[[], Awaitable[None]]) -> str:
        """Try once; returns how it ended: done, lost, waiting, or the state the failure led to.

        What the batch raised itself is charged to it; an outage or a stop is not. A StoreError comes out when
        the store does not take that either: the lease runs out.
        """
        try:
            await work()
        except errors.LeaseLost:
            self.progress.tell(claimed.messages, TurnProgress("waiting", TAKEN))
            return "lost"
        except asyncio.CancelledError:
            await asyncio.shield(self.released(claimed.batch))
            raise
        except errors.ModelUnavailable as outage:
            return await self._wait_out(claimed, outage)
        except (run.NeedsReview, errors.MessageDamaged) as unknown:
            return await self.failed(claimed, commits.Failure.PARK, unknown)
        except HOPELESS as refusal:
            return await self.failed(claimed, commits.Failure.BURY, refusal)
        except errors.StoreBroken:
            raise
        except errors.StoreError as refusal:
            return await self._wait_out(claimed, refusal)
        except TimeoutError:
            return await self.survived(claimed)
        except Exception as error:  # noqa: BLE001  # guard: engine loop - a failing turn is charged to its own batch
            _log.error("turn failed", exc_info=error, extra={"turn": claimed.turn_id, "batch": claimed.batch.id})
            return await self.failed(claimed, commits.Failure.RETRY, error)
        return "done"

    async def _wait_out(self, claimed: ClaimedBatch, outage: errors.ModelUnavailable | errors.StoreError) -> str:
        batch = claimed.batch
        now = self.clock.due_ms()
        wait = self.patience.outage_wait_ms(outage, batch.deferrals, now - (batch.deferred_from or now))
        if wait is None:
            return await self.failed(claimed, commits.Failure.BURY, outage)
        told = f"{outage.what}; trying again in {wait / 1000:g} s"
        self.progress.tell(claimed.messages, TurnProgress("waiting", told))
        details = {"code": outage.code, "turn": claimed.turn_id, "batch": batch.id}
        _log.warning("turn waits: %s; trying again in %g s", outage.what, wait / 1000, extra=details)
        await self.released(batch, now + wait, outage.what)
        return "waiting"

    async def survived(self, claimed: ClaimedBatch) -> str:
        """Release a batch after a trial that came to its time limit: the process lives, so it goes on beside others."""
        batch = claimed.batch
        self.progress.tell(claimed.messages, TurnProgress("waiting", SURVIVED))
        next_at = self.clock.due_ms() + self.patience.wait_ms_first
        await self.operations.apply(commits.Release(batch.id, batch.fence, next_at, reason=SURVIVED, survived=True))
        return "waiting"

    async def released(self, batch: StoredBatch, not_before: int = 0, outage: str = "") -> None:
        """Give a batch back without charge; `outage` says what it waits for, if it does."""
        await self.operations.apply(commits.Release(batch.id, batch.fence, not_before, bool(outage), outage))

    async def failed(self, claimed: ClaimedBatch, how: commits.Failure, error: Exception) -> str:
        """Charge, park or bury a batch for what it raised; returns its new state."""
        now, batch = self.clock.now_ms(), claimed.batch
        notice = ReplyDraft(self.ids.next(), commands.gave_up(batch.id, error), True, *address(claimed.messages))
        reason = error.what if isinstance(error, errors.KeepsaidError) else f"{type(error).__name__}"
        retry_at = self.clock.due_ms() + self.patience.wait_ms(batch.attempts)
        more_ids = tuple(self.ids.next() for _ in range(_ADDRESSES_MAX))
        failure = commits.Fail(batch.id, batch.fence, how, reason, now, retry_at, notice, more_ids)
        state = await self.operations.apply(failure)
        self.progress.tell(claimed.messages, TurnProgress("settled" if state != "queued" else "waiting", reason))
        return state


_MOMENT_MS = 50
"""After a claim the next is looked for a moment later, so that the turns just started go first."""

_SENT_BACK = 0.1
"""The share of its time in a place that a turn gets which an outage sent back: not none, or all would call at once."""


@frozen
class TurnConcurrency:
    """How many turns run at a time.

    A turn that takes longer than `slow_s` seconds frees its place for another, so that lanes whose model
    hangs delay no others; a turn returned by an outage frees it after a tenth of that. At most `open_max`
    turns are open at once.
    """

    at_once: int = 8
    slow_s: float = 2.0
    open_max: int = 256


@dataclass(slots=True, eq=False)
class Workers:
    """Runs turns."""

    flow: runner.MessagePipeline
    lanes: store_views.LaneView
    leases: leasing.Leases
    attempt: Attempt
    clock: runtime.Clock
    places: TurnConcurrency
    _running: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _slow: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _of_lane: dict[message.Lane, asyncio.Task[None]] = field(default_factory=dict, init=False)
    _full: bool = field(default=False, init=False)

    async def claim(self) -> int | None:
        """Fill the free places; returns when the next batch is ready, or None while all places are taken."""
        places, had_more = self.places, self._full
        free = min(places.at_once + len(self._slow), places.open_max) - len(self._running)
        self._full = True
        if free < 1:
            return None
        now, lived_ms = self.clock.due_ms(), self.leases.lived_ms
        if self.leases.shares and not had_more and not self.flow.is_routing:
            due = await self.lanes.next_ready()
            if due is None or due > now:
                self._full = False
                return due
        leases = await self.flow.claim(self.leases, free)
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
        due = await self.lanes.next_ready()
        return due if due is None or due > now else await self._trial_due(now, lived_ms)

    async def _trial_due(self, now: int, lived_ms: int) -> int | None:
        """Return when a trial may begin; None when it cannot before a turn has ended.

        A ready batch that was not claimed waits for one or the other. `lived_ms` is the age of the process at `now`,
        before the claim: read after it, an age that was reached meanwhile would be missed until the next poll.
        """
        after_ms = await self.lanes.next_trial()
        return None if after_ms is None or after_ms <= lived_ms else now + after_ms - lived_ms

    def _slowed(self, task: asyncio.Task[None]) -> None:
        if task in self._running:
            self._slow.add(task)
            self.flow.hints.work.set()

    def _finished(self, lane: message.Lane, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._slow.discard(task)
        if self._of_lane.get(lane) is task:
            del self._of_lane[lane]
        if self._full:
            self.flow.hints.work.set()

    async def _work(self, lease: Lease, before: asyncio.Task[None] | None) -> None:
        how = "broken off"
        try:
            how = await self._worked(lease, before)
        except errors.StoreError as error:
            _log.error("turn broken off: %s", error.what, extra={"code": error.code, "turn": lease.turn_id})
        finally:
            self.flow.hints.deliver.set()
            if how != "done":
                self.flow.hints.work.set()  # it may be due again soon; a committed turn has told so itself
        if how not in ("broken off", "waiting"):
            _log.info("turn ended", extra={"turn": lease.turn_id, "batch": lease.batch.id, "how": how})

    async def _worked(self, lease: Lease, before: asyncio.Task[None] | None) -> str:
        async def opened(lease: Lease) -> ClaimedBatch:
            if before is not None:  # it lost its lane to this one, and nobody told it yet
                before.cancel()
                await asyncio.wait((before,))
            return await self.flow.open(lease)

        if (claimed := await self.attempt.opened(lease, opened)) is None:
            return "waiting"

        async def answer() -> None:
            async with self.leases.kept(claimed):
                await self.flow.answer(claimed)

        return await self.attempt.at(claimed, answer)

    async def stop(self, patience_s: float) -> None:
        """Let running turns end; those that take too long are returned to the queue."""
        if self._running:
            await asyncio.wait(self._running, timeout=patience_s)
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
