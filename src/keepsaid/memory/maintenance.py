"""Maintenance of memory: nightly runs in short steps, and the audit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from itertools import chain

from keepsaid.domain import learning, maintenance, memory, redaction, timing
from keepsaid.errors import EmbedderError, ModelError
from keepsaid.memory.indexing import AssociationFinder, Embedding, Enough, Pacing, paced
from keepsaid.ports.memory_maintenance import Auditing, PairJudge, Pairs, SourceView, Upkeep
from keepsaid.ports.runtime import Clock, Redactor, StopToken, masked_texts
from keepsaid.values import frozen

UNUSED_DAYS = 180
"""What was not shown to any turn for so long was never needed."""

SHOWN_MAX = 5
"""The cases of each problem that are listed at most."""

_PAGE, _NEAR, _SLOT_MAX = 500, 0.92, 200
_NIGHT_MS = maintenance.DAY_MS
"""What ended within the last day is ended by the coming night."""


@dataclass(slots=True)
class AuditReport:
    """How many cases there are of each trouble, and the first of them."""

    counts: dict[maintenance.AuditProblem, int] = field(
        default_factory=lambda: dict.fromkeys(maintenance.AuditProblem, 0)
    )
    cases: dict[maintenance.AuditProblem, list[maintenance.AuditFinding]] = field(
        default_factory=lambda: {one: [] for one in maintenance.AuditProblem}
    )

    def add(self, cases: Iterable[maintenance.AuditFinding | None]) -> None:
        """Cases more."""
        for case in cases:
            if case is not None:
                self.counts[case.trouble] += 1
                if len(self.cases[case.trouble]) < SHOWN_MAX:
                    self.cases[case.trouble].append(case)

    @property
    def clean(self) -> bool:
        """Whether there is none."""
        return not any(self.counts.values())


class Audit:
    """Looks all memories through; nothing is changed. Comparing and looking for secrets is done in threads."""

    def __init__(self, auditing: Auditing, trails: SourceView, redactor: Redactor, clock: Clock) -> None:
        self._auditing = auditing
        self._trails = trails
        self._redactor = redactor
        self._clock = clock

    async def report(self, unused_days: float = UNUSED_DAYS) -> AuditReport:
        """All that is wrong now."""
        report, now = AuditReport(), self._clock.now_ms()
        comparing = maintenance.ConflictFinder(now)
        async for page in self._learned():
            report.add(await asyncio.to_thread(lambda page: [*chain.from_iterable(map(comparing.look, page))], page))
            report.add(maintenance.ended(one, now - _NIGHT_MS) for one in page)
            report.add(maintenance.unused(one, int(now - unused_days * maintenance.DAY_MS)) for one in page)
            await self._traced(page, report)
        await self._near(comparing, report)
        await self._secrets(report)
        await self._loose(report)
        withdrawn = await self._auditing.withdrawn(now, _PAGE)
        report.add(
            maintenance.AuditFinding(
                maintenance.AuditProblem.STALE, (one,), maintenance.Fix.MAINTAIN, "a bulletin of what holds no more"
            )
            for one in withdrawn
        )
        return report

    async def _learned(self) -> AsyncIterator[Sequence[maintenance.AuditEntry]]:
        after = 0
        while page := await self._auditing.learned(after, _PAGE):
            yield page
            after = page[-1].id

    async def _traced(self, page: Sequence[maintenance.AuditEntry], report: AuditReport) -> None:
        """Memories whose sources are gone, and those that the agent learned from itself."""
        missing = await self._trails.missing([source for one in page for source in one.sources])
        report.add(maintenance.sourceless(one, missing) for one in page)
        repeating = {one: turns for one in page if (turns := maintenance.repeats_only(one.sources))}
        shown = await self._trails.shown([turn for turns in repeating.values() for turn in turns])
        told = {one.id: one for one in await self._auditing.entries([id_ for ids in shown.values() for id_ in ids])}
        for one, turns in repeating.items():
            before = [told[id_] for turn in turns for id_ in shown.get(turn, ()) if id_ in told]
            report.add([maintenance.echo(one, before)])

    async def _near(self, comparing: maintenance.ConflictFinder, report: AuditReport) -> None:
        """Values of one slot that mean the same."""
        for entries in comparing.several():
            there = {one.id: one for one in entries[-_SLOT_MAX:]}
            pairs = await self._auditing.alike(tuple(there), _NEAR)
            report.add(
                maintenance.AuditFinding(
                    maintenance.AuditProblem.DUPLICATE, pair, maintenance.Fix.MERGE, "nearly the same meaning"
                )
                for pair in pairs
                if there[pair[0]].scope == there[pair[1]].scope and not there[pair[0]].same_as(there[pair[1]])
            )

    async def _secrets(self, report: AuditReport) -> None:
        """What has the shape of a secret: said is only of what kind it is."""
        after = 0
        while page := await self._auditing.texts(after, _PAGE):
            found = await masked_texts(self._redactor, [text for _, text in page])
            report.add(
                maintenance.AuditFinding(
                    maintenance.AuditProblem.SECRET,
                    (id_,),
                    maintenance.Fix.FORGET,
                    ", ".join(sorted(redaction.counted_kinds(plain.marks))),
                )
                for (id_, _), plain in zip(page, found, strict=True)
                if plain.marks
            )
            after = page[-1][0]

    async def _loose(self, report: AuditReport) -> None:
        for task in maintenance.LOOSE:
            after = 0
            while found := await self._auditing.loose(task, after, _PAGE):
                after, ids = found
                what, named = f"{task} of nothing", task is not maintenance.UpkeepTask.ENTITIES
                cases = ((one,) if named else () for one in ids)
                report.add(
                    maintenance.AuditFinding(maintenance.AuditProblem.ORPHANED, case, maintenance.Fix.MAINTAIN, what)
                    for case in cases
                )


_judging_log = logging.getLogger("keepsaid.judging")
_EACH = 10
"""Pairs in one call, and in one commit."""

_STEPS_MAX = 200


class PairReviewer:
    """Rules on pairs of memories; continues after the last pair that it read.

    A model is asked about at most `pairs_a_day` pairs in 24 hours, whoever starts a run and however often.
    """

    def __init__(self, pairs: Pairs, clock: Clock, judge: PairJudge | None = None, pairs_a_day: int = 100) -> None:
        self._pairs = pairs
        self._clock = clock
        self._judge = judge
        self._pairs_a_day = pairs_a_day
        self._after = 0

    async def run(self, enough: Enough = lambda: False, pacing: Pacing | None = None) -> int:
        """A pass, until it is `enough`; returns on how many pairs was ruled. What it did is kept, whatever it meets.

        With a `pacing` it rests after each batch.
        """
        ruled = 0
        for _ in range(_STEPS_MAX):
            if enough():
                break
            async with paced(pacing):
                found = await self._pairs.undecided(self._after, _EACH)
            equal = [learning.Ruled(one.older, one.newer, learning.Ruling.SAME) for one in found.pairs if one.equal]
            asked = await self._request_rulings([one for one in found.pairs if not one.equal])
            async with paced(pacing):
                ruled += await self._pairs.rule([*equal, *(asked or ())], self._clock.now_ms())
            if asked is None:
                break
            moved, self._after = found.upto > self._after, max(self._after, found.upto)
            if not moved and not equal and not asked:
                break
        return ruled

    async def _request_rulings(self, pairs: Sequence[learning.Pair]) -> list[learning.Ruled] | None:
        """Return the rulings of the judge; None if the pass has to stop before these pairs."""
        if self._judge is None or not pairs:
            return []
        since = self._clock.now_ms() - maintenance.DAY_MS
        if await self._pairs.count_rulings_since(since) + len(pairs) > self._pairs_a_day:
            return None
        try:
            rulings = await self._judge.judge(pairs)
        except ModelError as error:
            _judging_log.warning("pairs not judged: %s", error.what, extra={"code": error.code})
            return None
        name = self._judge.name
        return [
            learning.Ruled(one.older, one.newer, ruling, name)
            for one, ruling in zip(pairs, rulings, strict=True)
            if ruling is not None
        ]


_log = logging.getLogger("keepsaid.maintenance")
_MOST = 1_024
"""Things that one step looks at, if it has the time."""


@frozen
class MaintenanceTerms:
    """The curve by which memories fade, and at which hour of the day (UTC) a run begins.

    A step works for `step_ms`, if there is a limit; then it is written to the disk, which takes about as long again.
    """

    curve: maintenance.Curve = maintenance.Curve()
    hour: float = 3.0
    step_ms: float | None = 4.0


@dataclass(slots=True)
class MaintenanceProgress:
    """What a run did so far; `over` once nothing is left to be looked at."""

    changed: dict[maintenance.UpkeepTask, int] = field(default_factory=lambda: dict.fromkeys(maintenance.UpkeepTask, 0))
    archived: int = 0
    related: int = 0
    ruled: int = 0
    steps: int = 0
    longest_ms: float = 0.0
    over: bool = False

    def add(self, task: maintenance.UpkeepTask, step: maintenance.Stepped, took_ms: float) -> None:
        """A step more, and how long it took until it was on disk."""
        self.changed[task] += step.changed
        self.archived += step.archived
        self.steps += 1
        self.longest_ms = max(self.longest_ms, took_ms)


@dataclass(slots=True, eq=False)
class Maintenance:
    """Runs the tasks one after another; a run at a person's word and the nightly one are one at a time."""

    upkeep: Upkeep
    clock: Clock
    terms: MaintenanceTerms = MaintenanceTerms()
    embedding: Embedding | None = None
    associating: AssociationFinder | None = None
    halt: StopToken = field(default_factory=StopToken)
    judging: PairReviewer | None = None
    _last_ms: int = field(init=False)
    _one: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def __post_init__(self) -> None:
        self._last_ms = self.clock.now_ms()

    async def work(self) -> int | None:
        """A run, when a night has come since the last, or one was broken off; returns when the next is due."""
        runs = await self.upkeep.runs()
        last = max((run.begun_at for run in runs), default=self._last_ms)
        broken_off = any(run.ended_at is None for run in runs)
        if broken_off or self.clock.now_ms() >= timing.next_daily(last, self.terms.hour, UTC):
            done = await self.run()
            faded = done.changed[maintenance.UpkeepTask.FADE]
            _log.info("maintained: %d memories faded, %d archived, %d steps", faded, done.archived, done.steps)
        return timing.next_daily(self.clock.due_ms(), self.terms.hour, UTC)

    async def run(self, limit_ms: float | None = None) -> MaintenanceProgress:
        """A run; broken off after `limit_ms` and by a stop, so that it goes on from there when it is called again."""
        async with self._one:
            done, enough = MaintenanceProgress(), self._until(limit_ms)
            self._last_ms = self.clock.now_ms()
            space = await self._space()
            pacing = Pacing(self.clock)
            for task in maintenance.UpkeepTask:
                while not await self._step(task, space, done, pacing):
                    if enough():
                        return done
                    await pacing.rest()
            await self._rest_of(done, space, limit_ms, pacing)
            done.over = not self.halt.is_set
            await self.upkeep.empty_log()
            return done

    async def _rest_of(
        self, done: MaintenanceProgress, space: memory.VectorSpace | None, limit_ms: float | None, pacing: Pacing
    ) -> None:
        """The work outside of the store: vectors, associations, and close pairs."""
        if self.embedding is not None:
            self.embedding.restart_scan()
        if self.associating is not None and space is not None:
            done.related = await self.associating.run(space, enough=self._until(limit_ms), pacing=pacing)
        if self.judging is not None and not self.halt.is_set:
            done.ruled = await self.judging.run(self._until(limit_ms), pacing)

    def _until(self, limit_ms: float | None) -> Enough:
        """Whether to leave off: when so much time has passed from now, or the runtime stops."""
        end = None if limit_ms is None else self.clock.monotonic_ms() + limit_ms
        return lambda: self.halt.is_set or (end is not None and self.clock.monotonic_ms() >= end)

    async def _step(
        self, task: maintenance.UpkeepTask, space: memory.VectorSpace | None, done: MaintenanceProgress, pacing: Pacing
    ) -> bool:
        """A step, measured until it is on disk; whether its task is over."""
        with pacing.step():
            wanted = maintenance.Maintain(task, self._last_ms, _MOST, self.terms.curve, space, self.terms.step_ms)
            step = await self.upkeep.step(wanted)
        done.add(task, step, pacing.took_ms)
        return step.over

    async def _space(self) -> memory.VectorSpace | None:
        """The space whose vectors serve; None where there is none, or nobody knows."""
        try:
            return await self.embedding.space() if self.embedding is not None else None
        except EmbedderError:
            return None

    async def outstanding(self) -> maintenance.Outstanding:
        return await self.upkeep.outstanding(self.clock.now_ms(), self.terms.curve, await self._space())
