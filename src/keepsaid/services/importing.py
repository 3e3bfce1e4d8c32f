"""Importing a bundle or mem0's memories: the file, the persons, and the outcome of every line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

from keepsaid.domain import ids, memory, message, timing
from keepsaid.domain.bundle import FORGOTTEN, BundleEntry, ImportOutcome, ImportVerdict, Record, key_print
from keepsaid.domain.learning import LEARNABLE, LearnOutcome, LearnResult
from keepsaid.errors import InputError
from keepsaid.memory.importing import ImportLine, ImportReport, ImportTarget, ImportTerms, Looks, MemoryImport
from keepsaid.ports import runtime, store
from keepsaid.services.bundles import BundleFile
from keepsaid.text.normal import kind_of, normalise
from keepsaid.values import frozen

FILE_BYTES_MAX = 256_000_000
EVERYBODY = "*"
"""The key for all who are not named."""

_HASH_BYTES = 16
_NAME_CHARS = 200
_METADATA_CHARS = 20_000
_LISTS = ("results", "memories")
_ABOUT = ("user_id", "agent_id", "run_id", "categories", "metadata", "updated_at", "hash")


class Mem0File:
    """A JSON file of mem0, read whole; `persons` says who is who here, by what mem0 calls them.

    An item is counted as a line, the first is 1. Raises InputError with nothing imported.
    """

    def __init__(self, path: Path, persons: Mapping[str, str], now: int) -> None:
        self._items = _items(path)
        self._persons = persons
        self._now = now

    @property
    def key_print(self) -> str:
        """It has no tombstones."""
        return ""

    def lines(self, wanted: Container[int] | None = None) -> Iterator[ImportLine]:
        """Each item, or those that are wanted, as a memory, or why it is none."""
        for number, item in enumerate(self._items, start=1):
            if wanted is not None and number not in wanted:
                continue
            try:
                yield ImportLine(number, self._entry(item, number))
            except ValueError as error:
                yield ImportLine(number, None, str(error))

    def _entry(self, item: Any, number: int) -> BundleEntry:
        """Its words as a memory made from others' words, which its person can read in direct chats."""
        if not isinstance(item, dict):
            raise ValueError(f"it is {kind_of(item)}, not an object")
        text = item.get("memory", item.get("text"))
        if not isinstance(text, str):
            raise ValueError("it has no text as `memory`")
        name = item.get("id")
        if not isinstance(name, str) or not 0 < len(name) <= _NAME_CHARS:
            raise ValueError(f"it has no `id` of 1 to {_NAME_CHARS} characters")
        person, kind = self._person(item), _kind(item)
        new = memory.NewMemory(
            key=f"import:mem0:{name}",
            kind=kind,
            text=normalise(text).strip(),
            scope=memory.person_scope(person),
            trust=message.Trust.OWNER if person == memory.OWNER else message.Trust.KNOWN,
            said_at=_said_at(item, self._now),
            importance=memory.IMPORTANCE[kind],
            sources=(memory.Source("import", f"mem0:{name}"),),
            derived=True,
            metadata=_metadata(item),
            subject_id=person,
        )
        return BundleEntry(memory.Memory(number, new, "active", self._now), bytes(_HASH_BYTES), said_in=("",))

    def _person(self, item: dict[str, Any]) -> str:
        called = next((str(item[name]) for name in ("user_id", "agent_id", "run_id") if item.get(name)), "")
        if (person := self._persons.get(called, self._persons.get(EVERYBODY))) is None:
            raise ValueError(f"nobody here is {called[:80]!r}: say who it is with --as '{called[:80]}=owner'")
        return person


def _items(path: Path) -> list[Any]:
    try:
        size = path.stat().st_size
        raw = path.read_bytes() if size <= FILE_BYTES_MAX else b""
    except OSError as error:
        raise _refused(f"{path} cannot be read ({error.strerror})") from error
    if size > FILE_BYTES_MAX:
        raise _refused(f"{path} has {size:,} bytes; {FILE_BYTES_MAX:,} are allowed")
    try:
        told = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _refused(f"{path} is not JSON") from error
    if isinstance(told, dict):
        told = next((told[name] for name in _LISTS if isinstance(told.get(name), list)), None)
    if not isinstance(told, list):
        raise _refused(f"{path} is not a list of memories, and holds none as `results`")
    return told


