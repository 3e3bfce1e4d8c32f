"""The audit: both stores are read a page at a time, and every case of trouble is counted, the first ones named."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from keepsaid.domain.maintenance import (
    DAY_MS,
    LOOSE,
    AuditEntry,
    AuditFinding,
    AuditProblem,
    ConflictFinder,
    Fix,
    UpkeepTask,
    echo,
    ended,
    repeats_only,
    sourceless,
    unused,
)
from keepsaid.domain.redaction import counted_kinds
from keepsaid.ports.memory_maintenance import Auditing, SourceView
from keepsaid.ports.redactor import Redactor, masked_texts
from keepsaid.ports.runtime import Clock

UNUSED_DAYS = 180
"""What was not shown to any turn for so long was never needed."""

SHOWN_MAX = 5
"""So many cases of each trouble are named."""

_PAGE, _NEAR, _SLOT_MAX = 500, 0.92, 200
_NIGHT_MS = DAY_MS
"""What ended within the last day is ended by the coming night."""


@dataclass(slots=True)
class AuditReport:
    """How many cases there are of each trouble, and the first of them."""

    counts: dict[AuditProblem, int] = field(default_factory=lambda: dict.fromkeys(AuditProblem, 0))
    cases: dict[AuditProblem, list[AuditFinding]] = field(default_factory=lambda: {one: [] for one in AuditProblem})

    def add(self, cases: Iterable[AuditFinding | None]) -> None:
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
        comparing = ConflictFinder(now)
        async for page in self._learned():
            report.add(await asyncio.to_thread(lambda page: [*chain.from_iterable(map(comparing.look, page))], page))
            report.add(ended(one, now - _NIGHT_MS) for one in page)
            report.add(unused(one, int(now - unused_days * DAY_MS)) for one in page)
            await self._traced(page, report)
        await self._near(comparing, report)
        await self._secrets(report)
        await self._loose(report)
        withdrawn = await self._auditing.withdrawn(now, _PAGE)
        report.add(
            AuditFinding(AuditProblem.STALE, (one,), Fix.MAINTAIN, "a bulletin of what holds no more")
            for one in withdrawn
        )
        return report

    async def _learned(self) -> AsyncIterator[Sequence[AuditEntry]]:
        after = 0
        while page := await self._auditing.learned(after, _PAGE):
            yield page
            after = page[-1].id

    async def _traced(self, page: Sequence[AuditEntry], report: AuditReport) -> None:
        """Memories whose sources are gone, and those that the agent learned from itself."""
        missing = await self._trails.missing([source for one in page for source in one.sources])
        report.add(sourceless(one, missing) for one in page)
        repeating = {one: turns for one in page if (turns := repeats_only(one.sources))}
        shown = await self._trails.shown([turn for turns in repeating.values() for turn in turns])
        told = {one.id: one for one in await self._auditing.entries([id_ for ids in shown.values() for id_ in ids])}
        for one, turns in repeating.items():
            before = [told[id_] for turn in turns for id_ in shown.get(turn, ()) if id_ in told]
            report.add([echo(one, before)])

    async def _near(self, comparing: ConflictFinder, report: AuditReport) -> None:
        """Values of one slot that mean the same."""
        for entries in comparing.several():
            there = {one.id: one for one in entries[-_SLOT_MAX:]}
            pairs = await self._auditing.alike(tuple(there), _NEAR)
            report.add(
                AuditFinding(AuditProblem.DUPLICATE, pair, Fix.MERGE, "nearly the same meaning")
                for pair in pairs
                if there[pair[0]].scope == there[pair[1]].scope and not there[pair[0]].same_as(there[pair[1]])
            )

    async def _secrets(self, report: AuditReport) -> None:
        """What has the shape of a secret: said is only of what kind it is."""
        after = 0
        while page := await self._auditing.texts(after, _PAGE):
            found = await masked_texts(self._redactor, [text for _, text in page])
            report.add(
                AuditFinding(AuditProblem.SECRET, (id_,), Fix.FORGET, ", ".join(sorted(counted_kinds(plain.marks))))
                for (id_, _), plain in zip(page, found, strict=True)
                if plain.marks
            )
            after = page[-1][0]

    async def _loose(self, report: AuditReport) -> None:
        for task in LOOSE:
            after = 0
            while found := await self._auditing.loose(task, after, _PAGE):
                after, ids = found
                report.add(
                    AuditFinding(
                        AuditProblem.ORPHANED,
                        () if task is UpkeepTask.ENTITIES else (one,),
                        Fix.MAINTAIN,
                        f"{task} of nothing",
                    )
                    for one in ids
                )
