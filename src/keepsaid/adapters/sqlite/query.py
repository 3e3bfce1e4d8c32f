"""Queries: the three ways a result is read. Rows are tuples of what SQLite stores; the caller names the columns."""

from __future__ import annotations

import logging
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from keepsaid.adapters.sqlite.statements import load
from keepsaid.errors import MessageDamaged

SQL = load("query")

Row = tuple[Any, ...]
Bound = Sequence[Any] | Mapping[str, Any]
_log = logging.getLogger("keepsaid.store")


def every(db: apsw.Connection, sql: str, bound: Bound = ()) -> list[Row]:
    """All rows. A row with text that is not UTF-8 is left out, and logged: it spoils no other."""
    try:
        return db.execute(sql, bound).fetchall()
    except UnicodeDecodeError:
        return [row for row, is_text in _decoded(db, sql, bound) if is_text]


def every_replaced(db: apsw.Connection, sql: str, bound: Bound = ()) -> list[Row]:
    """All rows; bytes that are not UTF-8 become U+FFFD, for a caller that compares the rows with their checksums."""
    try:
        return db.execute(sql, bound).fetchall()
    except UnicodeDecodeError:
        return [row for row, _ in _decoded(db, sql, bound)]


def _decoded(db: apsw.Connection, sql: str, bound: Any) -> list[tuple[Row, bool]]:
    """The rows of a query read as bytes, each with whether all of its text is UTF-8. Raises what a change raises."""
    names = [f"c{n}" for n in range(len(db.execute(sql, bound).get_description()))]
    columns = ", ".join(SQL["column"].replace("/*name*/", name) for name in names)
    as_bytes = SQL["as_bytes"].replace("/*names*/", ", ".join(names)).replace("/*columns*/", columns)
    found: list[tuple[Row, bool]] = []
    for raw in db.execute(as_bytes.replace("/*query*/", sql), bound):
        row, is_text = [], True
        for value, was_text in zip(raw[::2], raw[1::2], strict=True):
            text = value.decode("utf-8", "replace") if was_text and isinstance(value, bytes) else value
            is_text = is_text and (text is value or str(text).encode() == value)
            row.append(text)
        found.append((tuple(row), is_text))
        if not is_text:
            shown_id = row[0] if isinstance(row[0], int) else "of a query"
            _log.error("row %s has text that is not UTF-8", shown_id, extra={"code": MessageDamaged.code})
    return found


def one(db: apsw.Connection, sql: str, bound: Bound = ()) -> Row | None:
    """The first row, if there is any."""
    return next(iter(every(db, sql, bound)), None)


def only(db: apsw.Connection, sql: str, bound: Bound = ()) -> Row:
    """The first row of a statement that always has one."""
    return every(db, sql, bound)[0]


def run(db: apsw.Connection, sql: str, bound: Sequence[object] = ()) -> int:
    """Run a statement that changes rows; returns how many."""
    db.execute(sql, tuple(bound))
    return db.changes()


def numbers(values: Sequence[int]) -> object:
    """Numbers, bound as one value: `IN (SELECT value FROM carray(?))`."""
    return apsw.carray(array("q", values))
