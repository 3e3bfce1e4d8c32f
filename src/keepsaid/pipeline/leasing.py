"""Leases: claims the next batches, renews them while their turns run, and records how long this process has lived."""

from __future__ import annotations

import asyncio
import logging
from asyncio import Event
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial

from keepsaid.domain import commits, process, turn
from keepsaid.domain.batch import (
    PULSE_MS,
    STABLE_MS,
    SURE_MS,
    Ageing,
    Sharing,
    TrialTerms,
    next_beat_ms,
    trial_limit_ms,
)
from keepsaid.errors import InputError, KeepsaidError, LeaseLost, StoreError
from keepsaid.ports import model, runtime, store_views
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.engine")


@frozen
class LifeTerms:
    """When a trial may begin, and after how many milliseconds without a crash the process is stable.

    `shares` says that the store is shared with other processes, `role` which part of their work this one does. `home`
    tells its home from every other.
    """

    trials: TrialTerms = TrialTerms()
    stable_ms: int = STABLE_MS
    shares: bool = False
    role: process.ProcessRole = process.ProcessRole.ALL
    home: str = ""

    @property
    def works(self) -> bool:
        """Whether it runs turns and tasks."""
        return self.role is not process.ProcessRole.DOOR

    def check_takes_in(self) -> None:
        """Raise InputError in a process that takes no messages, calls of chats or recorded talk: a worker."""
        if self.role is process.ProcessRole.WORKER:
            raise InputError(
                "this process is a worker (--role worker), and takes no messages",
                safe="Nothing was stored.",
                hint="call a process that has the role all or door",
            )


class ProcessAge:
    """The age of this process by its steady clock. `load` loads what a turn needs, before any trial.

    Where processes share a store, each says every few seconds that it lives. `leads` says that this one does what
    only one may do: `chosen` is set when that begins, `lapsed` when another process is dead that is not known to be.
    """

    def __init__(
        self,
        operations: store_views.Operations,
        clock: runtime.Clock,
        owner: str,
        terms: LifeTerms | None = None,
        load: Callable[[], Awaitable[None]] = model.at_once,
    ) -> None:
        self.hint, self.chosen, self.lapsed = runtime.Hint(), Event(), Event()
        self.terms = terms or LifeTerms()
        self.leads = self._has_lapsed = False
        self._sure_until_ms = 0.0
        self._asking = asyncio.Lock()
        self._operations = operations
        self._clock = clock
        self._owner = owner
        self._load = load
        self._began_ms = clock.monotonic_ms()
        self._next_ms = 0
        self._trial_ms: int | None = None
        self._is_loaded = load is model.at_once
        self._is_stable = False

    @property
    def lived_ms(self) -> int:
        return int(self._clock.monotonic_ms() - self._began_ms)

    @property
    def trial_age_ms(self) -> int:
        """How old the process is as far as trials go: 0 until what a turn needs is loaded."""
        return self.lived_ms if self._is_loaded else 0

    @property
    def is_sure(self) -> bool:
        """Whether the life that the store has on record cannot be over yet."""
        return not self.terms.shares or self._clock.monotonic_ms() < self._sure_until_ms

    async def ascertain(self) -> None:
        """Say that the process lives until the store has taken it in time. Raises ProcessFenced or StoreError."""
        async with self._asking:
            while not self.is_sure:
                await self._beat(self.lived_ms)

    @contextmanager
    def trial(self) -> Iterator[None]:
        """While a trial runs, the process says more often that it lives."""
        self._trial_ms = self.lived_ms
        self._next_ms = next_beat_ms(self._trial_ms, self._trial_ms, self.terms.trials)
        self.hint.set()
        try:
            yield
        finally:
            self._trial_ms = None
            self._next_ms = next_beat_ms(self.lived_ms, None, self.terms.trials)
            self.hint.set()

    async def work(self) -> int | None:
        """Say that the process lives when it is time to; returns when to come again, milliseconds UTC."""
        lived_ms = self.lived_ms
        waiting = False
        if lived_ms >= self._next_ms or self.terms.shares:
            waiting = await self._beat(lived_ms)
        if lived_ms >= self.terms.stable_ms and not self._is_stable:
            waiting = await self._second_chance() or waiting
        if waiting and not self._is_loaded:
            await self._load_for_turns()
        soonest_ms = self._next_ms if self._is_stable else min(self._next_ms, self.terms.stable_ms)
        return self._clock.due_ms() + max(1, soonest_ms - self.lived_ms)

    async def _beat(self, lived_ms: int) -> bool:
        """Say that the process lives; returns whether a batch waits for a trial."""
        asked_at, sharing = self._clock.monotonic_ms(), self.sharing()
        self._next_ms = next_beat_ms(lived_ms, self._trial_ms, self.terms.trials)
        if sharing is not None:
            self._next_ms = min(self._next_ms, lived_ms + PULSE_MS)
        pulse = await self._operations.apply(process.Beat(self._owner, lived_ms, self._next_ms, sharing))
        self._sure_until_ms = asked_at + SURE_MS
        if pulse.leads and not self.leads:
            self.leads = True
            self.chosen.set()
            if self.terms.shares:
                _log.info("this process leads: it sends replies, runs schedules and keeps memory up")
        if pulse.lapsed:
            self._has_lapsed = True
            self.lapsed.set()
        return pulse.trial_waits

    def take_lapsed(self) -> bool:
        """Whether another process died since this was asked before."""
        has_lapsed, self._has_lapsed = self._has_lapsed, False
        return has_lapsed

    def sharing(self) -> Sharing | None:
        """The terms on which this process shares its store now; None where it is alone."""
        terms = self.terms
        if not terms.shares:
            return None
        return Sharing(self._clock.steady_ms(), terms.role is process.ProcessRole.ALL, terms.home)

    async def _second_chance(self) -> bool:
        """Queue batches again that are dead because of crashes alone; returns whether there were any."""
        reason = f"the program had run without a crash for {self.terms.stable_ms // 60_000} minutes"
        requeue = process.RequeueCrashed(self._clock.now_ms(), reason, self.terms.trials)
        count = await self._operations.apply(requeue)
        self._is_stable = count < requeue.limit
        if count:
            _log.info("queued again after crashes", extra={"batches": count})
        return count > 0

    async def _load_for_turns(self) -> None:
        """Load the model layer; a turn reports again what cannot be loaded."""
        try:
            await self._load()
        except KeepsaidError as error:
            _log.warning("not ready for a trial: %s", error.what, extra={"code": error.code})
        self._is_loaded = True


