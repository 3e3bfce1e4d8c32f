"""Importing a bundle, or what another program knew: the files, the persons, and the outcome of every line."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Protocol

from keepsaid.domain import message
from keepsaid.domain.bundle import FORGOTTEN, BundleEntry, ImportOutcome, ImportVerdict, Record, key_print
from keepsaid.domain.learning import LearnOutcome, LearnResult
from keepsaid.domain.memory import Kind, NewMemory
from keepsaid.memory.importing import ImportReport, ImportTarget, ImportTerms, Looks, MemoryImport
from keepsaid.memory.stating import StatedFacts
from keepsaid.ports import runtime, store
from keepsaid.services.bundles import BundleFile
from keepsaid.services.imports.drafts import ForeignFiles
from keepsaid.services.imports.files import ReadSessions, open_files
from keepsaid.services.imports.formats import KEEPSAID, READERS, format_of
from keepsaid.values import frozen

KEY_NAME = "forgotten.key"
_KEY_BYTES_MAX = 1_000
_NEW, _SAME = (LearnOutcome.NEW, LearnOutcome.UPDATES, LearnOutcome.PAST), (LearnOutcome.EVIDENCE, LearnOutcome.KNOWN)


@frozen
class ImportRequest:
    """What is to be imported.

    `source` is its format, `trust` how far it is trusted at most, `persons` who is who that another program names.
    `sessions` reads the sessions in a database of another program.
    """

    file: Path
    source: str = KEEPSAID
    trust: message.Trust = message.Trust.OWNER
    persons: Mapping[str, str] = field(default_factory=dict)
    sessions: ReadSessions | None = None

    @classmethod
    def of(cls, file: Path, source: str, trust: str, persons: Mapping[str, str]) -> ImportRequest:
        """The request, where "" means the format that the file has, and the trust that is usual for it.

        This reads the file. Raises InputError for a file of no known format.
        """
        source = source or format_of(file)
        usual = message.Trust.OWNER if source == KEEPSAID else message.Trust.KNOWN
        return cls(file, source, message.Trust(trust) if trust else usual, persons)

    def reading(self, sessions: ReadSessions) -> ImportRequest:
        """The request with a reader of sessions in a database."""
        return replace(self, sessions=sessions)

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


class Keyed(LookedAt, ImportTarget, Protocol):
    """A home that something is imported into."""

    async def adopt_key(self, key: bytes) -> bool:
        """Make tombstones with this key from now on; False where there is another."""
        ...


class LocalMemory:
    """The memory of this process; `facts` learns what imported messages plainly state, None learns none of it."""

    def __init__(self, memories: store.MemoryStore, clock: runtime.Clock, facts: StatedFacts | None) -> None:
        self._memories = memories
        self._clock = clock
        self._facts = facts

    async def look(self, records: Sequence[Record]) -> Sequence[ImportVerdict]:
        return await self._memories.bundles.look(records)

    async def take(self, records: Sequence[Record], contested: Sequence[bytes]) -> Sequence[ImportVerdict]:
        return await self._memories.bundles.take(records, contested, self._clock.now_ms())

    async def learn(self, records: Sequence[BundleEntry]) -> Sequence[ImportVerdict]:
        new, at = [one.memory.new for one in records], self._clock.now_ms()
        # facts come first: an episode that is kept is not looked at again when a broken off import continues
        if self._facts is not None:
            await self._facts.learn_imported(new, at)
        return await learn(self._memories, new, at)

    async def key_print(self) -> str:
        return await self._memories.bundles.key_print()

    async def adopt_key(self, key: bytes) -> bool:
        return await self._memories.bundles.adopt_key(key)


async def learn(memories: store.MemoryStore, new: Sequence[NewMemory], at: int) -> Sequence[ImportVerdict]:
    """Learn memories, and keep episodes word for word; returns the outcome of each. `at` is milliseconds UTC."""
    facts = [one for one in new if one.kind is not Kind.EPISODE]
    learnt = iter([became(one) for one in await memories.learn(facts, at)])
    kept = iter(await memories.keep([one for one in new if one.kind is Kind.EPISODE], at))
    made = ImportVerdict(ImportOutcome.NEW)
    return [next(learnt) if one.kind is not Kind.EPISODE else made if next(kept) else FORGOTTEN for one in new]


def became(one: LearnResult) -> ImportVerdict:
    """What was learned, as the verdict on a line."""
    if one.how is LearnOutcome.FORGOTTEN:
        return FORGOTTEN
    same = ImportOutcome.SAME if one.how in _SAME else ImportOutcome.REJECTED
    return ImportVerdict(ImportOutcome.NEW if one.how in _NEW else same, one.why)


async def preview_import(asked: ImportRequest, home: LookedAt, redactor: runtime.Redactor, now: int) -> ImportReport:
    """What an import would do; nothing is changed. Raises InputError."""
    given, _, fits = await _open_file(asked, home, now)
    return await MemoryImport(given, redactor, _terms(asked, fits=fits)).look(home)


async def import_memories(asked: ImportRequest, home: Keyed, redactor: runtime.Redactor, now: int) -> ImportReport:
    """Import a file, and return the outcome. Raises InputError with nothing imported."""
    given, key, fits = await _open_file(asked, home, now)
    if fits and given.key_print and not await home.key_print():
        fits = await home.adopt_key(key)
    return await MemoryImport(given, redactor, _terms(asked, fits=fits)).run(home)


async def _open_file(asked: ImportRequest, home: LookedAt, now: int) -> tuple[BundleFile | ForeignFiles, bytes, bool]:
    """The file to import, the key next to it, and whether its tombstones hold in this home.

    They do where they have its key, or where it has none and theirs is here.
    """
    given: BundleFile | ForeignFiles
    if (reader := READERS.get(asked.source)) is not None:
        files, key = await asyncio.to_thread(open_files, asked.file, asked.sessions), b""
        given = ForeignFiles(files, reader, asked.persons, now)
    else:
        given, key = await asyncio.to_thread(BundleFile, asked.file), await asyncio.to_thread(lambda: asked.key)
    there = await home.key_print()
    return given, key, given.key_print == there or (not there and given.key_print == key_print(key or None))


def _terms(asked: ImportRequest, *, fits: bool) -> ImportTerms:
    return ImportTerms(asked.trust, fits, learned=asked.source in READERS)
