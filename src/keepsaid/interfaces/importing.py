"""Importing as people ask for it: from which file, as whom, and what became of every line."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from keepsaid.domain.bundle import FORGOTTEN, Entry, Outcome, Record, Verdict, key_print
from keepsaid.domain.learning import How, Learnt
from keepsaid.domain.message import Trust
from keepsaid.interfaces.bundle_file import BundleFile
from keepsaid.interfaces.mem0 import Mem0File
from keepsaid.interfaces.shapes import Shape
from keepsaid.memory.importing import TYPES, Home, Importing, ImportTerms, Looks, Report
from keepsaid.ports.redactor import Redactor

if TYPE_CHECKING:
    from keepsaid.app.instance import Instance

KEEPSAID, MEM0 = "keepsaid", "mem0"
KEY_NAME = "forgotten.key"
_KEY_BYTES_MAX = 1_000
_BECAME = {
    How.NEW: Outcome.NEW,
    How.UPDATES: Outcome.NEW,
    How.PAST: Outcome.NEW,
    How.EVIDENCE: Outcome.SAME,
    How.KNOWN: Outcome.SAME,
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be imported.

    `trust` is how far it is trusted at most, `persons` who is who that mem0 names.
    """

    file: Path
    source: str = KEEPSAID
    trust: Trust = Trust.OWNER
    persons: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> bytes:
        """The key of the tombstones, where it stands beside a bundle; else nothing."""
        try:
            with self.file.with_name(KEY_NAME).open("rb") as opened:
                return opened.read(_KEY_BYTES_MAX)
        except OSError:
            return b""


class LookedAt(Looks, Protocol):
    """A home that something may be imported into, and the key of its tombstones."""

    async def key_print(self) -> str:
        """Which key its tombstones are made with; "" while it has none."""
        ...


class Keyed(LookedAt, Home, Protocol):
    """A home that something is imported into."""

    async def adopt_key(self, key: bytes) -> bool:
        """Make tombstones with this key from now on; False where there is another."""
        ...


class Here:
    """The memory of an instance."""

    def __init__(self, instance: Instance) -> None:
        self._memories = instance.memories
        self._clock = instance.clock

    async def look(self, records: Sequence[Record]) -> Sequence[Verdict]:
        """What would become of each of the records."""
        return await self._memories.bundles.look(records)

    async def take(self, records: Sequence[Record], contested: Sequence[bytes]) -> Sequence[Verdict]:
        """Take over records."""
        return await self._memories.bundles.take(records, contested, self._clock.now_ms())

    async def learn(self, records: Sequence[Entry]) -> Sequence[Verdict]:
        """Learn memories as anything else is learned."""
        learnt = await self._memories.learn([one.memory.new for one in records], self._clock.now_ms())
        return list(map(became, learnt))

    async def key_print(self) -> str:
        """Which key its tombstones are made with."""
        return await self._memories.bundles.key_print()

    async def adopt_key(self, key: bytes) -> bool:
        """Make tombstones with this key from now on; False where there is another."""
        return await self._memories.bundles.adopt_key(key)


def became(one: Learnt) -> Verdict:
    """What was learned, as the verdict on a line."""
    return FORGOTTEN if one.how is How.FORGOTTEN else Verdict(_BECAME.get(one.how, Outcome.REJECTED), one.why)


async def would_import(wanted: Wanted, home: LookedAt, redactor: Redactor, now: int) -> Shape:
    """What an import would do; nothing is changed. Raises InputError."""
    given, key = await _given(wanted, now)
    fits = await _fits(given, key, home)
    report = await Importing(given, redactor, _terms(wanted, fits=fits)).look(home)
    return report_shape(report, wanted, dry_run=True)


async def imported(wanted: Wanted, home: Keyed, redactor: Redactor, now: int) -> Shape:
    """Import a file, and what became of it. Raises InputError with nothing imported."""
    given, key = await _given(wanted, now)
    fits = await _fits(given, key, home)
    if fits and given.key_print and not await home.key_print():
        fits = await home.adopt_key(key)
    report = await Importing(given, redactor, _terms(wanted, fits=fits)).run(home)
    return report_shape(report, wanted, dry_run=False)


async def _given(wanted: Wanted, now: int) -> tuple[BundleFile | Mem0File, bytes]:
    """The file, and the key beside it."""
    if wanted.source == MEM0:
        return await asyncio.to_thread(Mem0File, wanted.file, wanted.persons, now), b""
    return await asyncio.to_thread(BundleFile, wanted.file), await asyncio.to_thread(lambda: wanted.key)


async def _fits(given: BundleFile | Mem0File, key: bytes, home: LookedAt) -> bool:
    """Whether the tombstones hold in this home: they have its key, or it has none and theirs is here."""
    there = await home.key_print()
    return given.key_print == there or (not there and given.key_print == key_print(key or None))


def _terms(wanted: Wanted, *, fits: bool) -> ImportTerms:
    return ImportTerms(wanted.trust, fits, learned=wanted.source == MEM0)


def report_shape(report: Report, wanted: Wanted, *, dry_run: bool) -> Shape:
    """What became of all lines, counted, and those that were not taken over one by one."""
    names = [*TYPES.values(), *(["lines"] if any(what == "lines" for what, _ in report.counts) else [])]
    counts = {what: {str(how): report.counts[what, how] for how in Outcome} for what in names}
    told = [
        {"line": number, "type": what, "outcome": str(verdict.outcome), "why": verdict.why}
        for number, what, verdict in report.told
    ]
    about = {"dry_run": dry_run, "file": str(wanted.file), "from": wanted.source, "trust": str(wanted.trust)}
    return {**about, "counts": counts, "secrets": report.secrets, "told": told, "not_told": report.left_out}
