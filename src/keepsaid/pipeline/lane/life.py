"""The life of this process: how long it has lived, on record in case it dies, and whether a trial may begin."""

from __future__ import annotations

import logging
from asyncio import Event
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from keepsaid.domain.lives import Beat, RequeueCrashed
from keepsaid.domain.suspicion import STABLE_MS, TrialTerms, next_beat_ms
from keepsaid.errors import KeepsaidError
from keepsaid.ports.model import at_once
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import Operations

_log = logging.getLogger("keepsaid.engine")
_STABLE = "the program had run without a crash for {} minutes"


@dataclass(frozen=True, slots=True)
class LifeTerms:
    """When a trial may begin, and after how many milliseconds without a crash the process is stable."""

    trials: TrialTerms = TrialTerms()
    stable_ms: int = STABLE_MS


class Life:
    """The age of this process by its steady clock. `load` loads what a turn needs, before any trial."""

    def __init__(
        self,
        operations: Operations,
        clock: Clock,
        owner: str,
        terms: LifeTerms | None = None,
        load: Callable[[], Awaitable[None]] = at_once,
    ) -> None:
        self.hint = Event()
        self.terms = terms or LifeTerms()
        self._operations = operations
        self._clock = clock
        self._owner = owner
        self._load = load
        self._began_ms = clock.monotonic_ms()
        self._next_ms = 0
        self._trial_ms: int | None = None
        self._is_loaded = load is at_once
        self._is_stable = False

    @property
    def lived_ms(self) -> int:
        """How long the process has lived."""
        return int(self._clock.monotonic_ms() - self._began_ms)

    @property
    def trial_age_ms(self) -> int:
        """How old the process is as far as trials go: 0 until what a turn needs is loaded."""
        return self.lived_ms if self._is_loaded else 0

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
        if lived_ms >= self._next_ms:
            self._next_ms = next_beat_ms(lived_ms, self._trial_ms, self.terms.trials)
            waiting = await self._operations.apply(Beat(self._owner, lived_ms, self._next_ms))
        if lived_ms >= self.terms.stable_ms and not self._is_stable:
            waiting = await self._second_chance() or waiting
        if waiting and not self._is_loaded:
            await self._loaded()
        soonest_ms = self._next_ms if self._is_stable else min(self._next_ms, self.terms.stable_ms)
        return self._clock.due_ms() + max(1, soonest_ms - self.lived_ms)

    async def _second_chance(self) -> bool:
        """Queue again what crashes alone buried; returns whether there was anything."""
        reason = _STABLE.format(self.terms.stable_ms // 60_000)
        requeue = RequeueCrashed(self._clock.now_ms(), reason, self.terms.trials)
        count = await self._operations.apply(requeue)
        self._is_stable = count < requeue.limit
        if count:
            _log.info("queued again after crashes", extra={"batches": count})
        return count > 0

    async def _loaded(self) -> None:
        """Load what a turn needs; what cannot be loaded is for the turn to say."""
        try:
            await self._load()
        except KeepsaidError as error:
            _log.warning("not ready for a trial: %s", error.what, extra={"code": error.code})
        self._is_loaded = True
