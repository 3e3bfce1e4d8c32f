"""Bulletins as they are stored, and what they are made of."""

from __future__ import annotations

import json

from keepsaid.adapters.sql.memory.rows import Row, bound, memories, statements, storable
from keepsaid.adapters.sql.query import every, only, reads
from keepsaid.adapters.sql.session import SqlReaders, SqlSession
from keepsaid.domain.bulletin import Bulletin, Material, bulletin_key, edition_in
from keepsaid.domain.memory import IMPORTANCE, Listener, Memory

_LIMIT = 15
"""Of a kind so many of the newest and of the most important are read: no section has more."""

_PARTS = statements("memory_bulletins")
SQL = {name: sql.replace("/*telling*/", _PARTS["telling"]) for name, sql in _PARTS.items()}


def _standing(db: SqlSession, listener: Listener, now: int) -> tuple[Bulletin, ...]:
    """The bulletins of all scopes that a listener hears, the widest first."""
    heard = every(db, SQL["heard_scopes"], bound(listener))
    return _of(db, tuple(dict.fromkeys(str(scope) for (scope,) in heard)), now)


def _material(db: SqlSession, scope: str, now: int) -> Material:
    """What is known in exactly this scope and holds now: no episodes, nothing external, no results of tasks."""
    (revision,) = only(db, SQL["revision"])
    known: dict[int, Memory] = {}
    for (audience,) in every(db, SQL["audience"], (storable(scope),)):
        for kind in IMPORTANCE:
            wanted = {"audience": audience, "kind": kind, "now": now, "limit": _LIMIT}
            for statement in ("newest", "weightiest"):
                found = memories(db, SQL[statement], wanted)
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
    rows: list[Row] = every(db, SQL["standing"], {"keys": keys, "now": now})
    found: dict[str, Bulletin] = {}
    for scope, text, version, at, metadata, there in rows:
        edition = edition_in(metadata)
        whole = edition is not None and len(edition.memories) == there
        found[scope] = Bulletin(scope, text, version, at, edition, whole)
    return tuple(found.get(storable(scope), Bulletin(scope)) for scope in scopes)