def _refused(what: str) -> InputError:
    return InputError(what, safe="Nothing was imported.", hint="keepsaid data import --help")


def _kind(item: dict[str, Any]) -> memory.Kind:
    """What the last word of one of its categories names, as in `food_preferences`; else a fact."""
    categories = item.get("categories")
    for category in categories if isinstance(categories, list) else ():
        word = str(category).lower().replace(" ", "_").rsplit("_", 1)[-1]
        for one in LEARNABLE:
            if word in (one, f"{one}s", f"{one[:-1]}ies"):
                return one
    return memory.Kind.FACT


def _said_at(item: dict[str, Any], now: int) -> int:
    given = item.get("created_at") or item.get("updated_at")
    if given is None:
        return now
    if not isinstance(given, str):
        raise ValueError(f"created_at is {kind_of(given)}, not a time as text")
    at = timing.once(given).at
    if not ids.is_time(at):
        raise ValueError("created_at is outside the years 1 to 9999")
    return at


def _metadata(item: dict[str, Any]) -> str:
    """Its other fields in mem0; where that is too much, only that it is from there."""
    about = {name: item[name] for name in _ABOUT if item.get(name) is not None}
    told = json.dumps({"mem0": about}, ensure_ascii=False)
    return told if len(told) <= _METADATA_CHARS else '{"mem0": {}}'


KEEPSAID, MEM0 = "keepsaid", "mem0"
KEY_NAME = "forgotten.key"
_KEY_BYTES_MAX = 1_000
_NEW, _SAME = (LearnOutcome.NEW, LearnOutcome.UPDATES, LearnOutcome.PAST), (LearnOutcome.EVIDENCE, LearnOutcome.KNOWN)


@frozen
class ImportRequest:
    """What is to be imported.

    `trust` is how far it is trusted at most, `persons` who is who that mem0 names.
    """

    file: Path
    source: str = KEEPSAID
    trust: message.Trust = message.Trust.OWNER
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


class Keyed(LookedAt, ImportTarget, Protocol):
    """A home that something is imported into."""

    async def adopt_key(self, key: bytes) -> bool:
        """Make tombstones with this key from now on; False where there is another."""
        ...


class LocalMemory:
    """The memory of this process."""

    def __init__(self, memories: store.MemoryStore, clock: runtime.Clock) -> None:
        self._memories = memories
        self._clock = clock

    async def look(self, records: Sequence[Record]) -> Sequence[ImportVerdict]:
        return await self._memories.bundles.look(records)

    async def take(self, records: Sequence[Record], contested: Sequence[bytes]) -> Sequence[ImportVerdict]:
        return await self._memories.bundles.take(records, contested, self._clock.now_ms())

    async def learn(self, records: Sequence[BundleEntry]) -> Sequence[ImportVerdict]:
        learnt = await self._memories.learn([one.memory.new for one in records], self._clock.now_ms())
        return list(map(became, learnt))

    async def key_print(self) -> str:
        return await self._memories.bundles.key_print()

    async def adopt_key(self, key: bytes) -> bool:
        return await self._memories.bundles.adopt_key(key)


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


async def _open_file(asked: ImportRequest, home: LookedAt, now: int) -> tuple[BundleFile | Mem0File, bytes, bool]:
    """The file to import, the key next to it, and whether its tombstones hold in this home.

    They do where they have its key, or where it has none and theirs is here.
    """
    given: BundleFile | Mem0File
    if asked.source == MEM0:
        given, key = await asyncio.to_thread(Mem0File, asked.file, asked.persons, now), b""
    else:
        given, key = await asyncio.to_thread(BundleFile, asked.file), await asyncio.to_thread(lambda: asked.key)
    there = await home.key_print()
    return given, key, given.key_print == there or (not there and given.key_print == key_print(key or None))


def _terms(asked: ImportRequest, *, fits: bool) -> ImportTerms:
    return ImportTerms(asked.trust, fits, learned=asked.source == MEM0)
