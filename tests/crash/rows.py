"""Rows: everything that is in a database file, to be compared with later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

Rows = dict[str, list[tuple[Any, ...]]]


def asked(file: Path, statement: str) -> list[tuple[Any, ...]]:
    """What a statement reads."""
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return db.execute(statement).fetchall()
    finally:
        db.close()


def rows_of(file: Path) -> Rows:
    """Every row of every table."""
    names = asked(file, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    return {name: asked(file, f'SELECT * FROM "{name}"') for (name,) in names}
