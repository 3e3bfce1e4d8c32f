"""People and sharing: which identities are one person, and who may hear a memory beside its first audience."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from keepsaid.adapters.sql.memory.rows import audience, bound, memories, statements, storable
from keepsaid.adapters.sql.query import every, load, reads
from keepsaid.adapters.sql.session import SqlReaders, SqlSession
from keepsaid.domain.ids import show
from keepsaid.domain.memory import OWNER, Listener
from keepsaid.domain.visibility import (
    Joined,
    JoinPeople,
    MemoryShared,
    Person,
    SeenIdentity,
    ShareMemory,
    ShareRefusal,
    SplitPerson,
    wider,
)
from keepsaid.ports.redactor import Redactor, masked_texts
from keepsaid.ports.runtime import Ids
from keepsaid.ports.store_views import Operations
from keepsaid.text.normal import normalise

SQL = load("memory_people")


def joined_with(db: SqlSession, name: str) -> tuple[str, ...]:
    """All that are the same person, sorted, itself among them."""
    return tuple(str(row[0]) for row in every(db, SQL["same"], (storable(name),))) or (storable(name),)


def listed(db: SqlSession) -> tuple[Person, ...]:
    """All persons that were joined, in the order of their ids."""
    return tuple(_persons(every(db, SQL["everybody"])))


def _seen(db: SqlSession, limit: int) -> tuple[SeenIdentity, ...]:
    """The identities that something is remembered from, by their names."""
    rows: list[tuple[Any, ...]] = every(db, SQL["seen"], {"limit": max(1, limit)})
    return tuple(SeenIdentity(*row) for row in rows[: max(0, limit)])


class SqlPeople:
    """The people that the memories of one SQLite file are for; `writer` must know how both commits are applied."""

    def __init__(self, writer: Operations, readers: SqlReaders, ids: Ids) -> None:
        self._writer = writer
        self._readers = readers
        self._ids = ids

    async def join(self, names: Sequence[str], by: str, at: int) -> Person | None:
        """Make one person of these, and of all whom they were joined with before."""
        return await self._writer.apply(JoinPeople(show("person", self._ids.next()), tuple(names), by, at))

    async def split(self, name: str) -> bool:
        """Let one be a person alone again; whether it was joined."""
        return await self._writer.apply(SplitPerson(name))

    joined_with = reads(joined_with)
    everybody = reads(listed)
    seen = reads(_seen)


def join(db: SqlSession, commit: JoinPeople) -> Person | None:
    """Apply one commit: who is in a person already brings all of it along."""
    names = json.dumps([storable(name) for name in commit.names], ensure_ascii=False)
    had = [str(row[0]) for row in every(db, SQL["persons"], (names,))]
    whole = {*commit.names, *(str(row[0]) for row in every(db, SQL["together"], (names,)))}
    if OWNER in whole and commit.by != OWNER:
        return None
    person = (*had, commit.id)[0]
    told = {"names": names, "person": person, "by": storable(commit.by), "at": commit.at}
    db.execute(SQL["absorb"], told)
    db.execute(SQL["join"], told)
    [joined] = _persons(every(db, SQL["person"], (person,)))
    return joined


def split(db: SqlSession, commit: SplitPerson) -> bool:
    """Apply one commit: who is left alone is no person of several any more."""
    left = every(db, SQL["leave"], (storable(commit.name),))
    for row in left:
        db.execute(SQL["alone"], row)
    return bool(left)


def _persons(rows: Sequence[tuple[Any, ...]]) -> list[Person]:
    grouped = groupby(rows, key=lambda row: str(row[0]))
    return [Person(person, tuple(Joined(*row[1:]) for row in joined)) for person, joined in grouped]


MEMORY_HEARING = statements("memory_hearing")


def _list_shares(db: SqlSession, listener: Listener, memory_id: int) -> tuple[MemoryShared, ...]:
    """How a memory that the listener may read was shared, oldest first."""
    return tuple(
        MemoryShared(*row) for row in every(db, MEMORY_HEARING["widened"], {**bound(listener), "id": memory_id})
    )


class SqlSharing:
    """Sharing of the memories of one store; `writer` must apply `ShareMemory`."""

    def __init__(self, writer: Operations, readers: SqlReaders, redactor: Redactor | None = None) -> None:
        self._writer = writer
        self._readers = readers
        self._redactor = redactor

    async def share(self, commit: ShareMemory) -> MemoryShared | ShareRefusal:
        """Share a memory with more listeners, or return the reason for a refusal, with nothing changed.

        Secrets in the reason that the command gives are masked.
        """
        if self._redactor is not None:
            [plain] = await masked_texts(self._redactor, [commit.reason])
            commit = replace(commit, reason=plain.text)
        return await self._writer.apply(commit)

    list_shares = reads(_list_shares)


def share(db: SqlSession, commit: ShareMemory) -> MemoryShared | ShareRefusal:
    """Apply one commit. If the memory is shared as widely already, nothing is changed or recorded."""
    found = memories(db, MEMORY_HEARING["whole"], {"id": commit.memory_id})
    if not found:
        return ShareRefusal.GONE
    new = found[0].new
    speakers = joined_with(db, new.speaker_id) if new.speaker_id else ()
    if storable(commit.by) not in (OWNER, *speakers):
        return ShareRefusal.NOT_THEIRS
    scope = wider(new, commit.to)
    if isinstance(scope, ShareRefusal):
        return scope
    told = MemoryShared(new.scope, scope, commit.by, normalise(commit.reason), commit.at)
    if scope == new.scope:
        return told
    place = audience(replace(new, scope=scope))
    db.execute(MEMORY_HEARING["open_audience"], place)
    db.execute(MEMORY_HEARING["widen"], (*place, commit.memory_id))
    noted = {"before": told.before, "after": told.after, "by": storable(told.by), "reason": told.reason, "at": told.at}
    db.execute(MEMORY_HEARING["note"], {**noted, "id": commit.memory_id})
    db.reindex()
    return told
