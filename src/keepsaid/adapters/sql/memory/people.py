"""People and sharing: which identities are one person, and who may hear a memory beside its first audience."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

from keepsaid.adapters.sql.memory.rows import MemoryAccess, audience, bound, memories, statements, storable
from keepsaid.adapters.sql.query import Row, SqlSession, as_json, column, every, load, reads, writes
from keepsaid.domain import ids, visibility
from keepsaid.domain.memory import OWNER, Listener
from keepsaid.text.normal import normalise

SQL = load("memory_people")


def joined_with(db: SqlSession, name: str) -> tuple[str, ...]:
    return tuple(column(db, SQL["same"], (storable(name),))) or (storable(name),)


def listed(db: SqlSession) -> tuple[visibility.Person, ...]:
    return _persons(every(db, SQL["everybody"]))


def _seen(db: SqlSession, limit: int) -> tuple[visibility.SeenIdentity, ...]:
    rows = every(db, SQL["seen"], {"limit": max(1, limit)})
    return tuple(visibility.SeenIdentity(*row) for row in rows[: max(0, limit)])


class SqlPeople(MemoryAccess):
    """The people that the memories are for."""

    joined_with = reads(joined_with)
    everybody = reads(listed)
    seen = reads(_seen)
    split = writes(visibility.SplitPerson)

    async def join(self, names: Sequence[str], by: str, at: int) -> visibility.Person | None:
        person = ids.show("person", self._ids.next())
        return await self._writer.apply(visibility.JoinPeople(person, tuple(names), by, at))


def join(db: SqlSession, commit: visibility.JoinPeople) -> visibility.Person | None:
    """A person that some of the names belong to already is joined with all its identities."""
    names = as_json(map(storable, commit.names))
    known = column(db, SQL["persons"], (names,))
    if OWNER in {*commit.names, *column(db, SQL["together"], (names,))} and commit.by != OWNER:
        return None
    person = (*known, commit.id)[0]
    values = {"names": names, "person": person, "by": storable(commit.by), "at": commit.at}
    db.execute(SQL["absorb"], values)
    db.execute(SQL["join"], values)
    [joined] = _persons(every(db, SQL["person"], (person,)))
    return joined


def split(db: SqlSession, commit: visibility.SplitPerson) -> bool:
    """Of two, the other is alone then too."""
    left = every(db, SQL["leave"], (storable(commit.name),))
    db.executemany(SQL["alone"], left)
    return bool(left)


def _persons(rows: Sequence[Row]) -> tuple[visibility.Person, ...]:
    grouped = groupby(rows, key=itemgetter(0))
    return tuple(visibility.Person(id_, tuple(visibility.Joined(*row[1:]) for row in of)) for id_, of in grouped)


MEMORY_HEARING = statements("memory_hearing")


def _list_shares(db: SqlSession, listener: Listener, memory_id: int) -> tuple[visibility.MemoryShared, ...]:
    found = every(db, MEMORY_HEARING["widened"], {**bound(listener), "id": memory_id})
    return tuple(visibility.MemoryShared(*row) for row in found)


class SqlSharing(MemoryAccess):
    """Sharing of memories; secrets in the reason that a command gives are masked."""

    list_shares = reads(_list_shares)

    async def share(self, commit: visibility.ShareMemory) -> visibility.MemoryShared | visibility.ShareRefusal:
        [reason] = await self._masked([commit.reason])
        return await self._writer.apply(replace(commit, reason=reason))


def share(db: SqlSession, commit: visibility.ShareMemory) -> visibility.MemoryShared | visibility.ShareRefusal:
    """If the memory is shared as widely already, nothing is changed or recorded."""
    if not (found := memories(db, MEMORY_HEARING["whole"], {"id": commit.memory_id})):
        return visibility.ShareRefusal.GONE
    new = found[0].new
    speakers = joined_with(db, new.speaker_id) if new.speaker_id else ()
    if storable(commit.by) not in (OWNER, *speakers):
        return visibility.ShareRefusal.NOT_THEIRS
    if isinstance(scope := visibility.wider(new, commit.to), visibility.ShareRefusal):
        return scope
    shared = visibility.MemoryShared(new.scope, scope, commit.by, normalise(commit.reason), commit.at)
    if scope == new.scope:
        return shared
    place = audience(replace(new, scope=scope))
    db.execute(MEMORY_HEARING["open_audience"], place)
    db.execute(MEMORY_HEARING["widen"], (*place, commit.memory_id))
    values = {"before": new.scope, "after": scope, "by": storable(commit.by), "reason": shared.reason, "at": commit.at}
    db.execute(MEMORY_HEARING["note"], {**values, "id": commit.memory_id})
    db.reindex()
    return shared
