"""Queries: the session of a database, statements by name, the ways a result is read, and how commits are applied."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache, wraps
from importlib.resources import files
from types import MappingProxyType, TracebackType
from typing import Any, Concatenate, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

from keepsaid.domain.commits import Commit
from keepsaid.domain.forgetting import EmptyLog
from keepsaid.errors import MessageDamaged
from keepsaid.ports.store_views import Operations
from keepsaid.values import frozen

Row = tuple[Any, ...]
Bound = Sequence[Any] | Mapping[str, Any]
"""The values of a statement's `?` in their order, or of its `:name`s."""


class Rows(Protocol):
    """The rows of one statement; they are read once, before the next statement."""

    def __iter__(self) -> Iterator[Row]:
        """Give the rows one by one."""

    def fetchall(self) -> list[Row]:
        """Return the rows that were not read yet."""

    def get_description(self) -> Sequence[tuple[Any, ...]]:
        """Return one entry for each column, its name first."""


P = ParamSpec("P")
T = TypeVar("T")


class JointStatement(NamedTuple):
    """A statement that is asked together with others; with `replaces`, its rows are read as `every_replaced` does."""

    sql: str
    bound: Bound = ()
    replaces: bool = False


class SqlSession(Protocol):
    """Runs statements in the transaction of one commit or one query; raises the errors of the database as they are."""

    def execute(self, sql: str, bound: Bound = (), /) -> Rows:
        """Run one statement."""

    def post(self, sql: str, bound: Bound = (), /) -> object:
        """Run a statement whose result nobody reads. It may be sent with the next one, which then raises its error."""

    def ask(self, *asked: JointStatement, ends: bool = False) -> list[list[Row]]:
        """Run statements, none of which needs the result of another; returns the rows of each.

        `ends` says that the query runs no other after them.
        """

    def flush(self, *, back_to: str = "", then: Sequence[str] = ()) -> None:
        """Run what was posted, and then these statements, which may be posted themselves where nothing was.

        With a savepoint, drop what was posted instead, and roll back to the savepoint.
        """

    def changes(self) -> int:
        """Return how many rows the last statement inserted, updated or deleted; 0 for one that waits to be sent."""

    def version(self) -> int:
        """Return a number that is another one after another connection wrote."""

    def numbers(self, values: Sequence[int]) -> object:
        """Return what whole numbers are bound as, all in one value."""

    def texts(self, values: Sequence[str] | Sequence[bytes]) -> object:
        """Return what texts or blobs are bound as, all in one value."""

    def altered(self, table: str, keys: Sequence[int], *outer: object) -> frozenset[int]:
        """Return keys of the rows that are not what was written; `outer` are the key's columns before the last."""

    def record_undo(self, number: int | None, tables: Sequence[str], keep: str) -> AbstractContextManager[None]:
        """Store what the block deletes from these tables by the statement `keep`; nothing if `number` is None."""

    def put_back(self, number: int, read: str) -> list[tuple[str, tuple[object, ...]]]:
        """Apply undo image `number`; returns the rows restored. Later changes are lost, later deletions stay."""

    def transaction(self) -> AbstractContextManager[None]:
        """Run the block in a transaction of its own; only for upkeep, which is neither a commit nor a query."""

    def __enter__(self) -> object:
        """Begin a savepoint."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Release the savepoint; roll back to it where an error left the block."""


MentionsOf = Literal["none", "new", "all"]
"""Of which changed memories mentions are written."""


class MemorySession(SqlSession, Protocol):
    """A session of a database that holds memory and its search index."""

    def tombstones(self, digests: Iterable[bytes]) -> Sequence[bytes]:
        """Return the tombstones of digests, with the key of the home; none before the first forgetting."""

    def reindex(self, mentions: MentionsOf = "new") -> None:
        """Rebuild the search pieces of all changed memories, in the transaction that changed them.

        Writes whom and what the new ones mention, or all of them, or none.
        """

    def count_terms(self, most: int) -> bool | None:
        """Count some terms of the full text again; returns whether that was all, None where nothing is new."""

    def alike(self, ids: Sequence[int], above: float) -> tuple[tuple[int, int], ...]:
        """Return the pairs of these memories, the smaller id first, whose vectors have a cosine above `above`."""


