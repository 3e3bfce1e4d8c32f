"""Reads the sessions in the database of Hermes Agent, which another program owns: it is opened for reading only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from keepsaid.adapters.sql.query import load
from keepsaid.errors import InputError

SQL = load("hermes", "keepsaid.adapters.sqlite")

Session = dict[str, Any]
"""A row of the database, by the names of its columns: they differ between releases."""


def read_hermes_sessions(path: Path) -> Iterator[tuple[Session, list[Session]]]:
    """Each session of the database with its messages, oldest first.

    Raises InputError for what is not such a database, or is damaged; the sessions before were given by then.
    """
    try:
        with closing(_opened(path)) as db:
            if db.execute(SQL["tables"]).get != 2:
                raise _refused(path, "it has no tables of sessions and messages")
            for session in _rows(db, SQL["sessions"]):
                yield session, list(_rows(db, SQL["messages"], session.get("id")))
    except apsw.Error as error:
        raise _refused(path, str(error)) from error
    except UnicodeDecodeError as error:
        raise _refused(path, "it holds text that is not UTF-8") from error


def _refused(path: Path, why: str) -> InputError:
    hint = "hermes sessions export FILE, and import that file"
    return InputError(f"{path} cannot be read as a database of Hermes: {why}", safe="Nothing was imported.", hint=hint)


def _opened(path: Path) -> apsw.Connection:
    """The database for reading. One without a log is not locked either, so that no file appears beside it."""
    log = path.with_name(f"{path.name}-wal")
    mode = "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    db = apsw.Connection(f"file:{quote(str(path.absolute()))}?{mode}", flags=flags)
    for pragma in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"):
        db.execute(f"PRAGMA {pragma}")
    return db


def _rows(db: apsw.Connection, statement: str, *values: Any) -> Iterator[Session]:
    cursor = db.execute(statement, values)
    for row in cursor:
        yield dict(zip((name for name, _ in cursor.get_description()), row, strict=True))
