"""Pairs on SQLite: memories that were found close, what was ruled of them, and what that comes to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw

from keepsaid.adapters.sqlite.memory_graph import Relate, relate
from keepsaid.adapters.sqlite.memory_history import Merge, merge
from keepsaid.adapters.sqlite.memory_index import settle
from keepsaid.adapters.sqlite.query import every, only
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.attributes import value_name
from keepsaid.domain.graph import Association, Relation
from keepsaid.domain.learning import LEARNABLE, Pair, Ruled, RulePairs, Ruling
from keepsaid.domain.message import Trust
from keepsaid.ports.memory_maintenance import Undecided
from keepsaid.ports.store_views import Operations

SQL = load("memory_pairs")
_KINDS = json.dumps(sorted(LEARNABLE))
_LOOKED_AT = 256


class SqlitePairs:
    """Pairs in one SQLite file; `writer` must know MEMORY_TABLE."""

    def __init__(self, writer: Operations, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def undecided(self, after: int, limit: int) -> Undecided:
        """Pairs of related memories that hold, whose newer-kept one is behind `after`, up to a limit."""
        return await self._readers.run(_undecided, after, limit)

    async def asked_since(self, at: int) -> int:
        """On how many pairs a model ruled after a time (milliseconds UTC)."""
        return await self._readers.run(lambda db: int(only(db, SQL["asked_since"], (at,))[0]))

    async def rule(self, rulings: Sequence[Ruled], at: int) -> int:
        """Keep rulings and do what they come to; returns how many were new. Raises a StoreError with nothing done."""
        return await self._writer.apply(RulePairs(tuple(rulings), at)) if rulings else 0


class _Standing(NamedTuple):
    """A memory of a pair, as it stands."""

    slot: bytes | None
    trust: str
    since: int


def _undecided(db: apsw.Connection, after: int, limit: int) -> Undecided:
    wanted = {"after": after, "limit": max(limit, _LOOKED_AT), "kinds": _KINDS}
    rows: list[tuple[Any, ...]] = every(db, SQL["undecided"], wanted)
    found: list[Pair] = []
    for row in rows:
        found.extend(_pairs(row))
        if len(found) == limit:
            return Undecided(tuple(found), row[1] - 1)
    upto = rows[-1][1] - 1 if len(rows) == wanted["limit"] else int(only(db, SQL["newest"])[0])
    return Undecided(tuple(found), max(after, upto))


def _pairs(row: tuple[Any, ...]) -> list[Pair]:
    """The pair of a row, unless its slot decides which of the two holds."""
    kept, came, text, other, since, then, one_slot, value, another = row
    equal = bool(one_slot) and value_name(value) == value_name(another)
    if one_slot and not equal:
        return []
    if (since, kept) <= (then, came):
        return [Pair(kept, came, (text, other), (since, then), equal)]
    return [Pair(came, kept, (other, text), (then, since), equal)]


def rule(db: apsw.Connection, commit: RulePairs) -> int:
    """Apply one commit."""
    new = 0
    for one in commit.rulings:
        told = {"older": one.older, "newer": one.newer, "ruling": str(one.ruling), "by": one.by, "at": commit.at}
        if every(db, SQL["keep_ruling"], told):
            new += 1
            _do(db, one, commit.at)
    settle(db)
    return new


def _do(db: apsw.Connection, one: Ruled, at: int) -> None:
    older, newer = (_Standing(*only(db, SQL["standing"], (id_,))) for id_ in (one.older, one.newer))
    match one.ruling:
        case Ruling.SAME:
            into, other = (one.older, one.newer) if older.slot or not newer.slot else (one.newer, one.older)
            if not _joined(db, into, other, at):
                db.execute(SQL["replace"], {"id": other, "after": into, "at": max(older.since, newer.since)})
        case Ruling.UPDATES if older.trust != Trust.OWNER or newer.trust == Trust.OWNER:
            db.execute(SQL["replace"], {"id": one.older, "after": one.newer, "at": newer.since})
            relate(db, Relate((Association(one.newer, one.older, Relation.UPDATES),), (), at))
        case Ruling.UPDATES | Ruling.CONTRADICTS:
            relate(db, Relate((Association(one.newer, one.older, Relation.CONTRADICTS),), (), at))
        case Ruling.DIFFERENT:
            pass


def _joined(db: apsw.Connection, into: int, other: int, at: int) -> bool:
    """Have one stand for both, with the evidence and sources of both; one without a slot says what fills the other's.

    False, and nothing done, where something else held between them.
    """
    db.execute("SAVEPOINT same")
    db.execute(SQL["fill_slot"], {"id": other, "like": into})
    joined = merge(db, Merge(into, (other,), at))
    if not joined:
        db.execute("ROLLBACK TO same")
    db.execute("RELEASE same")
    return joined
