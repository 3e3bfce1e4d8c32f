"""The schema of a database, as a place that rows are moved from or to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress

import psycopg

from keepsaid.adapters.postgres.connection import WRITER_LOCK, PostgresPlace, connect, in_our_words
from keepsaid.adapters.postgres.dialect import PACKAGE
from keepsaid.adapters.postgres.schema import find_numbers
from keepsaid.adapters.postgres.session import PostgresSession
from keepsaid.adapters.postgres.stores import PAIR, PLACE, check_key, migrate_stores
from keepsaid.adapters.sql.marks import move_mark, set_move_mark
from keepsaid.adapters.sql.moving import DRIVEN
from keepsaid.adapters.sql.query import column, every, load, only
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.values import frozen

SQL = load("moves", PACKAGE)


@frozen
class MovableSchema:
    """Both stores in a database; `keyring` is that of the home which they are moved from or to."""

    place: PostgresPlace
    keyring: TombstoneKeyring

    def __str__(self) -> str:
        return str(self.place)

    def mark(self) -> str:
        if not any(find_numbers(self.place).values()):
            return ""
        with self._session() as db:
            return move_mark(db)

    def set_mark(self, mark: str, at: int) -> None:
        with self._session() as db, db.transaction():
            set_move_mark(db, mark, at)

    def is_empty(self) -> bool:
        there = [part for part, number in find_numbers(self.place).items() if number]
        with self._session() as db:
            return not any(only(db, PAIR[f"stored_{part}"])[0] for part in there)

    def prepare(self) -> None:
        """Raises StoreUnpaired, before anything was changed, for a schema of another home."""
        if any(find_numbers(self.place).values()):
            check_key(self.place, self.keyring)
        migrate_stores(self.place)
        check_key(self.place, self.keyring, make=True)

    def working(self) -> Sequence[str]:
        with self._session() as db:
            return column(db, PLACE["alive"])

    @contextmanager
    def held(self) -> Iterator[None]:
        """The writer's place is taken from all processes, of this machine and of others."""
        with self._session() as db:
            db.execute(SQL["hold"], (WRITER_LOCK,))
            yield

    @contextmanager
    def sources(self) -> Iterator[Sequence[PostgresSession]]:
        with self._session() as db:
            db.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield (db,)
            with suppress(psycopg.Error):
                db.connection.execute("ROLLBACK")

    @contextmanager
    def targets(self) -> Iterator[Sequence[PostgresSession]]:
        with self._session() as db, db.transaction():
            tables = [table for (table,) in every(db, SQL["tables"]) if table not in DRIVEN]
            for table in tables:
                db.execute(SQL["disable_triggers"].replace("/*table*/", table))
            yield (db,)
            for table in tables:
                db.execute(SQL["enable_triggers"].replace("/*table*/", table))
            for table, name in every(db, SQL["identities"]):
                db.execute(SQL["continue"].replace("/*table*/", table).replace("/*column*/", name))

    @contextmanager
    def _session(self) -> Iterator[PostgresSession]:
        with in_our_words(self.place), closing(connect(self.place)) as connection:
            db = PostgresSession(connection)
            db.execute(SQL["no_limits"])
            yield db
