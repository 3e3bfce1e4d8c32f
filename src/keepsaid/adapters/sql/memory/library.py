"""The library: what is read of memories besides recall: narrower filters, archive, audit, and bulletins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from keepsaid.adapters.sql.memory.rows import Row, bound, memories, statements, storable
from keepsaid.adapters.sql.memory.upkeep import LOOSE_SQL, loose_in
from keepsaid.adapters.sql.query import every, load, only, reads
from keepsaid.adapters.sql.session import SqlReaders, SqlSession
from keepsaid.domain.bulletin import Bulletin, Material, bulletin_key, edition_in
from keepsaid.domain.learning import LEARNABLE
from keepsaid.domain.maintenance import AuditEntry, UpkeepTask
from keepsaid.domain.memory import IMPORTANCE, Found, Kind, Listener, Memory, Narrowing, Source
from keepsaid.text.words import root, spelled, topic

SQL = statements("memory_archive")


def _search(db: SqlSession, listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
    """Those the listener may hear that share most words with a query, the newest first among equals."""
    stems = sorted({stem.removesuffix("i") or stem for stem in topic(query) or map(root, spelled(query))})
    wanted = {**bound(listener), "stems": json.dumps(stems, ensure_ascii=False), "limit": max(0, limit)}
    rows: list[tuple[Any, ...]] = every(db, SQL["archived"], wanted)
    return tuple(Found(id_, shared / len(stems)) for id_, shared in rows)


class SqlArchive:
    """The archived memories, read only."""

    def __init__(self, readers: SqlReaders) -> None:
        self._readers = readers

    text = reads(_search)

    async def fetch(self, listener: Listener, ids: Sequence[int], as_of: int | None = None) -> Sequence[Memory]:
        """Those of the memories that are archived and that the listener may hear, in the order given.

        With `as_of`, only what held true at that time (milliseconds UTC).
        """
        return await self._readers.run(_fetch, listener, tuple(ids), as_of)


def _fetch(db: SqlSession, listener: Listener, ids: tuple[int, ...], as_of: int | None) -> tuple[Memory, ...]:
    wanted = {**bound(listener), "ids": json.dumps(ids), "as_of": as_of}
    return tuple(memories(db, SQL["fetch"], wanted))


LIBRARY = statements("memory_library")


def _sources(db: SqlSession, listener: Listener, memory: Memory, limit: int) -> Sequence[Memory]:
    """The episodes a memory was made from, as far as they are heard; an episode is its own source."""
    new = memory.new
    keys = [new.key] if new.kind is Kind.EPISODE else [f"{one.kind}:{one.ref}" for one in new.sources]
    wanted = {"keys": json.dumps([storable(key) for key in keys]), "limit": max(0, limit)}
    return memories(db, LIBRARY["sources"], {**bound(listener), **wanted})


def _around(db: SqlSession, listener: Listener, memory: Memory, each: int) -> Sequence[Memory]:
    """An episode between its neighbours in its lane, as far as they are heard."""
    if memory.new.lane is None or memory.new.kind is not Kind.EPISODE:
        return []
    names = ("of_channel", "of_account", "of_conversation", "of_key")
    place = dict(zip(names, map(storable, memory.new.lane), strict=True))
    wanted = {**place, "said_at": memory.new.said_at, "id": memory.id, "each": max(0, each)}
    return memories(db, LIBRARY["around"], {**bound(listener), **wanted})


class SqlLibrary:
    """Memories, read closely."""

    def __init__(self, readers: SqlReaders) -> None:
        self._readers = readers

    async def narrowed(self, listener: Listener, ids: Sequence[int], to: Narrowing) -> Sequence[int]:
        """Those of the memories that the listener may hear and that fit, in the order given; of any person."""
        return await self._readers.run(_narrowed, listener, tuple(ids), to)

    sources = reads(_sources)
    around = reads(_around)


def _narrowed(db: SqlSession, listener: Listener, ids: tuple[int, ...], to: Narrowing) -> Sequence[int]:
    limits = {"kind": to.kind, "since": to.since, "until": to.until, "as_of": to.as_of}
    return [row[0] for row in every(db, LIBRARY["narrowed"], {**bound(listener), **limits, "ids": json.dumps(ids)})]


_AUDIT_PARTS = load("memory_audit")
AUDIT = {name: sql.replace("/*entry*/", _AUDIT_PARTS["entry"]) for name, sql in _AUDIT_PARTS.items()}
_KINDS = json.dumps(sorted(LEARNABLE))


def _texts(db: SqlSession, after: int, limit: int) -> Sequence[tuple[int, str]]:
    """All that memories that are there say, behind an id, in the order of their ids."""
    rows: list[Row] = every(db, AUDIT["texts"], {"after": after, "limit": limit})
    return tuple((int(row[0]), str(row[1])) for row in rows)


def _loose(db: SqlSession, task: UpkeepTask, after: int, limit: int) -> tuple[int, tuple[int, ...]] | None:
    """How far a page of one table behind an id goes, and the ids in it that lead to nothing; None for no more."""
    upto, _ = only(db, LOOSE_SQL[task], (after, limit))
    return None if upto is None else (upto, tuple(int(row[0]) for row in loose_in(db, task, after, upto)))


class SqlAuditing:
    """The memories of one file, for the owner's eyes; read only."""

    def __init__(self, readers: SqlReaders) -> None:
        self._readers = readers

    async def learned(self, after: int, limit: int) -> Sequence[AuditEntry]:
        """What is learned and active, behind an id, in the order of their ids."""
        return await self._readers.run(_entries, "learned", {"after": after, "limit": limit})

    texts = reads(_texts)

    async def entries(self, ids: Sequence[int]) -> Sequence[AuditEntry]:
        """Those of these memories that are active, of whatever kind."""
        return await self._readers.run(_entries, "entries", {"ids": json.dumps(sorted(set(ids)))})

    loose = reads(_loose)

    async def withdrawn(self, at: int, limit: int) -> Sequence[int]:
        """Bulletins that tell what holds no more."""
        return await self._readers.run(
            lambda db: tuple(int(row[0]) for row in every(db, LOOSE_SQL["withdrawn"], (at, limit)))
        )

    async def alike(self, ids: Sequence[int], above: float) -> Sequence[tuple[int, int]]:
        """Pairs of these memories, the smaller id first, whose cosine is above `above`."""
        return await self._readers.run(_alike, tuple(ids), above)