_AGAIN_MS = 100
"""After a renewal that the store refused: what the lease was for may be another's by now."""


@asynccontextmanager
async def renewing(
    clock: runtime.Clock, every_ms: int, renew: Callable[[], Awaitable[bool]], lost: Callable[[], None], taken: Event
) -> AsyncIterator[None]:
    """Renew a lease while the block runs, at once when `taken` is set; `lost` is called once when another has it."""

    async def go_on() -> None:
        held, wait_ms = True, every_ms
        while held:
            await clock.wait(taken, wait_ms)
            wait_ms = min(_AGAIN_MS, every_ms)
            with suppress(StoreError):
                held = await renew()
                wait_ms = every_ms
        lost()

    renewal = asyncio.create_task(go_on())
    try:
        yield
    finally:
        renewal.cancel()


@asynccontextmanager
async def cancelled_when_lost(
    what: str, renewed: Callable[[Callable[[], None]], AbstractAsyncContextManager[None]]
) -> AsyncIterator[None]:
    """Hold a lease while the block runs; the block is cancelled and LeaseLost raised when `renewed` says it is lost."""
    run, is_lost = asyncio.current_task(), False
    assert run is not None, "a lease is kept by a coroutine"

    def give_up() -> None:
        nonlocal is_lost
        is_lost = True
        run.cancel()

    try:
        async with renewed(give_up):
            yield
    except asyncio.CancelledError:
        if not is_lost:
            raise
        run.uncancel()
        raise LeaseLost(f"{what} has another owner now, or none") from None


