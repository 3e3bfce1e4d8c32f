"""People and sharing: which identities are one person, and who may hear a memory beside its first audience."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from keepsaid.adapters.sql.memory.rows import audience, bound, memories, statements, storable
from keepsaid.adapters.sql.query import Row, SqlReaders, SqlSession, SqlView, every, load, reads, writes
from keepsaid.domain import visibility
from keepsaid.domain.ids import show
from keepsaid.domain.memory import OWNER, Listener
from keepsaid.ports.runtime import Ids, Redactor, masked_texts
from keepsaid.ports.store_views import Operations
from keepsaid.text.normal import normalise

SQL = load("memory_people")


def joined_with(db: SqlSession, name: str) -> tuple[str, ...]:
    return tuple(str(row[0]) for row in every(db, SQL["same"], (storable(name),))) or (storable(name),)


def listed(db: SqlSession) -> tuple[visibility.Person, ...]:
    return tuple(_persons(every(db, SQL["everybody"])))


def _seen(db: SqlSession, limit: int) -> tuple[visibility.SeenIdentity, ...]:
    rows = every(db, SQL["seen"], {"limit": max(1, limit)})
    return tuple(visibility.SeenIdentity(*row) for row in rows[: max(0, limit)])


class SqlPeople(SqlView):
    """The people that the memories are for."""

    def __init__(self, writer: Operations, readers: SqlReaders, ids: Ids) -> None:
        super().__init__(readers)
        self._writer = writer
        self._ids = ids

    joined_with = reads(joined_with)
    everybody = reads(listed)
    seen = reads(_seen)
    split = writes(visibility.SplitPerson)

    async def join(self, names: Sequence[str], by: str, at: int) -> visibility.Person | None:
        return await self._writer.apply(visibility.JoinPeople(show("person", self._ids.next()), tuple(names), by, at))


def join(db: SqlSession, commit: visibility.JoinPeople) -> visibility.Person | None:
    """A person that some of the names belong to already is joined with all its identities."""
    names = json.dumps([storable(name) for name in commit.names], ensure_ascii=False)
    known = [str(row[0]) for row in every(db, SQL["persons"], (names,))]
    whole = {*commit.names, *(str(row[0]) for row in every(db, SQL["together"], (names,)))}
    if OWNER in whole and commit.by != OWNER:
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
    for row in left:
        db.execute(SQL["alone"], row)
    return bool(left)


def _persons(rows: Sequence[Row]) -> list[visibility.Person]:
    grouped = groupby(rows, key=lambda row: str(row[0]))
    return [
        visibility.Person(person, tuple(visibility.Joined(*row[1:]) for row in joined)) for person, joined in grouped
    ]


MEMORY_HEARING = statements("memory_hearing")


def _list_shares(db: SqlSession, listener: Listener, memory_id: int) -> tuple[visibility.MemoryShared, ...]:
    found = every(db, MEMORY_HEARING["widened"], {**bound(listener), "id": memory_id})
    return tuple(visibility.MemoryShared(*row) for row in found)


class SqlSharing(SqlView):
    """Sharing of memories; secrets in the reason that a command gives are masked."""

    def __init__(self, writer: Operations, readers: SqlReaders, redactor: Redactor | None = None) -> None:
        super().__init__(readers)
        self._writer = writer
        self._redactor = redactor

    list_shares = reads(_list_shares)

    async def share(self, commit: visibility.ShareMemory) -> visibility.MemoryShared | visibility.ShareRefusal:
        if self._redactor is not None:
            [plain] = await masked_texts(self._redactor, [commit.reason])
            commit = replace(commit, reason=plain.text)
        return await self._writer.apply(commit)


def share(db: SqlSession, commit: visibility.ShareMemory) -> visibility.MemoryShared | visibility.ShareRefusal:
    """If the memory is shared as widely already, nothing is changed or recorded."""
    found = memories(db, MEMORY_HEARING["whole"], {"id": commit.memory_id})
    if not found:
        return visibility.ShareRefusal.GONE
    new = found[0].new
    speakers = joined_with(db, new.speaker_id) if new.speaker_id else ()
    if storable(commit.by) not in (OWNER, *speakers):
        return visibility.ShareRefusal.NOT_THEIRS
    scope = visibility.wider(new, commit.to)
    if isinstance(scope, visibility.ShareRefusal):
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
