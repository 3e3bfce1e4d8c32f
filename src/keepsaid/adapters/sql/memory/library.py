"""The library: what is read of memories besides recall: narrower filters, archive, audit, and bulletins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from keepsaid.adapters.sql.memory.rows import Row, bound, memories, statements, storable
from keepsaid.adapters.sql.memory.upkeep import LOOSE_SQL, loose_in
from keepsaid.adapters.sql.query import SqlView, every, load, only, reads
from keepsaid.adapters.sql.session import SqlSession
from keepsaid.domain.bulletin import Bulletin, Material, bulletin_key, edition_in
from keepsaid.domain.learning import LEARNABLE
from keepsaid.domain.maintenance import AuditEntry, UpkeepTask
from keepsaid.domain.memory import IMPORTANCE, Found, Kind, Listener, Memory, Narrowing, Source
from keepsaid.text.words import root, spelled, topic

SQL = statements("memory_archive")


def _search(db: SqlSession, listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
    """Memories that share most words with a query, the newest first among equals."""
    stems = sorted({stem.removesuffix("i") or stem for stem in topic(query) or map(root, spelled(query))})
    bindings = {**bound(listener), "stems": json.dumps(stems, ensure_ascii=False), "limit": max(0, limit)}
    return tuple(Found(id_, shared / len(stems)) for id_, shared in every(db, SQL["archived"], bindings))


def _fetch(db: SqlSession, listener: Listener, ids: Sequence[int], as_of: int | None = None) -> Sequence[Memory]:
    return tuple(memories(db, SQL["fetch"], {**bound(listener), "ids": json.dumps(list(ids)), "as_of": as_of}))


class SqlArchive(SqlView):
    """The archived memories, read only."""

    text = reads(_search)
    fetch = reads(_fetch)


LIBRARY = statements("memory_library")


def _narrowed(db: SqlSession, listener: Listener, ids: Sequence[int], to: Narrowing) -> Sequence[int]:
    limits = {"kind": to.kind, "since": to.since, "until": to.until, "as_of": to.as_of, "ids": json.dumps(list(ids))}
    return [row[0] for row in every(db, LIBRARY["narrowed"], {**bound(listener), **limits})]


def _sources(db: SqlSession, listener: Listener, memory: Memory, limit: int) -> Sequence[Memory]:
    new = memory.new
    keys = [new.key] if new.kind is Kind.EPISODE else [f"{one.kind}:{one.ref}" for one in new.sources]
    bindings = {"keys": json.dumps([storable(key) for key in keys]), "limit": max(0, limit)}
    return memories(db, LIBRARY["sources"], {**bound(listener), **bindings})


def _around(db: SqlSession, listener: Listener, memory: Memory, each: int) -> Sequence[Memory]:
    if memory.new.lane is None or memory.new.kind is not Kind.EPISODE:
        return []
    names = ("of_channel", "of_account", "of_conversation", "of_key")
    place = dict(zip(names, map(storable, memory.new.lane), strict=True))
    bindings = {**place, "said_at": memory.new.said_at, "id": memory.id, "each": max(0, each)}
    return memories(db, LIBRARY["around"], {**bound(listener), **bindings})


class SqlLibrary(SqlView):
    """Memories with their sources and neighbours, read only."""

    narrowed = reads(_narrowed)
    sources = reads(_sources)
    around = reads(_around)


_AUDIT_PARTS = load("memory_audit")
AUDIT = {name: sql.replace("/*entry*/", _AUDIT_PARTS["entry"]) for name, sql in _AUDIT_PARTS.items()}
_KINDS = json.dumps(sorted(LEARNABLE))


def _learned(db: SqlSession, after: int, limit: int) -> Sequence[AuditEntry]:
    return _read_entries(db, "learned", {"after": after, "limit": limit})


def _entries(db: SqlSession, ids: Sequence[int]) -> Sequence[AuditEntry]:
    return _read_entries(db, "entries", {"ids": json.dumps(sorted(set(ids)))})


def _read_entries(db: SqlSession, statement: str, bindings: dict[str, Any]) -> Sequence[AuditEntry]:
    return tuple(_entry(row) for row in every(db, AUDIT[statement], {**bindings, "kinds": _KINDS}))


def _entry(row: Row) -> AuditEntry:
    id_, text, scope, external, *rest, kept, learned, sources = row
    flags = (bool(kept), bool(learned), tuple(Source(*source) for source in json.loads(sources)))
    columns = (id_, text, scope, bool(external), *rest, *flags)
    return AuditEntry(*columns)


def _texts(db: SqlSession, after: int, limit: int) -> Sequence[tuple[int, str]]:
    rows = every(db, AUDIT["texts"], {"after": after, "limit": limit})
    return tuple((int(row[0]), str(row[1])) for row in rows)


def _loose(db: SqlSession, task: UpkeepTask, after: int, limit: int) -> tuple[int, tuple[int, ...]] | None:
    upto, _ = only(db, LOOSE_SQL[task], (after, limit))
    return None if upto is None else (upto, tuple(int(row[0]) for row in loose_in(db, task, after, upto)))


def _withdrawn(db: SqlSession, at: int, limit: int) -> Sequence[int]:
    return tuple(int(row[0]) for row in every(db, LOOSE_SQL["withdrawn"], (at, limit)))


def alike(db: SqlSession, ids: Sequence[int], above: float) -> tuple[tuple[int, int], ...]:
    return db.alike(ids, above)


class SqlAuditing(SqlView):
    """All memories, for the owner's eyes; read only."""

    learned = reads(_learned)
    entries = reads(_entries)
    texts = reads(_texts)
    loose = reads(_loose)
    withdrawn = reads(_withdrawn)
    alike = reads(alike)