@frozen
class LeaseTerms:
    """How long a lease lasts, how often it is renewed, and how long a first trial may take (ms)."""

    lease_ms: int = 60_000
    renew_ms: int = 20_000
    alone_ms: int = 60_000
    ageing: Ageing = Ageing()


@dataclass(slots=True, eq=False)
class Leases:
    """Claims batches for one owner. `hints` notify at once that a batch was taken away, else the next renewal does.

    `life`, the age of this process, decides when trials may begin.
    """

    operations: store_views.Operations
    clock: runtime.Clock
    ids: runtime.Ids
    owner: str
    terms: LeaseTerms
    hints: runtime.Wakeups = field(default_factory=runtime.Wakeups)
    life: ProcessAge | None = None
    _life: ProcessAge = field(init=False)

    def __post_init__(self) -> None:
        self._life = self.life or ProcessAge(self.operations, self.clock, self.owner)

    @property
    def lived_ms(self) -> int:
        return self._life.lived_ms

    @property
    def shares(self) -> bool:
        """Whether other processes claim from the same store: a claim in vain holds up what they write."""
        return self._life.terms.shares

    async def claim(self, limit: int) -> tuple[turn.Lease, ...]:
        """Lease up to `limit` batches, best first."""
        turn_ids = tuple(self.ids.next() for _ in range(limit))
        until = self.clock.steady_ms() + self.terms.lease_ms
        now, life = self.clock.due_ms(), self._life
        claim = commits.ClaimBatches(
            self.owner, limit, turn_ids, now, until, self.terms.ageing, life.trial_age_ms, life.terms.trials
        )
        return await self.operations.apply(claim)

    @asynccontextmanager
    async def kept(self, claimed: turn.ClaimedBatch) -> AsyncIterator[None]:
        """Hold the lease while the block runs; the block is cancelled and LeaseLost raised when it is lost.

        Raises TimeoutError when a batch that runs alone takes too long.
        """
        held = cancelled_when_lost(f"batch {claimed.batch.id}", partial(self.renewed, claimed))
        async with held, asyncio.timeout(self.limit_s(claimed)):
            yield

    def limit_s(self, claimed: turn.ClaimedBatch) -> float | None:
        """Seconds a batch may take: a bound for a trial, because nothing runs beside it."""
        return trial_limit_ms(self.terms.alone_ms, claimed.batch.survived) / 1000 if claimed.alone else None

    @asynccontextmanager
    async def renewed(self, claimed: turn.ClaimedBatch, lost: Callable[[], None]) -> AsyncIterator[None]:
        """Renew the lease while the block runs; `lost` is called once when another owner has it."""
        held, taken, batch = self.hints.held, Event(), claimed.batch

        async def renew() -> bool:
            until = self.clock.steady_ms() + self.terms.lease_ms
            return await self.operations.apply(commits.Renew(batch.id, batch.fence, until))

        held.setdefault(batch.id, []).append(taken)
        try:
            async with renewing(self.clock, self.terms.renew_ms, renew, lost, taken):
                with self._life.trial() if claimed.alone else nullcontext():
                    yield
        finally:
            held[batch.id].remove(taken)
            if not held[batch.id]:
                del held[batch.id]


class Waking:
    """Wakes the workers for batches that are being written, and again for batches that no claim can have seen.

    A claim that follows the batches at once joins their commit. On a slow store it may also overtake them.
    """

    def __init__(self, hint: asyncio.Event) -> None:
        self._hint = hint
        self._claims = 0
        self._claiming = False
        self._written = self._begun = 0

    @property
    def is_writing(self) -> bool:
        """Whether batches are being written now, which a claim at once may join."""
        return self._begun > 0

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Batches are written in the block, which begins with handing them to the store."""
        claims = self._claims
        self._begun += 1
        try:
            yield
        finally:
            self._begun -= 1
        self._written += 1
        if claims == self._claims or not self._claiming:
            self._hint.set()

    async def claimed(self, claim: Awaitable[tuple[turn.Lease, ...]]) -> tuple[turn.Lease, ...]:
        written = self._written
        self._claims += 1
        self._claiming = True
        try:
            leases = await claim
        finally:
            self._claiming = False
        if not leases and written != self._written:
            self._hint.set()
        return leases