class SqlReaders(Protocol):
    """Runs queries on connections that cannot write, each in one snapshot."""

    async def run(self, query: Callable[Concatenate[Any, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a query with a session of its database; raises a StoreError."""

    async def view(self, query: Callable[Concatenate[Any, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a query that does nothing but read: where that is faster, it may be begun and then run once more."""


ApplyOne = Callable[[Any, Any], Any]
Upkeep = Callable[[Any, bool], bool | None]
ApplySet = Callable[[Any, Sequence[Any]], Sequence[Any]]


@frozen
class CommitTable:
    """How each type of commit is applied: one at a time, or as a set in few statements.

    `upkeep` are what the writer does between commits; with `finish`, they leave nothing for later. One that has only
    read a part of what it will write returns True.
    `undone` are called after a rollback.
    """

    single: Mapping[type, ApplyOne]
    sets: Mapping[type, ApplySet]
    upkeep: tuple[Upkeep, ...] = ()
    undone: tuple[Callable[[], None], ...] = ()

    def __or__(self, other: CommitTable) -> CommitTable:
        """Both, for a file that holds both stores."""
        upkeep, undone = (*self.upkeep, *other.upkeep), (*self.undone, *other.undone)
        return CommitTable({**self.single, **other.single}, {**self.sets, **other.sets}, upkeep, undone)


def emptied(_db: SqlSession, _commit: EmptyLog) -> None:
    """The size of a log that is emptied when the transaction is over."""


_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_PART = re.compile(r"/\*part (\w+)\*/")


_HERE = "keepsaid.adapters.sql"


@cache
def load(page: str, package: str = _HERE) -> Mapping[str, str]:
    """The statements of `page`.sql by name; `/*part NAME*/` in one is replaced by that statement of parts.sql.

    `package` is that of a database with statements of its own.
    """
    return MappingProxyType({name: _filled(sql) for name, sql in _named(page, package).items()})


@cache
def _named(page: str, package: str = _HERE) -> Mapping[str, str]:
    text = files(package).joinpath("statements", f"{page}.sql").read_text("utf-8")
    parts = _NAME.split(text)
    found = {name: sql.strip() for name, sql in zip(parts[1::2], parts[2::2], strict=True)}
    assert len(found) == len(parts) // 2, f"a name stands twice in {page}.sql"
    return found


def _filled(sql: str) -> str:
    return _PART.sub(lambda found: _filled(_named("parts")[found[1]]), sql)


@cache
def many(statement: str, row: str, count: int) -> str:
    """A statement whose `/*rows*/` is replaced by `count` copies of the parenthesised `row`."""
    return statement.replace("/*rows*/", ", ".join([row] * count))


CHUNK = 64


def chunks(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """The rows in runs of at most 64, so that a set of any size needs few statements and few of them differ.

    Few statements matter more than few bytes: the writer gives up the interpreter lock around each.
    """
    for start in range(0, len(rows), CHUNK):
        yield rows[start : start + CHUNK]


def as_json(values: Iterable[object]) -> str:
    """A JSON list, as statements take many values in one."""
    return json.dumps(list(values), ensure_ascii=False)


def flat(rows: Sequence[tuple[object, ...]]) -> list[object]:
    """All values of the rows, one after another."""
    return [value for row in rows for value in row]


SQL = load("query")

log = logging.getLogger("keepsaid.store")


def every(db: SqlSession, sql: str, bound: Bound = ()) -> list[Row]:
    """All rows. A row with text that is not UTF-8 is left out, and logged: it spoils no other."""
    try:
        return db.execute(sql, bound).fetchall()
    except UnicodeDecodeError:
        return [row for row, is_text in _decoded(db, sql, bound) if is_text]


def every_replaced(db: SqlSession, sql: str, bound: Bound = ()) -> list[Row]:
    """All rows; bytes that are not UTF-8 become U+FFFD, for a caller that compares the rows with their checksums."""
    try:
        return db.execute(sql, bound).fetchall()
    except UnicodeDecodeError:
        return [row for row, _ in _decoded(db, sql, bound)]


def _decoded(db: SqlSession, sql: str, bound: Any) -> list[tuple[Row, bool]]:
    """The rows of a query read as bytes, each with whether all of its text is UTF-8. Raises what a change raises."""
    names = [f"c{n}" for n in range(len(db.execute(sql, bound).get_description()))]
    columns = ", ".join(SQL["column"].replace("/*name*/", name) for name in names)
    as_bytes = SQL["as_bytes"].replace("/*names*/", ", ".join(names)).replace("/*columns*/", columns)
    found: list[tuple[Row, bool]] = []
    for raw in db.execute(as_bytes.replace("/*query*/", sql), bound):
        row, is_text = [], True
        for value, was_text in zip(raw[::2], raw[1::2], strict=True):
            text = value.decode("utf-8", "replace") if was_text and isinstance(value, bytes) else value
            is_text = is_text and (text is value or str(text).encode() == value)
            row.append(text)
        found.append((tuple(row), is_text))
        if not is_text:
            shown_id = row[0] if isinstance(row[0], int) else "of a query"
            log.error("row %s has text that is not UTF-8", shown_id, extra={"code": MessageDamaged.code})
    return found


def column(db: SqlSession, sql: str, bound: Bound = ()) -> list[Any]:
    """The first column of all rows."""
    return [row[0] for row in every(db, sql, bound)]


def one(db: SqlSession, sql: str, bound: Bound = ()) -> Row | None:
    """The first row, if there is any."""
    return next(iter(every(db, sql, bound)), None)


def only(db: SqlSession, sql: str, bound: Bound = ()) -> Row:
    """The first row of a statement that always has one."""
    return every(db, sql, bound)[0]


def write_rows(db: SqlSession, sql: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Run a statement with `/*rows*/` replaced by rows of all these, 64 at a time."""
    for part in chunks(rows):
        db.post(many(sql, row_of(len(part[0])), len(part)), flat(part))


def post_each(db: SqlSession, sql: str, sets: Iterable[Bound]) -> None:
    """Post a statement once for each set of values."""
    for bound in sets:
        db.post(sql, bound)


@cache
def row_of(columns: int) -> str:
    """A parenthesised row of `width` question marks."""
    return f"({', '.join('?' * columns)})"


def scalar(db: SqlSession, sql: str, bound: Bound = ()) -> Any | None:
    """The first column of the first row; None without a row."""
    row = one(db, sql, bound)
    return None if row is None else row[0]


def run(db: SqlSession, sql: str, bound: Sequence[object] = ()) -> int:
    """Run a statement that changes rows; returns how many."""
    db.execute(sql, tuple(bound))
    return db.changes()


class SqlView:
    """Reads one store; its methods are queries in `reads(...)`."""

    def __init__(self, readers: SqlReaders) -> None:
        self._readers = readers


def reads(query: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A method that runs a query with the readers of its object, `_readers`."""

    @wraps(query)
    async def read(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        readers: SqlReaders = self._readers
        return await readers.view(query, *args, **kwargs)

    return read


def writes(commit: Callable[P, Commit[T]]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A method that applies a commit, made of its arguments, with the writer of its object, `_writer`."""

    async def write(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        writer: Operations = self._writer
        return await writer.apply(commit(*args, **kwargs))

    return write
