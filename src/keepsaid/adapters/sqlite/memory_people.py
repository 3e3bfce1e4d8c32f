"""People in the memory store: which identities are one person."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import apsw

from keepsaid.adapters.sqlite.memory_rows import storable
from keepsaid.adapters.sqlite.query import every
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.ids import show
from keepsaid.domain.memory import OWNER
from keepsaid.domain.people import Joined, JoinPeople, Person, Seen, SplitPerson
from keepsaid.ports.runtime import Ids
from keepsaid.ports.store_views import Operations

SQL = load("memory_people")


class SqlitePeople:
    """The people that the memories of one SQLite file are for; `writer` must know how both commits are applied."""

    def __init__(self, writer: Operations, readers: Readers, ids: Ids) -> None:
        self._writer = writer
        self._readers = readers
        self._ids = ids

    async def join(self, names: Sequence[str], by: str, at: int) -> Person | None:
        """Make one person of these, and of all whom they were joined with before."""
        return await self._writer.apply(JoinPeople(show("person", self._ids.next()), tuple(names), by, at))

    async def split(self, name: str) -> bool:
        """Let one be a person alone again; whether it was joined."""
        return await self._writer.apply(SplitPerson(name))

    async def joined_with(self, name: str) -> tuple[str, ...]:
        """All that are the same person, sorted, itself among them."""
        return await self._readers.run(joined_with, name)

    async def everybody(self) -> Sequence[Person]:
        """All persons that were joined, in the order of their ids."""
        return await self._readers.run(listed)

    async def seen(self, limit: int) -> Sequence[Seen]:
        """The identities that something is remembered from, by their names."""
        return await self._readers.run(_seen, limit)


def join(db: apsw.Connection, commit: JoinPeople) -> Person | None:
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


def split(db: apsw.Connection, commit: SplitPerson) -> bool:
    """Apply one commit: who is left alone is no person of several any more."""
    left = every(db, SQL["leave"], (storable(commit.name),))
    for row in left:
        db.execute(SQL["alone"], row)
    return bool(left)


def joined_with(db: apsw.Connection, name: str) -> tuple[str, ...]:
    """All that are the same person, sorted, itself among them."""
    return tuple(str(row[0]) for row in every(db, SQL["same"], (storable(name),))) or (storable(name),)


def listed(db: apsw.Connection) -> tuple[Person, ...]:
    """All persons that were joined, in the order of their ids."""
    return tuple(_persons(every(db, SQL["everybody"])))


def _persons(rows: Sequence[tuple[Any, ...]]) -> list[Person]:
    grouped = groupby(rows, key=lambda row: str(row[0]))
    return [Person(person, tuple(Joined(*row[1:]) for row in joined)) for person, joined in grouped]


def _seen(db: apsw.Connection, limit: int) -> tuple[Seen, ...]:
    rows: list[tuple[Any, ...]] = every(db, SQL["seen"], {"limit": max(1, limit)})
    return tuple(Seen(*row) for row in rows[: max(0, limit)])
