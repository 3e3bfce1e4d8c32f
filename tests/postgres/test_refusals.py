"""Databases that cannot be used: each is refused with a sentence, and nothing is changed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.postgres.proxy import between

from keepsaid.adapters.postgres.connection import PostgresPlace, connect, in_our_words
from keepsaid.adapters.postgres.schema import check_may_make, migrate
from keepsaid.adapters.sql.scripts import migrations
from keepsaid.errors import ForeignStore, SchemaTooNew, StoreError, StoreUnreachable


@pytest.fixture
def other(place: PostgresPlace) -> Iterator[PostgresPlace]:
    """A schema of another name, in the same database."""
    made = PostgresPlace(place.url, "other")
    yield made
    run(made, "DROP SCHEMA IF EXISTS other CASCADE")


def run(place: PostgresPlace, *statements: str) -> None:
    """Run statements as somebody else."""
    with psycopg.connect(place.url, autocommit=True) as db:
        for statement in statements:
            db.execute(statement)


def test_no_server() -> None:
    with pytest.raises(StoreUnreachable, match="cannot be reached") as found:
        connect(PostgresPlace("postgresql://ann:hunter2@127.0.0.1:1/keepsaid"))
    assert "hunter2" not in found.value.what


def test_no_database_of_that_name(place: PostgresPlace) -> None:
    with pytest.raises(StoreUnreachable, match="nowhere"):
        connect(PostgresPlace(place.url.replace("/postgres?", "/nowhere?")))


def test_another_encoding(place: PostgresPlace) -> None:
    run(place, "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(StoreError, match="LATIN1; UTF8 is needed") as found:
        connect(PostgresPlace(place.url.replace("/postgres?", "/latin?")))
    assert found.value.safe == "Nothing was changed."


def test_a_schema_of_another_program(other: PostgresPlace) -> None:
    run(other, "CREATE SCHEMA other", "CREATE TABLE other.theirs (a int)")
    with pytest.raises(ForeignStore, match="another program's"):
        migrate(other, "buffer", ())


def test_a_newer_schema(other: PostgresPlace) -> None:
    assert migrate(other, "buffer", ()) == 0
    newest = migrations("buffer")[-1][0]
    assert migrate(other, "buffer", ()) == newest
    run(other, f"UPDATE other.keepsaid_schema SET version = {newest + 1}")
    with pytest.raises(SchemaTooNew, match=f"schema {newest + 1}; this keepsaid knows {newest}"):
        migrate(other, "buffer", ())


@pytest.fixture
def walled(place: PostgresPlace) -> Iterator[PostgresPlace]:
    """A role that has a password, and another one that no rule of the server lets in."""
    with psycopg.connect(place.url, autocommit=True) as db:
        [(file,)] = db.execute("SHOW hba_file")
    rules, before = Path(file), Path(file).read_text("utf-8")
    rules.write_text(f"local all walled scram-sha-256\nlocal all barred reject\n{before}", "utf-8")
    run(place, "CREATE ROLE walled LOGIN PASSWORD 'right'", "CREATE ROLE barred LOGIN", "SELECT pg_reload_conf()")
    while not _is_barred(place):
        pass  # the server reads its rules some moment after it was told to
    yield place
    rules.write_text(before, "utf-8")
    run(place, "DROP ROLE walled", "DROP ROLE barred", "SELECT pg_reload_conf()")


def _is_barred(place: PostgresPlace) -> bool:
    try:
        psycopg.connect(place.url.replace("postgres:@", "barred:@")).close()
    except psycopg.OperationalError as error:
        return "no encryption" in str(error)
    return False


@pytest.mark.parametrize(
    ("login", "said", "hint"),
    [
        ("walled:hunter2@", "password authentication failed", "correct the password in store.url or ~/.pgpass"),
        ("walled:@", "no password supplied", "with mode 0600"),
        ("barred:@", "no encryption", "?sslmode=require"),
        ("nobody:@", 'role "nobody" does not exist', "createuser"),
    ],
)
def test_a_server_that_lets_nobody_in(walled: PostgresPlace, login: str, said: str, hint: str) -> None:
    with pytest.raises(StoreUnreachable, match="refuses the connection") as found:
        connect(PostgresPlace(walled.url.replace("postgres:@", login)))
    assert said in found.value.what
    assert hint in found.value.hint
    assert "hunter2" not in str(found.value)


def test_a_server_without_tls_that_is_asked_for_it(place: PostgresPlace) -> None:
    """Over a socket of the file system there is none; this is what libpq says of a server that has none."""
    error = psycopg.OperationalError("connection failed: server does not support SSL, but SSL was required")
    with pytest.raises(StoreUnreachable, match="refuses the connection") as found, in_our_words(place):
        raise error
    assert found.value.hint == "remove sslmode from store.url, or set up TLS in the server"


def test_no_right_to_make_a_schema(other: PostgresPlace) -> None:
    run(other, "DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN")
    try:
        with pytest.raises(StoreError, match="no right to make a schema") as found:
            migrate(PostgresPlace(other.url.replace("postgres:@", "guest:@"), other.schema), "buffer", ())
        with pytest.raises(StoreError, match="no right to make a schema"):
            check_may_make(PostgresPlace(other.url.replace("postgres:@", "guest:@"), other.schema))
        check_may_make(other)
        assert found.value.hint == "GRANT CREATE ON DATABASE postgres TO guest"
    finally:
        run(other, "DROP ROLE guest")


def test_a_pooler(place: PostgresPlace) -> None:
    """It would give the locks of one connection to another."""
    with tempfile.TemporaryDirectory(prefix="keepsaid-px-") as folder, between(place, Path(folder)) as (proxy, behind):
        proxy.pools = True
        with pytest.raises(StoreError, match="a pooler such as PgBouncer"):
            connect(behind)
