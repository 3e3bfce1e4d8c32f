"""Bulletins as memory holds them: what one is made of, and keeping it while all of that still stands."""

from __future__ import annotations

from keepsaid.adapters.sql.memory.commits import KeepMemories, keep
from keepsaid.adapters.sql.memory.rows import MemoryAccess, bound, memories, statements, storable
from keepsaid.adapters.sql.query import MemorySession, as_json, column, every, only, reads
from keepsaid.domain.bulletin import Bulletin, Material, bulletin_key, edition_in
from keepsaid.domain.commits import Commit
from keepsaid.domain.memory import IMPORTANCE, Listener, Memory, NewMemory
from keepsaid.values import frozen

_LIMIT = 15
"""Number of memories read of a kind, of the newest and of the most important: no section has more."""

_BULLETIN_PARTS = statements("memory_bulletins")
BULLETINS = {
    name: sql.replace("/*telling*/", _BULLETIN_PARTS["telling"]).replace("/*stands*/", _BULLETIN_PARTS["stands"])
    for name, sql in _BULLETIN_PARTS.items()
}


def _standing(db: MemorySession, listener: Listener, now: int) -> tuple[Bulletin, ...]:
    scopes = column(db, BULLETINS["heard_scopes"], bound(listener))
    return _read_bulletins(db, tuple(dict.fromkeys(scopes)), now)


def _of(db: MemorySession, scope: str, now: int) -> Bulletin:
    [found] = _read_bulletins(db, (scope,), now)
    return found


def _read_bulletins(db: MemorySession, scopes: tuple[str, ...], now: int) -> tuple[Bulletin, ...]:
    keys = as_json(storable(bulletin_key(scope)) for scope in scopes)
    found: dict[str, Bulletin] = {}
    for scope, text, version, at, metadata, there in every(db, BULLETINS["standing"], {"keys": keys, "now": now}):
        edition = edition_in(metadata)
        whole = edition is not None and len(edition.memories) == there
        found[scope] = Bulletin(scope, text, version, at, edition, whole)
    return tuple(found.get(storable(scope), Bulletin(scope)) for scope in scopes)


def _material(db: MemorySession, scope: str, now: int) -> Material:
    (revision,) = only(db, BULLETINS["revision"])
    known: dict[int, Memory] = {}
    for audience in column(db, BULLETINS["audience"], (storable(scope),)):
        for kind in IMPORTANCE:
            bindings = {"audience": audience, "kind": kind, "now": now, "limit": _LIMIT}
            for statement in ("newest", "weightiest"):
                known.update({found.id: found for found in memories(db, BULLETINS[statement], bindings)})
    return Material(tuple(known[id_] for id_ in sorted(known)), revision)


@frozen
class KeepBulletin(Commit[bool]):
    """Keep the bulletin of a scope, unless a memory that it tells was withdrawn since that was read."""

    id: int
    bulletin: NewMemory
    at: int


def keep_bulletin(db: MemorySession, commit: KeepBulletin) -> bool:
    """Whether it is kept: by a check in the same commit, so that none quotes what was forgotten before it."""
    new = commit.bulletin
    edition = edition_in(new.metadata)
    if edition is None:
        return False
    [there] = only(db, BULLETINS["told"], {"metadata": new.metadata, "scope": storable(new.scope), "now": commit.at})
    if there != len(edition.memories):
        return False
    [[kept]] = keep(db, [KeepMemories((commit.id,), (new,), commit.at)])
    return kept != 0


class SqlBulletins(MemoryAccess):
    """The bulletins; secrets in the text of a new one are masked."""

    standing = reads(_standing)
    of = reads(_of)
    material = reads(_material)

    async def keep(self, bulletin: NewMemory, at: int) -> bool:
        [clean] = await self._without_secrets([bulletin])
        [id_] = self._new_ids(1)
        return await self._writer.apply(KeepBulletin(id_, clean, at))