def _entries(db: SqlSession, statement: str, wanted: dict[str, Any]) -> Sequence[AuditEntry]:
    rows: list[Row] = every(db, AUDIT[statement], {**wanted, "kinds": _KINDS})
    return tuple(_entry(row) for row in rows)


def _entry(row: Row) -> AuditEntry:
    id_, text, scope, external, slot, subject, attribute, value, start, until, after, recorded_at = row[:12]
    uses, kept, learned, sources = row[12:]
    came = tuple(Source(*one) for one in json.loads(sources))
    about = (slot, subject, attribute, value)
    times = (start, until, after, recorded_at)
    return AuditEntry(id_, text, scope, bool(external), *about, *times, uses, bool(kept), bool(learned), came)


def _alike(db: SqlSession, ids: tuple[int, ...], above: float) -> tuple[tuple[int, int], ...]:
    return db.alike(ids, above)


_LIMIT = 15
"""Of a kind so many of the newest and of the most important are read: no section has more."""

_BULLETIN_PARTS = statements("memory_bulletins")
BULLETINS = {name: sql.replace("/*telling*/", _BULLETIN_PARTS["telling"]) for name, sql in _BULLETIN_PARTS.items()}


def _standing(db: SqlSession, listener: Listener, now: int) -> tuple[Bulletin, ...]:
    """The bulletins of all scopes that a listener hears, the widest first."""
    heard = every(db, BULLETINS["heard_scopes"], bound(listener))
    return _of(db, tuple(dict.fromkeys(str(scope) for (scope,) in heard)), now)


def _material(db: SqlSession, scope: str, now: int) -> Material:
    """What is known in exactly this scope and holds now: no episodes, nothing external, no results of tasks."""
    (revision,) = only(db, BULLETINS["revision"])
    known: dict[int, Memory] = {}
    for (audience,) in every(db, BULLETINS["audience"], (storable(scope),)):
        for kind in IMPORTANCE:
            wanted = {"audience": audience, "kind": kind, "now": now, "limit": _LIMIT}
            for statement in ("newest", "weightiest"):
                found = memories(db, BULLETINS[statement], wanted)
                known.update({one.id: one for one in found})
    return Material(tuple(known[id_] for id_ in sorted(known)), revision)


class SqlBulletins:
    """The bulletins, read only."""

    def __init__(self, readers: SqlReaders) -> None:
        self._readers = readers

    standing = reads(_standing)

    async def of(self, scope: str, now: int) -> Bulletin:
        """The bulletin of one scope."""
        [found] = await self._readers.run(_of, (scope,), now)
        return found

    material = reads(_material)


def _of(db: SqlSession, scopes: tuple[str, ...], now: int) -> tuple[Bulletin, ...]:
    keys = json.dumps([storable(bulletin_key(scope)) for scope in scopes], ensure_ascii=False)
    rows: list[Row] = every(db, BULLETINS["standing"], {"keys": keys, "now": now})
    found: dict[str, Bulletin] = {}
    for scope, text, version, at, metadata, there in rows:
        edition = edition_in(metadata)
        whole = edition is not None and len(edition.memories) == there
        found[scope] = Bulletin(scope, text, version, at, edition, whole)
    return tuple(found.get(storable(scope), Bulletin(scope)) for scope in scopes)
