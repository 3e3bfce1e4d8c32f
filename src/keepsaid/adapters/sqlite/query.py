"""Queries: the three ways a result is read. Rows are tuples of what SQLite stores; the caller names the columns."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import apsw

Row = tuple[Any, ...]


def every(db: apsw.Connection, sql: str, bound: Sequence[object] = ()) -> list[Row]:
    """All rows."""
    return db.execute(sql, tuple(bound)).fetchall()


def one(db: apsw.Connection, sql: str, bound: Sequence[object] = ()) -> Row | None:
    """The first row, if there is any."""
    return next(iter(every(db, sql, bound)), None)


def only(db: apsw.Connection, sql: str, bound: Sequence[object] = ()) -> Row:
    """The first row of a statement that always has one."""
    return every(db, sql, bound)[0]


def run(db: apsw.Connection, sql: str, bound: Sequence[object] = ()) -> int:
    """Run a statement that changes rows; returns how many."""
    db.execute(sql, tuple(bound))
    return db.changes()


def numbers(values: Sequence[int]) -> object:
    """Numbers, bound as one value: `IN (SELECT value FROM carray(?))`."""
    return apsw.carray(array("q", values))
