"""Care: whether a database file is whole, and copies of it that are, taken while others write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import apsw

from keepsaid.adapters.sqlite.connection import check_library, open_reader, translated
from keepsaid.adapters.sqlite.migrate import back_up, check
from keepsaid.adapters.sqlite.query import only
from keepsaid.adapters.sqlite.statements import load
from keepsaid.errors import ForeignStore, KeepsaidError

SQL = load("care")
_PROBLEMS_MAX = 5
_WHOLE = [("ok",)]


@dataclass(frozen=True, slots=True)
class Checkup:
    """What was found in a file: schema version and count by part, bytes, and what is wrong with it.

    `wal_bytes` is the part of it that still stands in the log beside it.
    """

    path: Path
    schemas: dict[str, int]
    counts: dict[str, int]
    problems: tuple[str, ...]
    wal_bytes: int = 0


def library_version() -> str:
    """The version of SQLite in use; raises StoreError for one that can corrupt a database."""
    check_library()
    return apsw.sqlite_lib_version()


def examine(path: Path, parts: Sequence[str]) -> Checkup:
    """Open a file for reading and check every page of it; raises a StoreError when it cannot be opened."""
    db = open_reader(path)
    try:
        with translated(path):
            schemas = {part: check(db, path, part) for part in parts}
            found = db.execute(f"PRAGMA quick_check({_PROBLEMS_MAX})").fetchall()
            counts = {part: int(only(db, SQL[part])[0]) for part in parts if schemas[part]}
    finally:
        db.close()
    wal = path.with_name(f"{path.name}-wal")
    problems = () if found == _WHOLE else tuple(str(row[0]) for row in found)
    return Checkup(path, schemas, counts, problems, wal.stat().st_size if wal.exists() else 0)


def copy(path: Path, target: Path, parts: Sequence[str]) -> Checkup:
    """Copy a file as it stands at one moment, whoever writes it meanwhile, then open and check the copy.

    Raises a StoreError with nothing left at `target`, ForeignStore when the copy is not whole.
    """
    try:
        _copied(path, target)
        found = examine(target, parts)
        if found.problems:
            raise ForeignStore(f"{path} is damaged ({found.problems[0]})", hint="keepsaid doctor")
    except KeepsaidError:
        target.unlink(missing_ok=True)
        raise
    return found


def _copied(path: Path, target: Path) -> None:
    db = open_reader(path)
    try:
        with translated(target):
            # The open snapshot is what is copied: without it, every commit of a writer would start the copy again.
            db.execute("BEGIN")
            db.pragma("schema_version")
            back_up(db, target)
            db.execute("ROLLBACK")
    finally:
        db.close()
