"""Maintenance: once a night, in steps so small that nobody waits for them, memory is looked after (seed 001).

What nobody uses fades, and leaves the index when too little of it is left; what hangs loose is taken away, vectors of
former models go, lost ones are made again, words are counted anew. Where a task stands is noted with each step: what
is interrupted goes on from there.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import UTC

from keepsaid.domain.search import VectorSpace
from keepsaid.domain.timing import next_daily
from keepsaid.domain.upkeep import Curve, Maintain, Outstanding, Stepped, Task
from keepsaid.errors import EmbedderError
from keepsaid.memory.associate import Associating
from keepsaid.memory.embed import Embedding
from keepsaid.memory.judging import Judging
from keepsaid.memory.pacing import Enough, Pacing
from keepsaid.ports.memory_maintenance import Upkeep
from keepsaid.ports.runtime import Clock, Halt

_log = logging.getLogger("keepsaid.maintenance")
_MOST = 1_024
"""Things that one step looks at, if it has the time."""


@dataclass(frozen=True, slots=True)
class MaintenanceTerms:
    """The curve by which memories fade, and at which hour of the day (UTC) a run begins.

    A step works for `step_ms`, if there is a limit; then it is written to the disk, which takes about as long again.
    """

    curve: Curve = Curve()
    hour: float = 3.0
    step_ms: float | None = 4.0


@dataclass(slots=True)
class Done:
    """What a run did so far; `over` once nothing is left to be looked at."""

    changed: dict[Task, int] = field(default_factory=lambda: dict.fromkeys(Task, 0))
    archived: int = 0
    related: int = 0
    ruled: int = 0
    steps: int = 0
    longest_ms: float = 0.0
    over: bool = False

    def add(self, task: Task, step: Stepped, took_ms: float) -> None:
        """A step more, and how long it took until it was on disk."""
        self.changed[task] += step.changed
        self.archived += step.archived
        self.steps += 1
        self.longest_ms = max(self.longest_ms, took_ms)


class Maintenance:
    """Runs the tasks one after another; a run at a person's word and the nightly one are one at a time."""

    def __init__(
        self,
        upkeep: Upkeep,
        clock: Clock,
        terms: MaintenanceTerms | None = None,
        embedding: Embedding | None = None,
        associating: Associating | None = None,
        halt: Halt | None = None,
        judging: Judging | None = None,
    ) -> None:
        self._upkeep = upkeep
        self._clock = clock
        self._terms = terms or MaintenanceTerms()
        self._embedding = embedding
        self._associating = associating
        self._judging = judging
        self._halt = halt or Halt()
        self._last_ms = clock.now_ms()
        self._one = asyncio.Lock()

    async def work(self) -> int | None:
        """A run, when a night has come since the last, or one was broken off; returns when the next is due."""
        runs = await self._upkeep.runs()
        last = max((run.begun_at for run in runs), default=self._last_ms)
        broken_off = any(run.ended_at is None for run in runs)
        if broken_off or self._clock.now_ms() >= next_daily(last, self._terms.hour, UTC):
            done = await self.run()
            faded = done.changed[Task.FADE]
            _log.info("maintained: %d memories faded, %d archived, %d steps", faded, done.archived, done.steps)
        return next_daily(self._clock.due_ms(), self._terms.hour, UTC)

    async def run(self, limit_ms: float | None = None) -> Done:
        """A run; broken off after `limit_ms` and by a stop, so that it goes on from there when it is called again."""
        async with self._one:
            done, enough = Done(), self._until(limit_ms)
            self._last_ms = self._clock.now_ms()
            space = await self._space()
            pacing = Pacing(self._clock)
            for task in Task:
                while not await self._step(task, space, done, pacing):
                    if enough():
                        return done
                    await pacing.rest()
            await self._rest_of(done, space, limit_ms, pacing)
            done.over = not self._halt.asked
            await self._upkeep.empty_log()
            return done

    async def _rest_of(self, done: Done, space: VectorSpace | None, limit_ms: float | None, pacing: Pacing) -> None:
        """What is no task of the store: vectors, what belongs together, and close pairs."""
        if self._embedding is not None:
            self._embedding.look_again()
        if self._associating is not None and space is not None:
            done.related = await self._associating.run(space, enough=self._until(limit_ms), pacing=pacing)
        if self._judging is not None and not self._halt.asked:
            done.ruled = await self._judging.run(self._until(limit_ms), pacing)

    def _until(self, limit_ms: float | None) -> Enough:
        """Whether to leave off: when so much time has passed from now, or the runtime is told to stop."""
        end = None if limit_ms is None else self._clock.monotonic_ms() + limit_ms
        return lambda: self._halt.asked or (end is not None and self._clock.monotonic_ms() >= end)

    async def _step(self, task: Task, space: VectorSpace | None, done: Done, pacing: Pacing) -> bool:
        """A step, measured until it is on disk; whether its task is over."""
        with pacing.step():
            wanted = Maintain(task, self._last_ms, _MOST, self._terms.curve, space, self._terms.step_ms)
            step = await self._upkeep.step(wanted)
        done.add(task, step, pacing.took_ms)
        return step.over

    async def _space(self) -> VectorSpace | None:
        """The space whose vectors serve; None where there is none, or nobody knows."""
        try:
            return await self._embedding.space() if self._embedding is not None else None
        except EmbedderError:
            return None

    async def outstanding(self) -> Outstanding:
        """What a run would find to do now."""
        return await self._upkeep.outstanding(self._clock.now_ms(), self._terms.curve, await self._space())
