"""Row checksums: each content table has a column `row_seal`, a hash over the other columns of its row.

SQLite does not detect a bit that flips inside a value. The writer's connection keeps the column up to date by temporary
triggers, so that no statement has to. An update of a row whose checksum does not match leaves the checksum as it is: it
must not make an altered row look intact. Rows without a checksum, written before there were any, count as intact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from weakref import WeakKeyDictionary

import apsw

from keepsaid.adapters.sql.query import SqlSession, every, load, only, scalar
from keepsaid.adapters.sql.tombstones import seal_of
from keepsaid.values import frozen

SQL = load("sealing")
COLUMN = "row_seal"
_AT_OPEN_MAX = 50_000
"""Rows of a table that are sealed when a store is opened, some 0.2 s; larger tables are sealed by `doctor --deep`."""

_MOVING = {"state", "collection", "owner", "lease_until", "fence", "attempts", "crashes", "deferrals", "deferred_from"}
_MOVING |= {"alone", "later", "next_at", "due_at", "ready_at", "collect_at", "held_until", "quiet_since", "active_at"}
_MOVING |= {"ended_at"}
"""Columns of states and leases: a state is compared with those there are, a lease runs out."""

_LANE_COUNTERS = {"head", "batched", "priority", "oldest_at", "newest_at", "last_id", "before_id", "due_at", "chars"}
_UNSEALED = {
    "lane": _LANE_COUNTERS | {"transcript", "pruned", "external_from"},
    "memory": {"access_count", "last_access_at", "last_decayed_at"},
    "journal": {"id"},
}
"""Counters and marks that change with every message or recall; those of lanes are compared with their messages.

A line of the journal is sealed before it has its number.
"""


@frozen
class SealedTable:
    """A table with checksums: the columns of its key, and those that are sealed with their declared types."""

    name: str
    key: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    has_state: bool = False

    def values(self, prefix: str = "") -> str:
        """The sealed columns as arguments; text as bytes, because it need not be UTF-8 any more."""
        return ", ".join(
            f"{prefix}{name}" if kind in ("INTEGER", "REAL", "BLOB") else f"CAST({prefix}{name} AS BLOB)"
            for name, kind in self.columns
        )

    def sql(self, statement: str) -> str:
        """A statement of sealing.sql for this table."""
        return _sql_of(self, statement)


@lru_cache(1_024)
def _sql_of(table: SealedTable, statement: str) -> str:
    words = [f"CAST({name} AS BLOB)" for name, kind in table.columns if kind in ("TEXT", "ANY")]
    parts = {
        "table": table.name,
        "values": table.values(),
        "new": table.values("new."),
        "old": table.values("old."),
        "names": ", ".join(name for name, _ in table.columns),
        "key": ", ".join(table.key),
        "shown": ", ".join(f"CAST({name} AS BLOB)" for name in table.key),
        "same": " AND ".join(f"{name} = new.{name}" for name in table.key),
        "before": "".join(f"{name} = ? AND " for name in table.key[:-1]),
        "last": table.key[-1],
        "text": ", ".join(words) or "NULL",
    }
    text = SQL[statement]
    for name, part in parts.items():
        text = text.replace(f"/*{name}*/", part)
    return text


_tables: WeakKeyDictionary[SqlSession, dict[str, SealedTable]] = WeakKeyDictionary()


def register(db: apsw.Connection) -> None:
    """Let statements of a connection say `seal_of(...)`."""
    db.create_scalar_function("seal_of", seal_of, deterministic=True)


def sealed_tables(db: SqlSession) -> dict[str, SealedTable]:
    """The tables of an open database that have checksums, by name; read once for each connection."""
    if (found := _tables.get(db)) is None:
        found = {}
        for table, name, kind, place in every(db, SQL["columns"]):
            there = found.get(table, SealedTable(table, (), ()))
            key = (*there.key, name) if place else there.key
            is_sealed = name != COLUMN and name not in _MOVING | _UNSEALED.get(table, set())
            columns = (*there.columns, (name, kind)) if is_sealed else there.columns
            found[table] = SealedTable(table, key, columns, there.has_state or name == "state")
        _tables[db] = found
    return found


def keep_sealed(db: SqlSession) -> None:
    """Keep the checksums of an open, migrated database from now on, and make those that are missing."""
    former, tables = _tables.pop(db, {}), sealed_tables(db).values()
    for table in tables:
        _settle(db, table, _AT_OPEN_MAX)
    there = {name for (name,) in every(db, SQL["triggers"])} if former else set()
    with db:  # one change of the temporary schema, not two a table
        for table in tables:
            if f"seal_insert_{table.name}" in there:
                db.execute(table.sql("drop_on_insert"))
                db.execute(table.sql("drop_on_update"))
            db.execute(table.sql("on_insert"))
            db.execute(table.sql("on_update"))


def seal_all(db: SqlSession) -> int:
    """Make every checksum that is missing; returns how many tables lacked some."""
    return sum(_settle(db, table) for table in sealed_tables(db).values())


def unsealed(db: SqlSession) -> list[str]:
    """Names of tables that have rows without a checksum, because they are too large to be sealed at a start."""
    return [table.name for table in sealed_tables(db).values() if _sealed_as(db, table) != table.values()]


def _sealed_as(db: SqlSession, table: SealedTable) -> str | None:
    return scalar(db, SQL["sealed_as"], (table.name,))


def _settle(db: SqlSession, table: SealedTable, most: int | None = None) -> bool:
    """Seal the rows of a table that were sealed over other columns, or not at all; altered ones stay as they are."""
    before = _sealed_as(db, table)
    if before == table.values() or (most is not None and only(db, table.sql("count"))[0] > most):
        return False
    db.execute(table.sql("reseal").replace("/*before_values*/", before or "NULL"))
    db.execute(SQL["note_sealed"], (table.name, table.values()))
    return True


def altered(db: SqlSession, table: str, keys: Sequence[int], *outer: object) -> frozenset[int]:
    """Keys of the rows that are not what was written; `outer` are the key's columns before the last."""
    sealed = sealed_tables(db).get(table)
    if sealed is None or not keys:
        return frozenset()
    return frozenset(row[0] for row in every(db, sealed.sql("altered"), (*outer, db.numbers(keys))))


@frozen
class AlteredRow:
    """A row that differs from what was written: its place, and whether its text is invalid UTF-8."""

    table: str
    key: str
    undecodable: bool

    def __str__(self) -> str:
        return f"{self.table} {self.key}" + (" (not UTF-8)" if self.undecodable else "")


def every_altered(db: SqlSession) -> Iterator[AlteredRow]:
    """Every row of every table that is not what was written. Reads the whole database."""
    for table in sealed_tables(db).values():
        for row in db.execute(table.sql("every_altered")):
            key, text = row[: len(table.key)], row[len(table.key) :]
            shown = (part.decode("utf-8", "backslashreplace") if isinstance(part, bytes) else str(part) for part in key)
            yield AlteredRow(table.name, "/".join(shown), not all(map(_is_text, text)))


def _is_text(value: apsw.SQLiteValue) -> bool:
    try:
        return not isinstance(value, bytes) or value.decode() is not None
    except UnicodeDecodeError:
        return False
