"""Importing: what another home knew, looked through line by line, and taken over in bounded commits.

All of it is looked through before anything is written. What is there already stays as it is, so that doing it again
changes nothing, and going on after a crash is doing it again.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from keepsaid.domain import bundle, message
from keepsaid.domain.bundle import BundleEntry, Edge, ImportOutcome, ImportVerdict, Record, Tombstone
from keepsaid.domain.memory import Kind
from keepsaid.domain.visibility import Person
from keepsaid.ports.runtime import Redactor, masked_texts
from keepsaid.values import frozen

T = TypeVar("T")

SHOWN_MAX = REASONS_MAX = 1_000
"""The lines not imported that are listed at most, and their reasons that are counted apart; the rest is counted."""

TYPES: Mapping[type, str] = {BundleEntry: "memories", Edge: "associations", Person: "people", Tombstone: "tombstones"}
"""What each type of record is called."""

_MASKED = ("text", "value", "metadata")
"""Fields of a memory in which secrets are masked."""

Write = Callable[[Sequence[Record]], Awaitable[Sequence[ImportVerdict]]]


@frozen
class ImportLine:
    """A line of what is imported: its record, or why it is none."""

    number: int
    record: Record | None
    why: str = ""


class ImportSource(Protocol):
    """What is imported; it can be gone through as often as need be."""

    def lines(self, wanted: Container[int] | None = None) -> Iterable[ImportLine]:
        """Every line, or those with these numbers: others are not read closely."""
        ...


class Looks(Protocol):
    """The memory that something may be imported into."""

    async def look(self, records: Sequence[Record]) -> Sequence[ImportVerdict]:
        """The outcome that each record would have."""
        ...


class ImportTarget(Looks, Protocol):
    """The memory that something is imported into."""

    async def take(self, records: Sequence[Record], contested: Sequence[bytes]) -> Sequence[ImportVerdict]:
        """Take over records; what holds in the contested slots is decided again."""
        ...

    async def learn(self, records: Sequence[BundleEntry]) -> Sequence[ImportVerdict]:
        """Learn memories as anything else is learned."""
        ...


@frozen
class ImportTerms:
    """How it is imported: how far who says it is trusted, whether tombstones fit the key of this home.

    What is `learned` comes from another program, not from a bundle, and counts as said again.
    """

    ceiling: message.Trust = message.Trust.OWNER
    tombstones: bool = True
    learned: bool = False


@dataclass(slots=True)
class ImportReport:
    """The outcome of all lines: counted by type and outcome, and listed one by one where it was not imported.

    `kinds` counts memories by kind and outcome, but not the lines of which nothing could be made. `reasons` counts
    what was not imported by type, outcome and reason, up to REASONS_MAX of them.
    """

    counts: Counter[tuple[str, ImportOutcome]] = field(default_factory=Counter)
    kinds: Counter[tuple[str, ImportOutcome]] = field(default_factory=Counter)
    reasons: Counter[tuple[str, ImportOutcome, str]] = field(default_factory=Counter)
    told: list[tuple[int, str, ImportVerdict]] = field(default_factory=list)
    left_out: int = 0
    secrets: int = 0

    def add(self, number: int, what: str, verdict: ImportVerdict, kind: str = "") -> None:
        """Count a line by the type of its record, and by the kind of its memory."""
        self.counts[what, verdict.outcome] += 1
        if kind:
            self.kinds[kind, verdict.outcome] += 1
        if verdict.outcome in (ImportOutcome.CONFLICT, ImportOutcome.REJECTED):
            reason = (what, verdict.outcome, verdict.why)
            if reason not in self.reasons and len(self.reasons) >= REASONS_MAX:
                reason = (what, verdict.outcome, "other reasons")
            self.reasons[reason] += 1
            if len(self.told) < SHOWN_MAX:
                self.told.append((number, what, verdict))
            else:
                self.left_out += 1


@dataclass(slots=True)
class _Survey:
    """What a bundle says of itself."""

    lines: defaultdict[type, set[int]] = field(default_factory=lambda: defaultdict(set))
    keys: set[str] = field(default_factory=set)
    ids: set[int] = field(default_factory=set)
    replaced: dict[str, str] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Plan:
    """What is to be taken over: lines, and slots that are decided again."""

    survey: _Survey
    lines: defaultdict[type, set[int]] = field(default_factory=lambda: defaultdict(set))
    fresh: set[str] = field(default_factory=set)
    linked: set[int] = field(default_factory=set)
    contested: set[bytes] = field(default_factory=set)


class MemoryImport:
    """One import."""

    def __init__(self, given: ImportSource, redactor: Redactor, terms: ImportTerms) -> None:
        self._given = given
        self._redactor = redactor
        self._terms = terms

    async def look(self, home: Looks) -> ImportReport:
        """What an import would do; nothing is changed."""
        report = ImportReport()
        await self._planned(home, report)
        return report

    async def run(self, home: ImportTarget) -> ImportReport:
        """Import it. Raises what the store raises; what was taken over before stays, and is the same next time."""
        report = ImportReport()
        plan = await self._planned(home, report)
        for counts in (report.counts, report.kinds):
            for key in [one for one in counts if one[1] is ImportOutcome.NEW]:
                del counts[key]
        if self._terms.learned:

            def learn(records: Sequence[Record]) -> Awaitable[Sequence[ImportVerdict]]:
                return home.learn([one for one in records if isinstance(one, BundleEntry)])

            await self._write(plan, report, BundleEntry, learn)
            return report
        slots = tuple(sorted(plan.contested))
        kinds: tuple[type[Record], ...] = (Tombstone, BundleEntry, Edge, Person)
        for kind in kinds:
            await self._write(plan, report, kind, lambda records: home.take(records, slots))
            if kind is BundleEntry:
                await self._link(home, plan)
        return report

    async def _planned(self, home: Looks, report: ImportReport) -> _Plan:
        plan = _Plan(await asyncio.to_thread(self._surveyed, report))
        edges = plan.survey.lines.pop(Edge, set())
        for chosen in (set().union(*plan.survey.lines.values()), edges):
            async for some in _apart(bundle.in_batches(self._given.lines(chosen), _weight)):
                records = await self._prepared([line.record for line in some if line.record is not None], report)
                verdicts = await home.look(records)
                for line, record, verdict in zip(some, records, verdicts, strict=True):
                    self._weigh(plan, report, (line.number, record), verdict)
        report.told.sort(key=lambda one: one[0])
        return plan

    def _surveyed(self, report: ImportReport) -> _Survey:
        """Go through all lines once: invalid records, duplicates, and cycles."""
        survey = _Survey()
        for line in self._given.lines():
            why = line.why or self._fault(line, survey)
            if not why:
                survey.lines[type(line.record)].add(line.number)
            else:
                what = TYPES.get(type(line.record), "lines")
                report.add(line.number, what, ImportVerdict(ImportOutcome.REJECTED, why), _kind(line.record))
        for key in sorted(bundle.cyclic(survey.replaced), key=survey.places.__getitem__):
            why = "superseded_by: it would take its own place"
            survey.lines[BundleEntry].discard(survey.places[key])
            survey.keys.discard(key)
            report.add(survey.places[key], TYPES[BundleEntry], ImportVerdict(ImportOutcome.REJECTED, why))
        return survey

    def _fault(self, line: ImportLine, survey: _Survey) -> str:
        match line.record:
            case BundleEntry() as entry:
                return _entry_fault(bundle.allowed(entry, self._terms.ceiling), survey, line.number)
            case Person() if self._terms.ceiling is not message.Trust.OWNER:
                return "who is who is the owner's word alone"
            case Tombstone() if not self._terms.tombstones:
                return "this home does not have its key: put the forgotten.key it was made with beside the bundle"
            case bundle.BundleLink():
                return "links stand in the memories"
        return ""

    async def _prepared(self, records: Sequence[Record], report: ImportReport | None = None) -> list[Record]:
        """The records as whoever imports them may tell them, without secrets."""
        fit = [bundle.allowed(one, self._terms.ceiling) if isinstance(one, BundleEntry) else one for one in records]
        entries = [one for one in fit if isinstance(one, BundleEntry)]
        texts = [getattr(one.memory.new, name) for one in entries for name in _MASKED]
        plain = iter(await masked_texts(self._redactor, texts))
        for n, one in enumerate(fit):
            if isinstance(one, BundleEntry):
                text, value, metadata = next(plain), next(plain), next(plain)
                new = one.memory.new
                if text.marks or value.marks or metadata.marks:
                    new = replace(new, text=text.text, value=value.text, metadata=whole_object(metadata.text))
                    fit[n] = replace(one, memory=replace(one.memory, new=new))
                    if report is not None:
                        report.secrets += 1
        return fit

    def _weigh(self, plan: _Plan, report: ImportReport, given: tuple[int, Record], verdict: ImportVerdict) -> None:
        number, record = given
        is_learned = self._terms.learned and _kind(record) != Kind.EPISODE
        ours: set[str] = set() if is_learned else plan.survey.keys
        if isinstance(record, Edge) and verdict.beside and plan.fresh.issuperset(verdict.beside):
            verdict = ImportVerdict(ImportOutcome.NEW)
        if verdict.outcome is ImportOutcome.NEW and not ours.issuperset(verdict.like):
            verdict = ImportVerdict(ImportOutcome.SAME, "it is known here in the same words")
        report.add(number, TYPES[type(record)], verdict, _kind(record))
        is_here = verdict.outcome in (ImportOutcome.NEW, ImportOutcome.SAME)
        if is_here and isinstance(record, BundleEntry) and record.replaced_by:
            plan.linked.add(number)
        if verdict.outcome is not ImportOutcome.NEW:
            return
        plan.lines[type(record)].add(number)
        if isinstance(record, BundleEntry):
            plan.fresh.add(record.memory.new.key)
            slot = record.slot
            if slot is not None and not ours.issuperset(verdict.beside):
                plan.contested.add(slot)

    async def _write(self, plan: _Plan, report: ImportReport, kind: type[Record], write: Write) -> None:
        """Take over all new lines of one type, batch by batch."""
        async for some in _apart(bundle.in_batches(self._given.lines(plan.lines[kind]), _weight)):
            verdicts = await write(await self._prepared([line.record for line in some if line.record is not None]))
            for line, verdict in zip(some, verdicts, strict=True):
                report.add(line.number, TYPES[kind], verdict, _kind(line.record))

    async def _link(self, home: ImportTarget, plan: _Plan) -> None:
        """Link imported memories to their successors; slots that were decided again have the link already."""
        entries = (line.record for line in self._given.lines(plan.linked) if isinstance(line.record, BundleEntry))
        links = (
            bundle.BundleLink(one.memory.new.key, one.replaced_by, one.memory.state, one.memory.valid_to)
            for one in entries
            if one.replaced_by and one.slot not in plan.contested
        )
        async for some in _apart(bundle.in_batches(links, bundle.weight_of)):
            await home.take(some, ())


def whole_object(metadata: str) -> str:
    """Metadata without its secrets; nothing of it if it is not an object of JSON any more."""
    try:
        return metadata if isinstance(json.loads(metadata), dict) else "{}"
    except ValueError:
        return "{}"


async def _apart(batches: Iterator[Sequence[T]]) -> AsyncIterator[Sequence[T]]:
    """The batches, read in a thread: a line can be long, and the loop has others to serve."""
    while (batch := await asyncio.to_thread(next, batches, None)) is not None:
        yield batch


def _kind(record: Record | None) -> str:
    """The kind of a memory; "" for anything else."""
    return str(record.memory.new.kind) if isinstance(record, BundleEntry) else ""


def _weight(line: ImportLine) -> int:
    return bundle.weight_of(line.record)


def _entry_fault(entry: BundleEntry, survey: _Survey, number: int) -> str:
    key, id_ = entry.memory.new.key, entry.memory.id
    if why := bundle.gated(entry):
        return why
    if key in survey.keys:
        return f"the key {key[:80]!r} stood in an earlier line"
    if id_ in survey.ids:
        return "its id stood in an earlier line"
    survey.keys.add(key)
    survey.ids.add(id_)
    survey.places[key] = number
    if entry.replaced_by:
        survey.replaced[key] = entry.replaced_by
    return ""
