"""Truth in time on SQLite: what was told of a slot, and each memory of it held for as long as it was true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import apsw

from keepsaid.adapters.sqlite.memory_graph import Relate, relate
from keepsaid.adapters.sqlite.query import every
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.attributes import value_name
from keepsaid.domain.graph import Association, Relation
from keepsaid.domain.truth import Period, Told

SQL = load("memory_truth")


def statements_of(db: apsw.Connection, slot: bytes) -> list[Told]:
    """All that was told of a slot and is not forgotten."""
    rows: list[tuple[Any, ...]] = every(db, SQL["told"], {"slot": slot})
    return [_told(*row) for row in rows]


def _told(key: str, value: str, scope: str, *rest: Any) -> Told:
    start, said_at, ends, corrects, memory_id, founds = rest
    return Told(key, value_name(value), scope, start, said_at, ends, bool(corrects), memory_id, bool(founds))


def hold(db: apsw.Connection, periods: Sequence[Period], spare: Sequence[int], at: int) -> None:
    """Write how long each memory holds, and what took its place; nothing is written that is so already.

    A memory that what was learned divides gets a second one, with an id of `spare`, for the statements behind it.
    """
    unused = list(spare)
    for period in periods:
        if not period.founder.founds and unused:
            _copy(db, period, unused.pop(), at)
    memories = {one.key: period.founder.memory_id for period in periods for one in period.told}
    for period in periods:
        if period.founder.founds:
            _gather(db, period)
            after = None if period.after is None else memories[period.after.key]
            _hold(db, period, after, at)


def _copy(db: apsw.Connection, period: Period, id_: int, at: int) -> None:
    """Give a period a memory of its own, named by its first statement: a copy of the one that this is in."""
    first = period.told[0]
    new = {"id": id_, "key": first.key, "of": first.memory_id, "at": at, "said_at": first.said_at}
    db.execute(SQL["copy"], {**new, "start": period.start, "ends": period.ends})
    _move(db, first, id_)
    period.told[0] = replace(first, memory_id=id_, founds=True)


def _gather(db: apsw.Connection, period: Period) -> None:
    """Bring the statements of a period together in its memory."""
    id_ = period.founder.memory_id
    for one in period.told:
        if one.memory_id != id_:
            _move(db, one, id_)


def _move(db: apsw.Connection, told: Told, id_: int) -> None:
    moved = {"key": told.key, "of": told.memory_id, "to": id_}
    db.execute(SQL["move_statement"], moved)
    db.execute(SQL["move_sources"], moved)
    for memory_id in (told.memory_id, id_):
        db.execute(SQL["counted"], {"id": memory_id})


def _hold(db: apsw.Connection, period: Period, after: int | None, at: int) -> None:
    id_ = period.founder.memory_id
    [(start, ends, until, before, state, said_at)] = every(db, SQL["held"], {"id": id_})
    begins = None if start is None and said_at == period.start else period.start
    due = after is not None and period.until is not None and period.until <= at
    wanted = (begins, period.ends, period.until, after, "superseded" if due else "active")
    if (start, ends, until, before, "active" if state == "archived" else state) == wanted:
        return
    told = {"id": id_, "start": begins, "ends": period.ends, "until": period.until, "after": after}
    db.execute(SQL["hold"], told)
    db.execute(SQL["turn"], {"id": id_, "state": wanted[-1]})
    if before is not None and before != after:
        db.execute(SQL["unlink"], {"id": id_, "after": before})
    if after is not None and after != before:
        relate(db, Relate((Association(after, id_, Relation.UPDATES),), (), at))
