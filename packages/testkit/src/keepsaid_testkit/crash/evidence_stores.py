"""The stores of a home as a judge reads them: two files of SQLite, or a database of PostgreSQL, by statements alone."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, TypeVar

import apsw
import psycopg

T = TypeVar("T")


def _statements(page: str) -> dict[str, str]:
    named = re.split(r"^-- name: (\w+)$", Path(__file__).with_name(page).read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(named[1::2], named[2::2], strict=True))


SQL = _statements("evidence.sql")
"""The statements of `evidence.sql` by name."""

_SERVER_SQL = {**SQL, **_statements("evidence_server.sql")}
"""Those that PostgreSQL reads: the same, but for some that have a text of their own."""


class EvidenceStore(ABC):
    """One store, opened so that nothing can be changed; a context manager."""

    name: str

    def __enter__(self) -> EvidenceStore:
        """Read."""
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None:
        """Close it."""

    @abstractmethod
    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement by its name."""

    def all(self, kind: type[T]) -> list[T]:
        """All rows of a kind."""
        return [kind(*row) for row in self.rows(kind.__name__)]

    def damage(self) -> list[str]:
        """What the database finds wrong with itself."""
        found = [str(row[0]) for row in self.rows("damage")]
        return [] if found == ["ok"] else [f"{self.name}: {line}" for line in found]

    def mistimed(self) -> list[str]:
        """What a schedule said twice, or not at all though it says so, and schedules that came to nothing."""
        return [f"{self.name}: {row[0]} of a schedule is not as it should be" for row in self.rows("mistimed")]

    def mistaught(self) -> list[str]:
        """What was learned of and is in two places now, or more often than it was delivered."""
        return [f"{self.name}: {row[0]} was learned twice, or is in several places" for row in self.rows("mistaught")]


class EvidenceFile(EvidenceStore):
    """A database file of SQLite."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        uri = path.absolute().as_uri() + "?mode=ro"
        self._db = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        self._db.set_busy_timeout(1_000)

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._db.close()

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement by its name."""
        return self._db.execute(SQL[statement]).fetchall()


class EvidenceServer(EvidenceStore):
    """A part of a database of PostgreSQL."""

    def __init__(self, url: str, part: str) -> None:
        self.name = part
        self._db = psycopg.connect(url, autocommit=True)
        self._db.execute("SET default_transaction_read_only TO on; SET search_path TO keepsaid")

    def __exit__(self, *_: object) -> None:
        """Disconnect."""
        self._db.close()

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement by its name."""
        return self._db.execute(_SERVER_SQL[statement].encode()).fetchall()


def evidence_in(home: Path, part: str) -> EvidenceStore:
    """A store of a home ("buffer" or "memory"), where its settings say that it is."""
    config = home / "config" / "config.yaml"
    settings = json.loads(config.read_text("utf-8")) if config.exists() else {}
    url = settings.get("store", {}).get("url")
    return EvidenceFile(home / "data" / f"{part}.db") if url is None else EvidenceServer(url, part)
