"""Undo images: the rows that a forgetting takes away, as they were before it; triggers record them while it runs.

A transaction that is recorded sets `keepsaid.undo`; only then do the triggers of `undo.sql` write, into a table whose
rows are read and deleted again before the transaction ends.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from keepsaid.adapters.postgres.dialect import PACKAGE
from keepsaid.adapters.sql.query import SqlSession, column, every, load

SQL = load("undo_rows", PACKAGE)


def begin(db: SqlSession) -> None:
    """Record from now on what this transaction does to rows."""
    db.execute(SQL["begin"])


def end(db: SqlSession, tables: Sequence[str]) -> bytes:
    """Stop recording; returns what was done to rows of these tables, the last first, or nothing."""
    db.execute(SQL["end"])
    found = [
        (place, verb, _changed(json.loads(was), json.loads(now), column(db, SQL["keys"], (place,))))
        for place, verb, was, now in every(db, SQL["recorded"])
        if place in tables
    ]
    db.execute(SQL["clear"])
    return zlib.compress(json.dumps(found).encode()) if found else b""


def _changed(was: dict[str, Any], now: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """The row as it was; of one that stayed, its key and what of it was changed."""
    return {name: value for name, value in was.items() if name in keys or name not in now or now[name] != value}


def put_back(db: SqlSession, images: bytes) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Undo what an image tells, and yield table and key of each row.

    A row that was changed since is restored, one that was deleted since stays deleted.
    """
    for place, verb, row in json.loads(zlib.decompress(images)):
        keys, columns = column(db, SQL["keys"], (place,)), list(row)
        parts = {
            "table": place,
            "columns": ", ".join(columns),
            "changed": ", ".join(f"{name} = given.{name}" for name in columns if name not in keys),
            "same": " AND ".join(f"{place}.{name} = given.{name}" for name in keys),
        }
        sql = SQL[f"undo_{verb.lower()}"]
        for name, part in parts.items():
            sql = sql.replace(f"/*{name}*/", part)
        if verb != "UPDATE" or parts["changed"]:
            db.execute(sql, (json.dumps(row),))
        yield place, tuple(row[key] for key in keys)
