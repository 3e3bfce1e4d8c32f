"""Connections to PostgreSQL: how one is opened, checked and tuned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode

import psycopg
from psycopg import errors, sql

from keepsaid.adapters.postgres.session import register
from keepsaid.adapters.sql.query import load
from keepsaid.errors import KeepsaidError, StoreError, StoreFull, StoreLocked, StoreUnreachable
from keepsaid.text.normal import without_logins
from keepsaid.values import frozen

SQL = load("place", "keepsaid.adapters.postgres")
OLDEST_VERSION = 150_000
"""PostgreSQL 15."""

_SETTINGS = """
SET synchronous_commit TO on; SET idle_in_transaction_session_timeout TO '5s'; SET lock_timeout TO '20s';
SET client_min_messages TO warning; SET timezone TO 'UTC'; SET jit TO off;
SET enable_seqscan TO off;
SET tcp_keepalives_idle TO 10; SET tcp_keepalives_interval TO 5; SET tcp_keepalives_count TO 3
"""
"""A process that stops in the midst of a transaction is cut off by the server before others are taken for dead.

Statements find rows by indexes, as a test proves of them in SQLite. A plan that was made while a table was empty would
read the whole table from then on, until the server looks at it again.
"""

_PREPARED_MAX = 400
"""How many statements stay prepared: a turn and what follows it has some 150, and a lost one costs two trips."""

_KEEPALIVES = {"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
_CONNECT_S = 10


@frozen
class PostgresPlace:
    """Where a store is: the URL of a database, and the schema in it that holds the tables."""

    url: str
    schema: str = "keepsaid"

    def __str__(self) -> str:
        """The URL without its login, and of its parameters only where the server is."""
        url, _, query = self.url.partition("?")
        where = [(name, value) for name, value in parse_qsl(query) if name in ("host", "port", "dbname")]
        return without_logins(url) + (f"?{urlencode(where, safe='/')}" if where else "")


@contextmanager
def in_our_words(place: PostgresPlace) -> Iterator[None]:
    """Turn the errors of PostgreSQL into ours, naming the database without its password."""
    try:
        yield
    except KeepsaidError:
        raise
    except errors.DiskFull as error:
        raise StoreFull(f"the disk of {place} is full") from error
    except (errors.LockNotAvailable, errors.QueryCanceled) as error:
        raise StoreLocked(f"another process holds {place}") from error
    except errors.ProgramLimitExceeded as error:
        raise StoreError(f"{place} cannot hold this: {_first_line(error)}", safe="Nothing of it was stored.") from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        line = _first_line(error)
        if (hint := next((hint for words, hint in _REFUSALS if words in str(error)), None)) is not None:
            raise StoreUnreachable(f"{place} refuses the connection ({line})", hint=hint) from error
        hint = _CORRECT if any(words in str(error) for words in _MISTAKES) else StoreUnreachable.hint
        raise StoreUnreachable(f"{place} cannot be reached ({line})", hint=hint) from error
    except errors.InsufficientPrivilege as error:
        raise StoreError(f"{place}: the role lacks rights ({_first_line(error)})", hint=lacking(place)) from error
    except psycopg.Error as error:
        hint = _CORRECT if type(error) is psycopg.ProgrammingError else StoreError.hint
        raise StoreError(f"{place}: {_first_line(error)}", hint=hint) from error


_MISTAKES = ("could not translate host name", "failed to resolve host", "invalid port number")
_CORRECT = "correct store.url: keepsaid config path"


def lacking(place: PostgresPlace) -> str:
    """What gives a role the rights that it needs to work with what is there."""
    return f"GRANT ALL ON SCHEMA {place.schema}, and on ALL TABLES IN it, to the role; or let the role own both"


_REFUSALS = (
    ("password authentication failed", "correct the password in store.url or ~/.pgpass, or that of the role"),
    ("no password supplied", "put the password into ~/.pgpass, with mode 0600"),
    ("no encryption", "add ?sslmode=require to store.url, or allow the connection in the server's pg_hba.conf"),
    ("server does not support SSL", "remove sslmode from store.url, or set up TLS in the server"),
    ("pg_hba.conf", "allow the connection in the server's pg_hba.conf"),
    ('role "', "createuser --pwprompt NAME, as store.url names it"),
    ("does not exist", "createdb --encoding UTF8 --template template0 --owner ROLE DATABASE"),
)
"""What a server that is there says when it lets nobody in, and what to do then."""


def _first_line(error: Exception) -> str:
    return without_logins(str(error).strip().partition("\n")[0]) or type(error).__name__


def connect(place: PostgresPlace, name: str = "keepsaid") -> psycopg.Connection[Any]:
    """Open a connection to the database, which the server lists under a name; raises a StoreError."""
    with in_our_words(place), ExitStack() as undo:
        db = psycopg.connect(
            place.url,
            autocommit=True,
            cursor_factory=psycopg.RawCursor,
            connect_timeout=_CONNECT_S,
            application_name=name,
            **_KEEPALIVES,  # type: ignore[arg-type]
        )
        undo.callback(db.close)
        _check(db, place)
        register(db)
        db.prepared_max = _PREPARED_MAX
        db.execute(_SETTINGS)
        db.execute(sql.SQL("SET search_path TO {}, pg_catalog").format(sql.Identifier(place.schema)))
        undo.pop_all()
        return db


def _check(db: psycopg.Connection[Any], place: PostgresPlace) -> None:
    """Refuse a server that is too old, a pooler, and a database that cannot hold every text."""
    if db.info.server_version < OLDEST_VERSION:
        shown = db.info.parameter_status("server_version")
        raise StoreError(f"{place} is PostgreSQL {shown}; 15 or newer is needed", safe="Nothing was changed.")
    row = db.execute(SQL["server_process"]).fetchone()
    if row is None or row[0] != db.info.backend_pid:
        what = f"{place} is a pooler such as PgBouncer; keepsaid needs connections of its own, for locks and wake-ups"
        raise StoreError(what, safe="Nothing was changed.", hint="name the server's own address in store.url")
    if (encoding := db.info.parameter_status("server_encoding")) != "UTF8":
        what = f"{place} has the encoding {encoding}; UTF8 is needed"
        raise StoreError(
            what,
            safe="Nothing was changed.",
            hint=f"createdb --encoding UTF8 --template template0 NAME, and name it in store.url, not {db.info.dbname}",
        )


WRITER_LOCK = 0x6B656570
"""`keep`: the advisory lock that is the writer's place; whoever changes the schema holds it too."""
