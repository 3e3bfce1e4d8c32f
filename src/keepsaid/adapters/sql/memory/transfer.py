"""Transfer: reads a bundle of memories in one snapshot, and takes records of another home in, one transaction each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from keepsaid.adapters.sql.memory import forgetting, learning, rows
from keepsaid.adapters.sql.memory.commits import content_hash, draft, key_hash, slot_hash
from keepsaid.adapters.sql.memory.rows import MemoryAccess, storable
from keepsaid.adapters.sql.query import MemorySession, Row, as_json, column, every, load, only, post_each
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.domain import bundle, graph, message, visibility
from keepsaid.domain.bundle import BundleEntry, ImportOutcome, ImportVerdict, Record
from keepsaid.domain.memory import Listener, NewMemory
from keepsaid.ports.memory_store import BundleContents
from keepsaid.text.normal import normalise

SQL = rows.statements("memory_bundle")
SCHEMA = load("schema")
Buried = Callable[[Sequence[bytes]], bool]

_NEW, _SAME = ImportVerdict(ImportOutcome.NEW), ImportVerdict(ImportOutcome.SAME)


def judged(db: MemorySession, record: Record, buried: Buried) -> ImportVerdict:
    """The outcome of a record; `buried` says whether one of some hashes has a tombstone. Nothing is changed."""
    match record:
        case BundleEntry():
            return _judge_entry(db, record, buried)
        case visibility.Person():
            return _judge_person(db, record)
        case bundle.Edge():
            return _judge_edge(db, record)
        case bundle.BundleLink():
            return _judge_link(db, record)
        case bundle.Tombstone():
            return _SAME if _rows(db, "entombed", hashes=rows.hexadecimal([record.hash])) else _NEW


def _rows(db: MemorySession, statement: str, **values: Any) -> list[Row]:
    return every(db, SQL[statement], values)


def _judge_entry(db: MemorySession, entry: BundleEntry, buried: Buried) -> ImportVerdict:
    new = entry.memory.new
    if buried([key_hash(new.key), content_hash(new), entry.content_hash, slot_hash(new)]):
        return bundle.FORGOTTEN
    for there in map(rows.memory, _rows(db, "by_key", key=storable(new.key))):
        if there.state == "forgotten":
            return bundle.FORGOTTEN
        differs = bundle.difference(there.new, _stored(new))
        return ImportVerdict(ImportOutcome.CONFLICT, f"it is here with another {differs}") if differs else _SAME
    same = _rows(db, "said_in", key=storable(new.key))
    slot = entry.slot
    in_slot = [] if slot is None else _rows(db, "beside", slot=slot)
    if slot is None and not same:
        same = _rows(db, "like", content_hash=content_hash(new), kind=new.kind)
    beside, like = (tuple(row[0] for row in found) for found in (in_slot, same))
    return ImportVerdict(ImportOutcome.NEW, "", beside, like)


def _stored(new: NewMemory) -> NewMemory:
    """A memory as it would be read again."""
    texts = {**rows.storable_texts(new), "key": new.key}
    return replace(new, **texts, lane=new.lane and message.Lane(*map(storable, new.lane)))


def _judge_person(db: MemorySession, person: visibility.Person) -> ImportVerdict:
    names = {storable(one.name) for one in person.identities}
    found = _rows(db, "identities", names=as_json(sorted(names)), person=storable(person.id))
    if not found:
        return _NEW
    there = set(column(db, SQL["members"], {"person": found[0][1]}))
    if {row[1] for row in found} == {found[0][1]} and there == names:
        return _SAME
    return ImportVerdict(
        ImportOutcome.CONFLICT, "some of them are joined with others here; see: keepsaid memory people ls"
    )


def _ends(db: MemorySession, *keys: str) -> tuple[list[int], tuple[str, ...]]:
    """The memories of these keys, and the keys of which there is none."""
    found = {key: _rows(db, "ends", key=storable(key)) for key in keys}
    return [int(ids[0][0]) for ids in found.values() if ids], tuple(key for key, ids in found.items() if not ids)


def _judge_edge(db: MemorySession, edge: bundle.Edge) -> ImportVerdict:
    if edge.source == edge.target:
        return ImportVerdict(ImportOutcome.REJECTED, "it leads from a memory to itself")
    ids, missing = _ends(db, edge.source, edge.target)
    if missing:
        return ImportVerdict(ImportOutcome.REJECTED, "a memory it leads to is not here", beside=missing)
    return _SAME if _rows(db, "edge", source=ids[0], target=ids[1], relation=edge.relation) else _NEW


def _judge_link(db: MemorySession, link: bundle.BundleLink) -> ImportVerdict:
    ids, missing = _ends(db, link.key, link.replaced_by)
    if missing or len(ids) < 2:
        return ImportVerdict(ImportOutcome.REJECTED, "what took its place is not here", beside=missing)
    [(id_, state, valid_to, after)] = _rows(db, "standing", key=storable(link.key))
    if after == ids[1]:
        return _SAME
    is_loop = bool(_rows(db, "leads_to", target=ids[1], id=id_))
    if after is not None or (state, valid_to) != (link.state, link.valid_to) or is_loop:
        return ImportVerdict(ImportOutcome.CONFLICT, "something else took its place here, or nothing did")
    return _NEW


def take(db: MemorySession, commit: bundle.TakeIn) -> tuple[ImportVerdict, ...]:
    verdicts: list[ImportVerdict] = []
    contested: dict[bytes, tuple[str, Sequence[int]]] = {}
    for n, record in enumerate(commit.records):
        verdict = judged(db, record, partial(learning.is_buried, db))
        verdicts.append(verdict)
        if verdict.outcome is not ImportOutcome.NEW:
            continue
        ids = commit.ids[n * bundle.SPARE_IDS : (n + 1) * bundle.SPARE_IDS]
        slot = record.slot if isinstance(record, BundleEntry) else None
        if isinstance(record, BundleEntry) and slot is not None and slot in commit.contested:
            contested[slot] = record.memory.new.attribute, ids[1:]
            _write(db, _undecided(record), ids[0])
        else:
            _write(db, record, ids[0])
    for slot, (attribute, spare) in contested.items():
        learning.decide(db, slot, attribute, (spare, commit.at))
    db.reindex("none")  # they bring their own mentions
    return tuple(verdicts)


def _undecided(entry: BundleEntry) -> BundleEntry:
    """A memory of which it is not decided yet for how long it held."""
    state = entry.memory.state if entry.memory.state in ("archived", "merged") else "active"
    return replace(entry, memory=replace(entry.memory, state=state, valid_to=entry.memory.new.valid_to))


def _write(db: MemorySession, record: Record, spare: int) -> None:
    match record:
        case BundleEntry():
            _write_entry(db, record, spare)
        case visibility.Person():
            names = [(one.name, record.id, one.at, one.by) for one in record.identities]
            joined = [(storable(name), storable(id_), at, storable(by)) for name, id_, at, by in names]
            post_each(db, SQL["take_identity"], joined)
        case bundle.Edge():
            [source, target], _ = _ends(db, record.source, record.target)
            values = {"relation": record.relation, "weight": record.weight, "at": record.at}
            db.post(SQL["take_edge"], {"source": source, "target": target, **values})
        case bundle.BundleLink():
            [id_, target], _ = _ends(db, record.key, record.replaced_by)
            db.post(SQL["take_link"], {"id": id_, "target": target})
        case bundle.Tombstone():
            db.post(SQL["bury"], (record.hash, record.at))


_KEPT = ("state", "valid_to", "last_access_at", "access_count", "evidence", "pinned")
_NOTED = ("confirmed_at", "last_decayed_at")


def _write_entry(db: MemorySession, entry: BundleEntry, spare: int) -> None:
    """Write a memory as it was, under its own id unless another memory has that."""
    found, new = entry.memory, entry.memory.new
    id_ = spare if _rows(db, "id_taken", id=found.id) else found.id
    place = rows.audience(new)
    db.post(SQL["open_audience"], place)
    kept = {name: getattr(found, name) for name in _KEPT} | {name: getattr(entry, name) for name in _NOTED}
    hashed = {"audience": only(db, SQL["audience"], place)[0], "content_hash": entry.content_hash.hex()}
    db.post(SQL["take"], {**draft(new, id_, found.recorded_at), **kept, **hashed})
    sources = enumerate(zip(new.sources, entry.said_in, strict=True))
    said_in = [(id_, n, storable(of.kind), storable(of.ref), said) for n, (of, said) in sources]
    post_each(db, SQL["take_source"], said_in)
    post_each(db, SQL["take_statement"], [(id_, *said) for said in entry.statements])
    for named in entry.mentions:
        db.post(SQL["take_entity"], (named.entity, named.since))
        name = (named.name, graph.name_words(named.name))
        db.post(SQL["take_mention"], (id_, named.entity, *name, named.weight, named.at))
    for shared in entry.widened:
        names = map(storable, (shared.before, shared.after, shared.by))
        db.post(SQL["take_widened"], (id_, *names, normalise(shared.reason), shared.at))


T = TypeVar("T")
_READ_AT_ONCE = 200
_COLUMNS = 35


class SqlBundles(MemoryAccess):
    """Bundles of the memories."""

    async def export(self, listeners: Sequence[Listener], write: Callable[[BundleContents], T]) -> T:
        mark = await self.key_print()
        return await self._readers.run(lambda db: write(_read_contents(db, listeners, mark, self._keyring)))

    async def look(self, records: Sequence[Record]) -> Sequence[ImportVerdict]:
        return await self._readers.run(lambda db: [judged(db, one, partial(self._is_buried, db)) for one in records])

    def _is_buried(self, db: MemorySession, hashes: Sequence[bytes]) -> bool:
        return bool(_rows(db, "entombed", hashes=rows.hexadecimal(self._keyring.compute_tombstones(hashes))))

    async def take(self, records: Sequence[Record], contested: Sequence[bytes], at: int) -> Sequence[ImportVerdict]:
        found = [record.memory.new for record in records if isinstance(record, BundleEntry)]
        clean = iter(await self._without_secrets(found))
        masked = tuple(_clean(one, next(clean)) if isinstance(one, BundleEntry) else one for one in records)
        ids = self._new_ids(len(masked) * bundle.SPARE_IDS)
        return await self._writer.apply(bundle.TakeIn(masked, ids, tuple(contested), at))

    async def key_print(self) -> str:
        return bundle.key_print(await self._readers.run(lambda _: self._keyring.key()))

    async def adopt_key(self, key: bytes) -> bool:
        return await self._readers.run(lambda _: self._keyring.adopt(key))


def _clean(entry: BundleEntry, new: NewMemory) -> BundleEntry:
    """The memory without secrets; if its text changed, its tombstone is made of the new text."""
    hash_ = entry.content_hash if new.text == entry.memory.new.text else content_hash(new)
    return replace(entry, memory=replace(entry.memory, new=new), content_hash=hash_)


def _read_contents(
    db: MemorySession, listeners: Sequence[Listener], mark: str, keyring: TombstoneKeyring
) -> BundleContents:
    """What the listeners can read. Tombstones of what was asked for again are left out: they would refuse it there."""
    ids = sorted({id_ for listener in listeners for id_ in column(db, SQL["told"], rows.bound(listener))})
    visible = frozenset(ids)
    everything = any(listener.everything for listener in listeners)
    names = {name for listener in listeners if listener.person for name in rows.joined_with(db, listener.person)}
    persons = rows.listed(db)
    if not everything:
        persons = tuple(one for one in persons if any(identity.name in names for identity in one.identities))
    tombstones = every(db, SQL["tombstones"]) if everything else []
    asked = forgetting.lifted_tombstones(db, keyring) if tombstones else frozenset()
    tombstones = [row for row in tombstones if row[0] not in asked]
    edges = sum(1 for row in every(db, SQL["edges"]) if visible.issuperset(row[:2]))
    counts = {"tombstones": len(tombstones), "people": len(persons), "memories": len(ids), "associations": edges}

    def records() -> Iterator[Record]:
        yield from (bundle.Tombstone(hash_, at) for hash_, at in tombstones)
        yield from persons
        for start in range(0, len(ids), _READ_AT_ONCE):
            part = every(db, SQL["entries"], {"ids": as_json(ids[start : start + _READ_AT_ONCE])})
            yield from (_entry(row, visible) for row in rows.intact(db, part))
        yield from (bundle.Edge(*row[2:]) for row in every(db, SQL["edges"]) if visible.issuperset(row[:2]))

    version = only(db, SCHEMA["version"], ("memory",))[0]
    return BundleContents(version, counts, mark if tombstones else "", records())


def _entry(row: Row, visible: frozenset[int]) -> BundleEntry:
    content_hash, confirmed_at, last_decayed_at, after, *listed = row[_COLUMNS:]
    said_in, said, mentions, widened = map(json.loads, listed)
    found = rows.memory(row[:_COLUMNS])
    memory = replace(found, new=replace(found.new, version=0), superseded_by=None)
    replaced_by = after if after is not None and found.superseded_by in visible else ""
    statements = (bundle.BundleStatement(*one)._replace(corrects=bool(one[4]), counted=bool(one[5])) for one in said)
    named, shared = (bundle.Named(*one) for one in mentions), (visibility.MemoryShared(*one) for one in widened)
    marks = (confirmed_at, last_decayed_at, tuple(said_in))
    return BundleEntry(memory, content_hash, replaced_by, *marks, tuple(statements), tuple(named), tuple(shared))
