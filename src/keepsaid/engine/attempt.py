"""Attempt: one try at a batch, and what its failure costs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from keepsaid.domain.batch import Batch
from keepsaid.domain.commits import Fail, Failure, Release
from keepsaid.domain.reply import ReplyDraft, address
from keepsaid.domain.turn import Claimed, Lease
from keepsaid.errors import (
    KeepsaidError,
    LeaseLost,
    MessageDamaged,
    ModelAuth,
    ModelQuota,
    ModelRejected,
    ModelUnavailable,
    StoreBroken,
    StoreError,
)
from keepsaid.pipeline.turn.commands import gave_up
from keepsaid.pipeline.turn.run import NeedsReview
from keepsaid.ports.channel import Progress, Progresses
from keepsaid.ports.runtime import Clock, Ids
from keepsaid.ports.store import Operations

_log = logging.getLogger("keepsaid.turn")
SURVIVED = "the program ran for as long as a trial lasts while it worked on this alone"
"""Why a trial ended; nothing is charged for it."""

TAKEN = "this try was broken off; the message is taken up again"
"""What those hear who wait for a batch that was interrupted, or that another owner has."""

_ADDRESSES_MAX = 16
"""So many more addresses are told when others had joined the turn; what has none is still listed as in review."""

HOPELESS = (ModelAuth, ModelQuota, ModelRejected)
"""Trying again cannot help before a person does something."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an outage is waited out, and the waits between tries, in milliseconds."""

    outage_ms_max: int = 900_000
    wait_ms_first: int = 1_000
    wait_ms_max: int = 60_000

    def wait_ms(self, tries: int) -> int:
        """The wait after a number of tries, doubling."""
        return int(min(self.wait_ms_max, self.wait_ms_first * 2 ** min(tries, 16)))

    def is_over(self, tries: int, lasted_ms: int) -> bool:
        """Whether an outage has lasted too long: by its own length, and by the waits after so many tries.

        Both, because a new process does not wait out what the last one began, and a clock may be set forward.
        """
        return min(lasted_ms, sum(map(self.wait_ms, range(tries)))) >= self.outage_ms_max


class Attempt:
    """Runs the work of a batch and settles what it raises."""

    def __init__(
        self, operations: Operations, progress: Progresses, clock: Clock, ids: Ids, patience: Patience
    ) -> None:
        self._operations = operations
        self._progress = progress
        self._clock = clock
        self._ids = ids
        self._patience = patience

    async def opened(self, lease: Lease, reading: Callable[[Lease], Awaitable[Claimed]]) -> Claimed | None:
        """What a lease is for; None when it cannot be had, and then the batch is settled as after any failure."""
        found: list[Claimed] = []

        async def read() -> None:
            found.append(await reading(lease))

        await self.at(Claimed(lease.batch, lease.turn_id, (), alone=lease.alone), read)
        return next(iter(found), None)

    async def at(self, claimed: Claimed, work: Callable[[], Awaitable[None]]) -> str:
        """Try once; returns how it ended: done, lost, waiting, or the state the failure led to.

        What the batch raised itself is charged to it; an outage or a stop is not. A StoreError comes out when
        the store does not take that either: the lease runs out.
        """
        try:
            await work()
        except LeaseLost:
            self._progress.tell(claimed.messages, Progress("waiting", TAKEN))
            return "lost"
        except asyncio.CancelledError:
            await asyncio.shield(self.released(claimed.batch))
            raise
        except ModelUnavailable as outage:
            return await self._wait_out(claimed, outage)
        except (NeedsReview, MessageDamaged) as unknown:
            return await self.failed(claimed, Failure.PARK, unknown)
        except HOPELESS as refusal:
            return await self.failed(claimed, Failure.BURY, refusal)
        except StoreBroken:
            raise
        except StoreError as refusal:
            return await self._wait_out(claimed, refusal)
        except TimeoutError:
            return await self.survived(claimed)
        except Exception as error:  # noqa: BLE001  # guard: engine loop - a failing turn is charged to its own batch
            _log.error("turn failed", exc_info=error, extra={"turn": claimed.turn_id, "batch": claimed.batch.id})
            return await self.failed(claimed, Failure.RETRY, error)
        return "done"

    async def _wait_out(self, claimed: Claimed, outage: ModelUnavailable | StoreError) -> str:
        batch = claimed.batch
        now = self._clock.due_ms()
        if self._patience.is_over(batch.deferrals, now - (batch.deferred_from or now) + self._patience.wait_ms_first):
            return await self.failed(claimed, Failure.BURY, outage)
        wait = self._patience.wait_ms(batch.deferrals)
        if isinstance(outage, ModelUnavailable) and outage.retry_after_s is not None:
            wait = max(wait, min(int(outage.retry_after_s * 1000), self._patience.outage_ms_max))
        self._progress.tell(claimed.messages, Progress("waiting", f"{outage.what}; trying again in {wait / 1000:g} s"))
        told = {"code": outage.code, "turn": claimed.turn_id, "batch": batch.id}
        _log.warning("turn waits: %s; trying again in %g s", outage.what, wait / 1000, extra=told)
        await self.released(batch, now + wait, outage.what)
        return "waiting"

    async def survived(self, claimed: Claimed) -> str:
        """Release a batch after a trial that came to its time limit: the process lives, so it goes on beside others."""
        batch = claimed.batch
        self._progress.tell(claimed.messages, Progress("waiting", SURVIVED))
        next_at = self._clock.due_ms() + self._patience.wait_ms_first
        await self._operations.apply(Release(batch.id, batch.fence, next_at, reason=SURVIVED, survived=True))
        return "waiting"

    async def released(self, batch: Batch, not_before: int = 0, outage: str = "") -> None:
        """Give a batch back without charge; `outage` says what it waits for, if it does."""
        await self._operations.apply(Release(batch.id, batch.fence, not_before, bool(outage), outage))

    async def failed(self, claimed: Claimed, how: Failure, error: Exception) -> str:
        """Charge, park or bury a batch for what it raised; returns its new state."""
        now, batch = self._clock.now_ms(), claimed.batch
        notice = ReplyDraft(self._ids.next(), gave_up(batch.id, error), True, *address(claimed.messages))
        reason = error.what if isinstance(error, KeepsaidError) else f"{type(error).__name__}"
        retry_at = self._clock.due_ms() + self._patience.wait_ms(batch.attempts)
        more_ids = tuple(self._ids.next() for _ in range(_ADDRESSES_MAX))
        failure = Fail(batch.id, batch.fence, how, reason, now, retry_at, notice, more_ids)
        state = await self._operations.apply(failure)
        self._progress.tell(claimed.messages, Progress("settled" if state != "queued" else "waiting", reason))
        return state
