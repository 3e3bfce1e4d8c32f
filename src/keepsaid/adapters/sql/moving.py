"""Moving: makes the rows of one place those of another, of whatever databases they are, and compares the two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import blake2b
from typing import Any, Protocol

from keepsaid.adapters.sql.query import MemorySession, Row, every, load, only, post_each
from keepsaid.errors import StoreError
from keepsaid.values import frozen

SQL = load("moving")
_PAGE = 256

_BLOCKS = ("word_stretch", "vector_block", "memory_stale")
"""Tables that are made of others when there is time, or hold what is to be made within one commit."""

_OWN = {"keepsaid_schema", "sealed_table", "store_mark", "word_block", *_BLOCKS}
"""Tables that each place makes for itself."""

_UNDO = ("forgetting_item", "forgotten_aside", "memory_aside")
"""What a forgetting that is under way, or can be undone, keeps: each database has a form of its own for that."""

_SEARCHED = "memory_piece"
"""With its rows the index of words is written, by the triggers of each database."""

DRIVEN = (_SEARCHED, "vector", "word_stretch")
"""Tables whose triggers only keep up what is made of them; those of all others rest while rows are moved."""


class MovableStores(Protocol):
    """Both stores of a place, whose rows can be moved from there or to there. Every method raises a StoreError."""

    def __str__(self) -> str:
        """Name the place, without a password."""

    def mark(self) -> str:
        """Return what a move left there: "moving", "copied", "moved"; empty for stores in use, or for none."""

    def set_mark(self, mark: str, at: int) -> None:
        """Leave a mark in place of another; an empty one removes it."""

    def is_empty(self) -> bool:
        """Whether nothing was ever stored there."""

    def prepare(self) -> None:
        """Make both stores, or bring them up to date."""

    def working(self) -> Sequence[str]:
        """Return the processes that are known to work with the stores, by the names they gave themselves."""

    def held(self) -> AbstractContextManager[None]:
        """Keep other processes from writing there."""

    def sources(self) -> AbstractContextManager[Sequence[MemorySession]]:
        """Open the stores for reading, as they are at one moment."""

    def targets(self) -> AbstractContextManager[Sequence[MemorySession]]:
        """Open the stores for rows of others: kept if the block ends well. Triggers rest, but for those of DRIVEN."""


@frozen
class MovedTable:
    """A table that both places have; the columns of its key come first."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]

    def sql(self, statement: str) -> str:
        """Return a statement of moving.sql for this table."""
        parts = {
            "table": self.name,
            "key": ", ".join(self.key),
            "columns": ", ".join(self.columns),
            "marks": ", ".join("?" * len(self.columns)),
            "marks_of_key": ", ".join("?" * len(self.key)),
        }
        text = SQL[statement]
        for name, part in parts.items():
            text = text.replace(f"/*{name}*/", part)
        return text

    def key_of(self, row: Row) -> Row:
        return row[: len(self.key)]


@frozen
class MovedRows:
    """What was moved of a table: its rows, how many of them were new or different, and a hash over all."""

    table: str
    rows: int
    changed: int
    hash: str


Tell = Callable[[str], object]
"""Hears the name of each table before it is read."""


def copy_stores(source: MovableStores, target: MovableStores, tell: Tell = str) -> tuple[MovedRows, ...]:
    """Make the rows of the target those of the source, at one moment; only what differs is written.

    Raises StoreError, with the target as it was, where a forgetting is under way or can be undone.
    """
    with source.sources() as sources, target.targets() as targets:
        for session in sources:
            _check_undo(source, session)
        for session in targets:
            for table in _BLOCKS:
                if table in _tables(session):
                    session.execute(_plain("drop_blocks", table))
        return tuple(_copy(*pair) for pair in _pairs(sources, targets, tell))


def compare_stores(source: MovableStores, target: MovableStores, tell: Tell = str) -> tuple[MovedRows, ...]:
    """Read every row of both and compare them; returns the tables with their hashes. Raises StoreError."""
    with source.sources() as sources, target.sources() as targets:
        return tuple(_compared(target, *pair) for pair in _pairs(sources, targets, tell))


Pair = tuple[MemorySession, MemorySession, MovedTable]


