"""The schema of a database: made and migrated under a lock, a transaction for each script."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from importlib.resources import files

from psycopg import errors, sql

from keepsaid.adapters.postgres.connection import PostgresPlace, connect, in_our_words
from keepsaid.adapters.postgres.dialect import PACKAGE
from keepsaid.adapters.postgres.session import PostgresSession
from keepsaid.adapters.postgres.tables import SQL, script
from keepsaid.adapters.sql.query import column, load, one
from keepsaid.adapters.sql.scripts import check_number, due
from keepsaid.errors import ForeignStore, StoreError

SCHEMA = load("schema")
_LOCK = 0x6B656571
"""The advisory lock that a process holds while it makes or migrates the schema."""

_OWN = ("functions.sql", "undo.sql")
"""Scripts of what both parts need."""


def migrate(place: PostgresPlace, part: str, undoable: Sequence[str]) -> int:
    """Bring a part of the schema ("buffer" or "memory") to its newest number; returns the one it had, 0 for a new one.

    `undoable` are tables whose rows can be put back. Raises SchemaTooNew, ForeignStore or another StoreError with
    the database as it was.
    """
    with in_our_words(place), closing(connect(place)) as connection:
        db = PostgresSession(connection)
        db.execute(SQL["lock"], (_LOCK,))
        found = _found(db, place, part)
        for step, (number, text) in enumerate(due(part, found)):
            is_new = not found and not step
            with db.transaction():
                if is_new:
                    _begin(db, place)
                for statement in script(text):
                    connection.execute(statement)
                if is_new:
                    connection.execute(_script(f"{part}.sql"))
                db.execute(SCHEMA["set_version"], (part, number))
        there = column(db, SQL["undo_triggers"])
        for table in undoable:
            if f"undo_{table}" not in there:
                db.execute(SQL["undo_trigger"].replace("/*table*/", table))
    return found


def find_numbers(place: PostgresPlace) -> dict[str, int]:
    """Return the number of each part of the schema, 0 where it is not there. Raises a StoreError, as `migrate` does."""
    with in_our_words(place), closing(connect(place)) as connection:
        db = PostgresSession(connection)
        return {part: _found(db, place, part) for part in ("buffer", "memory")}


def _found(db: PostgresSession, place: PostgresPlace, part: str) -> int:
    """Return the number of a part. Raises for a schema that is another program's, or a newer one."""
    tables = column(db, SQL["tables"], (place.schema,))
    if "keepsaid_schema" not in tables:
        if tables:
            raise ForeignStore(f"the schema {place.schema} of {place} is another program's")
        return 0
    row = one(db, SCHEMA["version"], (part,))
    return check_number(str(place), part, int(row[0]) if row else 0)


def _begin(db: PostgresSession, place: PostgresPlace) -> None:
    """Make what both parts need, unless the other part has made it."""
    if "keepsaid_schema" in column(db, SQL["tables"], (place.schema,)):
        return
    name = sql.Identifier(place.schema).as_string(db.connection)
    try:
        db.execute(SQL["schema"].replace("/*name*/", name))
    except errors.InsufficientPrivilege as error:
        hint = f"GRANT CREATE ON DATABASE {db.connection.info.dbname} TO {db.connection.info.user}"
        raise StoreError(f"{place}: no right to make a schema", safe="Nothing was changed.", hint=hint) from error
    for file in _OWN:
        db.connection.execute(_script(file))
    for statement in script(SCHEMA["create"]):
        db.connection.execute(statement)


def _script(file: str) -> str:
    return files(PACKAGE).joinpath(file).read_text("utf-8")
