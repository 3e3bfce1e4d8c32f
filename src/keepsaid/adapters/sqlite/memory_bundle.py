"""Bundles on SQLite: what listeners may hear, read in one snapshot, and what would become of what another home knew."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import apsw

from keepsaid.adapters.sqlite.memory_commits import content_hash
from keepsaid.adapters.sqlite.memory_masked import without_secrets
from keepsaid.adapters.sqlite.memory_people import joined_with
from keepsaid.adapters.sqlite.memory_people import listed as people_listed
from keepsaid.adapters.sqlite.memory_rows import bound, intact, memory, statements
from keepsaid.adapters.sqlite.memory_take import judged
from keepsaid.adapters.sqlite.migrate import version
from keepsaid.adapters.sqlite.query import every
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.adapters.sqlite.tombs import Tombs
from keepsaid.domain.bundle import SPARE_IDS, Edge, Entry, Named, Record, Said, TakeIn, Tombstone, Verdict, key_print
from keepsaid.domain.memory import Listener, NewMemory
from keepsaid.domain.people import Person
from keepsaid.domain.visibility import Widened
from keepsaid.ports.memory_store import Told
from keepsaid.ports.redactor import Redactor
from keepsaid.ports.runtime import Ids
from keepsaid.ports.store_views import Operations

T = TypeVar("T")
SQL = statements("memory_bundle")
_READ_AT_ONCE = 200
_COLUMNS = 35


class SqliteBundles:
    """Bundles of the memories in one SQLite file; `writer` must know how a TakeIn is applied."""

    def __init__(
        self, writer: Operations, readers: Readers, ids: Ids, tombs: Tombs, redactor: Redactor | None = None
    ) -> None:
        self._writer = writer
        self._readers = readers
        self._ids = ids
        self._tombs = tombs
        self._redactor = redactor

    async def tell(self, listeners: Sequence[Listener], write: Callable[[Told], T]) -> T:
        """What `write` makes of all that one of the listeners may hear, as of one moment; it runs in a thread."""
        mark = await self.key_print()
        return await self._readers.run(lambda db: write(_told(db, tuple(listeners), mark)))

    async def look(self, records: Sequence[Record]) -> Sequence[Verdict]:
        """What would become of each of the records; nothing is changed."""
        return await self._readers.run(lambda db: [judged(db, one, self._buried(db)) for one in records])

    async def take(self, records: Sequence[Record], contested: Sequence[bytes], at: int) -> Sequence[Verdict]:
        """Take over records, all of a call or none; what is there stays. Secrets are masked."""
        masked = await self._masked(records)
        ids = tuple(self._ids.next() for _ in range(len(masked) * SPARE_IDS))
        return await self._writer.apply(TakeIn(masked, ids, tuple(contested), at))

    async def key_print(self) -> str:
        """Which key the tombstones of this home are made with; "" while it has none."""
        return key_print(await self._readers.run(lambda _: self._tombs.key()))

    async def adopt_key(self, key: bytes) -> bool:
        """Make tombstones with this key from now on; False, and nothing changed, where there is another already."""
        return await self._readers.run(lambda _: self._tombs.adopt(key))

    def _buried(self, db: apsw.Connection) -> Callable[[Sequence[bytes]], bool]:
        def buried(hashes: Sequence[bytes]) -> bool:
            stones = json.dumps([stone.hex() for stone in self._tombs.buried(hashes)])
            return bool(every(db, SQL["entombed"], {"hashes": stones}))

        return buried

    async def _masked(self, records: Sequence[Record]) -> tuple[Record, ...]:
        entries = [record for record in records if isinstance(record, Entry)]
        clean = iter(await without_secrets(self._redactor, [entry.memory.new for entry in entries]))
        return tuple(_clean(record, next(clean)) if isinstance(record, Entry) else record for record in records)


def _clean(entry: Entry, new: NewMemory) -> Entry:
    """The memory with the words it may have; where these are others, its tombstone is made of them."""
    if new.text == entry.memory.new.text:
        return replace(entry, memory=replace(entry.memory, new=new))
    return replace(entry, memory=replace(entry.memory, new=new), content_hash=content_hash(new))


def _told(db: apsw.Connection, listeners: tuple[Listener, ...], mark: str) -> Told:
    ids = sorted({int(row[0]) for listener in listeners for row in every(db, SQL["told"], bound(listener))})
    heard = frozenset(ids)
    everything = any(listener.everything for listener in listeners)
    people = [person for person in people_listed(db) if everything or _named(db, person, listeners)]
    stones: list[tuple[Any, ...]] = every(db, SQL["tombstones"]) if everything else []
    edges = sum(1 for row in every(db, SQL["edges"]) if row[0] in heard and row[1] in heard)
    counts = {"tombstones": len(stones), "people": len(people), "memories": len(ids), "associations": edges}

    def records() -> Iterator[Record]:
        yield from (Tombstone(hash_, at) for hash_, at in stones)
        yield from people
        for start in range(0, len(ids), _READ_AT_ONCE):
            wanted = {"ids": json.dumps(ids[start : start + _READ_AT_ONCE])}
            yield from (_entry(row, heard) for row in intact(db, every(db, SQL["entries"], wanted)))
        yield from (Edge(*row[2:]) for row in every(db, SQL["edges"]) if row[0] in heard and row[1] in heard)

    return Told(version(db, "memory"), counts, mark if stones else "", records())


def _named(db: apsw.Connection, person: Person, listeners: Sequence[Listener]) -> bool:
    names = {name for listener in listeners if listener.person for name in joined_with(db, listener.person)}
    return any(identity.name in names for identity in person.identities)


def _entry(row: tuple[Any, ...], heard: frozenset[int]) -> Entry:
    content_hash, confirmed_at, last_decayed_at, after, said_in, said, mentions, widened = row[_COLUMNS:]
    found = memory(row[:_COLUMNS])
    return Entry(
        replace(found, new=replace(found.new, version=0), superseded_by=None),
        content_hash,
        after if after is not None and found.superseded_by in heard else "",
        confirmed_at,
        last_decayed_at,
        tuple(json.loads(said_in)),
        tuple(Said(*one)._replace(corrects=bool(one[4]), counted=bool(one[5])) for one in json.loads(said)),
        tuple(Named(*one) for one in json.loads(mentions)),
        tuple(Widened(*one) for one in json.loads(widened)),
    )