def _pairs(sources: Sequence[MemorySession], targets: Sequence[MemorySession], tell: Tell) -> Iterator[Pair]:
    """Yield each table that two sessions share."""
    for source in sources:
        ours = _tables(source)
        for target in targets:
            theirs = _tables(target)
            for name in sorted(ours.keys() & theirs.keys() - _OWN - set(_UNDO)):
                if set(ours[name].columns) != set(theirs[name].columns):
                    raise StoreError(f"the two places have another form of {name}", safe="Nothing was switched.")
                tell(name)
                yield source, target, ours[name]


def _tables(session: MemorySession) -> dict[str, MovedTable]:
    columns: dict[str, list[tuple[int, str]]] = {}
    for table, column, place in every(session, SQL["columns"]):
        columns.setdefault(table, []).append((place, column))
    found = {}
    for table, named in columns.items():
        key = tuple(column for place, column in sorted(named) if place)
        found[table] = MovedTable(table, key, (*key, *sorted(column for place, column in named if not place)))
    return found


def _plain(statement: str, table: str) -> str:
    return MovedTable(table, (), ()).sql(statement)


def _check_undo(place: MovableStores, session: MemorySession) -> None:
    for table in _tables(session).keys() & set(_UNDO):
        if only(session, _plain("any", table))[0]:
            what = f"in {place} something is being forgotten, or can still be undone, which cannot be moved"
            hint = "keepsaid memory forgotten; it says until when"
            raise StoreError(what, safe="Nothing was switched.", hint=hint)


def _copy(source: MemorySession, target: MemorySession, table: MovedTable) -> MovedRows:
    """Former rows go first, so that no unique value of theirs is in the way."""
    if only(target, table.sql("any"))[0]:
        former = _Pages(target, table, "delete")
        for ours, theirs in _merged(source, target, table):
            if theirs is not None and ours != theirs:
                former.add(table.key_of(theirs))
        former.write()
    new = _Pages(target, table, "insert")
    count, hashed = 0, blake2b(digest_size=16)
    for ours, theirs in _merged(source, target, table):
        if ours is not None:
            count += 1
            hashed.update(repr(ours).encode())
            if theirs is None:
                new.add(ours)
    new.write()
    return MovedRows(table.name, count, new.written, hashed.hexdigest())


def _compared(place: MovableStores, source: MemorySession, target: MemorySession, table: MovedTable) -> MovedRows:
    count, hashed = 0, blake2b(digest_size=16)
    for ours, theirs in _merged(source, target, table):
        if ours != theirs:
            raise StoreError(f"a row of {table.name} in {place} is not what was copied", safe="Nothing was switched.")
        count += 1
        hashed.update(repr(theirs).encode())
    return MovedRows(table.name, count, 0, hashed.hexdigest())


class _Pages:
    """Rows of one statement, written some at a time."""

    def __init__(self, target: MemorySession, table: MovedTable, statement: str) -> None:
        self._target, self._table, self._sql = target, table, table.sql(statement)
        self._rows: list[Row] = []
        self.written = 0

    def add(self, row: Row) -> None:
        self._rows.append(row)
        if len(self._rows) == _PAGE:
            self.write()

    def write(self) -> None:
        rows, self._rows = self._rows, []
        self.written += len(rows)
        post_each(self._target, self._sql, rows)
        if self._table.name == _SEARCHED:
            self._target.reindex("none")


def _merged(source: MemorySession, target: MemorySession, table: MovedTable) -> Iterator[tuple[Row | None, Row | None]]:
    """Yield the rows of both in the order of their keys: side by side, or alone where the other has none."""
    left, right = _rows(source, table), _rows(target, table)
    ours, theirs = next(left, None), next(right, None)
    while ours is not None or theirs is not None:
        if theirs is None or (ours is not None and table.key_of(ours) < table.key_of(theirs)):
            yield ours, None
            ours = next(left, None)
        elif ours is None or table.key_of(theirs) < table.key_of(ours):
            yield None, theirs
            theirs = next(right, None)
        else:
            yield ours, theirs
            ours, theirs = next(left, None), next(right, None)


def _rows(session: MemorySession, table: MovedTable) -> Iterator[Row]:
    """Yield the rows of a table in the order of its key, each as every database can hold it."""
    page = session.execute(table.sql("first"), (_PAGE,)).fetchall()
    while page:
        for row in page:
            yield tuple(map(_storable, row))
        last = table.key_of(page[-1])
        page = session.execute(table.sql("next"), (*last, _PAGE)).fetchall() if len(page) == _PAGE else []


def _storable(value: Any) -> Any:
    """Return a value without the character that PostgreSQL cannot hold in a text."""
    return value.replace("\0", "") if isinstance(value, str) else value