_LIMIT = 15
"""Number of memories read of a kind, of the newest and of the most important: no section has more."""

_BULLETIN_PARTS = statements("memory_bulletins")
BULLETINS = {name: sql.replace("/*telling*/", _BULLETIN_PARTS["telling"]) for name, sql in _BULLETIN_PARTS.items()}


def _standing(db: SqlSession, listener: Listener, now: int) -> tuple[Bulletin, ...]:
    scopes = every(db, BULLETINS["heard_scopes"], bound(listener))
    return _read_bulletins(db, tuple(dict.fromkeys(str(scope) for (scope,) in scopes)), now)


def _of(db: SqlSession, scope: str, now: int) -> Bulletin:
    [found] = _read_bulletins(db, (scope,), now)
    return found


def _read_bulletins(db: SqlSession, scopes: tuple[str, ...], now: int) -> tuple[Bulletin, ...]:
    keys = json.dumps([storable(bulletin_key(scope)) for scope in scopes], ensure_ascii=False)
    found: dict[str, Bulletin] = {}
    for scope, text, version, at, metadata, there in every(db, BULLETINS["standing"], {"keys": keys, "now": now}):
        edition = edition_in(metadata)
        whole = edition is not None and len(edition.memories) == there
        found[scope] = Bulletin(scope, text, version, at, edition, whole)
    return tuple(found.get(storable(scope), Bulletin(scope)) for scope in scopes)


def _material(db: SqlSession, scope: str, now: int) -> Material:
    (revision,) = only(db, BULLETINS["revision"])
    known: dict[int, Memory] = {}
    for (audience,) in every(db, BULLETINS["audience"], (storable(scope),)):
        for kind in IMPORTANCE:
            bindings = {"audience": audience, "kind": kind, "now": now, "limit": _LIMIT}
            for statement in ("newest", "weightiest"):
                known.update({found.id: found for found in memories(db, BULLETINS[statement], bindings)})
    return Material(tuple(known[id_] for id_ in sorted(known)), revision)


class SqlBulletins(SqlView):
    """The bulletins, read only."""

    standing = reads(_standing)
    of = reads(_of)
    material = reads(_material)
