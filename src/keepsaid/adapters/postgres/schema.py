"""The schema of a database: made and migrated under a lock, a transaction for each script.

Processes of the release before may work with it meanwhile, and afterwards, where its last migration says so (ADR 54).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from importlib.resources import files

from psycopg import ConnectionInfo, errors, sql

from keepsaid.adapters.postgres.connection import WRITER_LOCK, PostgresPlace, connect, in_our_words, lacking
from keepsaid.adapters.postgres.dialect import PACKAGE
from keepsaid.adapters.postgres.session import PostgresSession
from keepsaid.adapters.postgres.tables import SQL, script
from keepsaid.adapters.sql.query import column, load, one, scalar
from keepsaid.adapters.sql.scripts import check_number, due, oldest_known, oldest_name
from keepsaid.domain.batch import LIFE_MS
from keepsaid.errors import ForeignStore, StoreError, StoreLocked

SCHEMA, PLACE = load("schema"), load("place", PACKAGE)
_LOCK = 0x6B656571
"""The advisory lock that a process holds while it makes or migrates the schema."""

_LOOK_S = 0.25

_SHARED_SINCE = 5
"""From which number of the buffer on its rows say which processes live."""

_OWN = ("functions.sql", "undo.sql")
"""Scripts of what both parts need."""


def migrate(place: PostgresPlace, part: str, undoable: Sequence[str]) -> int:
    """Bring a part of the schema ("buffer" or "memory") to its newest number; returns the one it had, 0 for a new one.

    `undoable` are tables whose rows can be put back. Raises SchemaTooNew, ForeignStore, StoreLocked while processes
    work with it that could not go on, or another StoreError, with the database as it was.
    """
    with in_our_words(place), closing(connect(place)) as connection:
        db = PostgresSession(connection)
        db.execute(SQL["lock"], (_LOCK,))
        found = _found(db, place, part)
        if _shuts_out(db, place):
            _wait_until_unused(db, place)
            _check_unused(db, place)
        for step, (number, text) in enumerate(due(part, found)):
            is_new = not found and not step
            with db.transaction():
                db.execute(PLACE["hold"], (WRITER_LOCK,))
                if found and _shuts_out(db, place):
                    _check_unused(db, place)
                if is_new:
                    _begin(db, place)
                for statement in script(text):
                    connection.execute(statement)
                if is_new:
                    connection.execute(_script(f"{part}.sql"))
                db.execute(SCHEMA["set_version"], (part, number))
                db.execute(SCHEMA["set_version"], (oldest_name(part), oldest_known(part)))
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


def check_may_make(place: PostgresPlace) -> None:
    """Raise a StoreError unless the role may make the schema, which is not there; nothing is made."""
    with in_our_words(place), closing(connect(place)) as connection:
        if not scalar(PostgresSession(connection), SQL["may_make"], (place.schema,)):
            raise _may_not_make(connection.info, place)


def _may_not_make(info: ConnectionInfo, place: PostgresPlace) -> StoreError:
    hint = f"GRANT CREATE ON DATABASE {info.dbname} TO {info.user}"
    return StoreError(f"{place}: no right to make a schema", safe="Nothing was changed.", hint=hint)


def _found(db: PostgresSession, place: PostgresPlace, part: str) -> int:
    """Return the number of a part. Raises for a schema that is another program's, or a newer one."""
    tables = column(db, SQL["tables"], (place.schema,))
    if "keepsaid_schema" not in tables:
        if tables:
            what = f"the schema {place.schema} of {place} is another program's"
            raise ForeignStore(what, safe="The database was not touched.", hint="name another database in store.url")
        return 0
    if not scalar(db, SQL["may_use"], (place.schema,)):
        raise StoreError(f"{place}: no right to use the schema", safe="Nothing was changed.", hint=lacking(place))
    number, oldest = (one(db, SCHEMA["version"], (name,)) for name in (part, oldest_name(part)))
    return check_number(str(place), part, int(number[0]) if number else 0, int(oldest[0]) if oldest else None)


def _shuts_out(db: PostgresSession, place: PostgresPlace) -> bool:
    """Whether migrating the schema, of either part, shuts out programs that may work with it now."""
    if "keepsaid_schema" not in column(db, SQL["tables"], (place.schema,)):
        return False
    for part in ("buffer", "memory"):
        there = [one(db, SCHEMA["version"], (name,)) for name in (part, oldest_name(part))]
        numbers = [int(row[0]) for row in there if row]
        if numbers and due(part, numbers[0]) and oldest_known(part) > min(numbers):
            return True
    return False


def _wait_until_unused(db: PostgresSession, place: PostgresPlace) -> None:
    """Return when no process of an older release runs, or once one that was killed is not taken for alive any more."""
    until = time.monotonic() + LIFE_MS / 1_000
    while _alive(db, place) and time.monotonic() < until:
        time.sleep(_LOOK_S)


def _alive(db: PostgresSession, place: PostgresPlace) -> Sequence[str]:
    """The processes that work with the stores."""
    has_tables = "keepsaid_schema" in column(db, SQL["tables"], (place.schema,))
    number = one(db, SCHEMA["version"], ("buffer",)) if has_tables else None
    return column(db, PLACE["alive"]) if number is not None and number[0] >= _SHARED_SINCE else ()


def _check_unused(db: PostgresSession, place: PostgresPlace) -> None:
    """Raise while processes of an older release run, which could not work with what the schema becomes."""
    if running := _alive(db, place):
        what = f"processes of an older release work with {place} ({len(running)}), and do not know the newer schema"
        raise StoreLocked(what, safe="Nothing was changed.", hint="stop them, then start this one again")


def _begin(db: PostgresSession, place: PostgresPlace) -> None:
    """Make what both parts need, unless the other part has made it."""
    if "keepsaid_schema" in column(db, SQL["tables"], (place.schema,)):
        return
    name = sql.Identifier(place.schema).as_string(db.connection)
    try:
        db.execute(SQL["schema"].replace("/*name*/", name))
    except errors.InsufficientPrivilege as error:
        raise _may_not_make(db.connection.info, place) from error
    for file in _OWN:
        db.connection.execute(_script(file))
    for statement in script(SCHEMA["create"]):
        db.connection.execute(statement)


def _script(file: str) -> str:
    return files(PACKAGE).joinpath(file).read_text("utf-8")
