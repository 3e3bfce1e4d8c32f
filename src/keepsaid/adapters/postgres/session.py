"""The session: runs the statements of commits and queries on one connection to PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any

import psycopg
from psycopg import adapt, postgres
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumper, TextLoader

from keepsaid.adapters.postgres import undo
from keepsaid.adapters.postgres.dialect import translated
from keepsaid.adapters.postgres.postings import post_pieces
from keepsaid.adapters.sql.query import Bound, MentionsOf, Row
from keepsaid.adapters.sql.search.session import SearchedSession


class _Numbers(list[int]):
    """Bound as one value: `carray(?)` has a row for each."""


class _Texts(list[str]):
    """See _Numbers."""


class _Blobs(list[bytes]):
    """See _Numbers."""


class _BoolDumper(Int8Dumper):
    """Flags are whole numbers in the tables."""

    def dump(self, obj: Any) -> bytes:
        return b"1" if obj else b"0"


class _NumbersDumper(adapt.Dumper):
    oid = postgres.types["int8"].array_oid

    def dump(self, obj: Any) -> bytes:
        return f"{{{','.join(map(str, obj))}}}".encode()


class _TextsDumper(adapt.Dumper):
    oid = postgres.types["text"].array_oid

    def dump(self, obj: Any) -> bytes:
        quoted = ('"' + one.replace("\\", "\\\\").replace('"', '\\"') + '"' for one in obj)
        return f"{{{','.join(quoted)}}}".encode()


class _BlobsDumper(adapt.Dumper):
    oid = postgres.types["bytea"].array_oid

    def dump(self, obj: Any) -> bytes:
        return "{{{}}}".format(",".join(f'"\\\\x{one.hex()}"' for one in obj)).encode()


class _NumberLoader(adapt.Loader):
    """Sums of whole numbers are whole numbers."""

    def load(self, data: adapt.Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.isdigit() or text[1:].isdigit() else float(text)


def register(db: psycopg.Connection[Any]) -> None:
    """Let a connection bind and return values as SQLite does."""
    adapters = db.adapters
    for kind, dumper in (
        (int, Int8Dumper),
        (bool, _BoolDumper),
        (str, StrDumper),
        (_Numbers, _NumbersDumper),
        (_Texts, _TextsDumper),
        (_Blobs, _BlobsDumper),
    ):
        adapters.register_dumper(kind, dumper)
    adapters.register_loader("numeric", _NumberLoader)
    for name in ("json", "jsonb"):
        adapters.register_loader(name, TextLoader)


_BYTES = postgres.types["bytea"].oid
_BINARY_TYPES = frozenset(postgres.types[name].oid for name in ("bytea", "int8", "int4", "float8", "text", "bool"))
"""Types that are loaded alike from text and from the binary format."""


def _is_better_binary(cursor: psycopg.Cursor[Row]) -> bool:
    """Return whether a result has bytes, which take twice the size as text, and can be had in the binary format."""
    if (found := cursor.pgresult) is None:
        return False
    types = {found.ftype(n) for n in range(found.nfields)}
    return _BYTES in types and types <= _BINARY_TYPES


_AHEAD_MAX = 500
"""Statements that wait to be sent with the next one."""


class FetchedRows:
    """The rows of one statement, all of which were fetched."""

    def __init__(self, cursor: psycopg.Cursor[Row]) -> None:
        # `description` makes an object for each column, each time that it is asked for.
        found = cursor.pgresult
        self._left = cursor.fetchall() if found is not None and found.nfields else []
        self._cursor = cursor

    def __iter__(self) -> Iterator[Row]:
        return iter(self.fetchall())

    def fetchall(self) -> list[Row]:
        left, self._left = self._left, []
        return left

    def get_description(self) -> Sequence[tuple[Any, ...]]:
        return tuple((column.name,) for column in self._cursor.description or ())


class PostgresSession(SearchedSession):
    """What `MemorySession` asks for, over one connection of psycopg.

    `written` are the rows that were changed so far, a posted statement counted as one.
    """

    def __init__(self, db: psycopg.Connection[Row]) -> None:
        self.connection = db
        self._changes = self.written = 0
        self._cursor: psycopg.Cursor[Row] | None = None
        self._ahead: list[tuple[str, Sequence[object]]] = []
        self._binary = set[str]()
        self._is_open = False
        self._blocks: list[AbstractContextManager[None]] = []

    def execute(self, sql: str, bound: Bound = (), /) -> FetchedRows:
        made = translated(sql)
        # Several statements at once take no values, and cannot be prepared.
        prepare = False if not made.marks and ";" in made.text else None
        if (cursor := self._cursor) is None or cursor.connection is not self.connection:
            cursor = self._cursor = self.connection.cursor()  # one for each statement takes a third of its time
        if prepare is False:
            self.flush()
        is_binary = made.text in self._binary
        with self._sending_ahead():
            cursor.execute(made.text, made.values(bound), prepare=prepare, binary=is_binary)
        if not is_binary and _is_better_binary(cursor):
            self._binary.add(made.text)
        self._count(0 if (cursor.statusmessage or "SELECT").startswith("SELECT") else cursor.rowcount)
        return FetchedRows(cursor)

    def post(self, sql: str, bound: Bound = (), /) -> None:
        if not self._is_open:
            self.execute(sql, bound)
            return
        made = translated(sql)
        self._ahead.append((made.text, made.values(bound)))
        self.written += 1
        if len(self._ahead) == _AHEAD_MAX:
            self.flush()

    def flush(self, *, back_to: str = "") -> None:
        if back_to:
            self._ahead.clear()
            self.execute(f"ROLLBACK TO {back_to}")
        elif self._ahead:
            with self._sending_ahead():
                pass

    @contextmanager
    def _sending_ahead(self) -> Iterator[None]:
        """Send what is to go ahead together with what the block sends; raises what any of it is refused with."""
        if not self._ahead:
            yield
            return
        ahead, self._ahead = self._ahead, []
        with self.connection.pipeline(), self.connection.cursor() as cursor:
            for text, values in ahead:
                cursor.execute(text, values)
            yield

    def _count(self, changed: int) -> None:
        self._changes = max(changed, 0)
        self.written += self._changes

    def changes(self) -> int:
        return self._changes

    def version(self) -> int:
        """Return 0: who only reads remembers nothing."""
        return 0

    def numbers(self, values: Sequence[int]) -> object:
        return _Numbers(values)

    def texts(self, values: Sequence[str] | Sequence[bytes]) -> object:
        return _Blobs(values) if values and isinstance(values[0], bytes) else _Texts(values)  # type: ignore[arg-type]

    def altered(self, table: str, keys: Sequence[int], *outer: object) -> frozenset[int]:
        """Return nothing: PostgreSQL keeps checksums of its pages."""
        del table, keys, outer
        return frozenset()

    def reindex(self, mentions: MentionsOf = "new") -> None:
        super().reindex(mentions)
        post_pieces(self)

    @contextmanager
    def record_undo(self, number: int | None, tables: Sequence[str], keep: str) -> Iterator[None]:
        """An undo image is the rows of the tables as they were, as JSON, compressed with zlib."""
        if number is None:
            yield
            return
        undo.begin(self)
        yield
        if images := undo.end(self, tables):
            self.execute(keep, (number, images))

    def put_back(self, number: int, read: str) -> list[tuple[str, tuple[object, ...]]]:
        """A row that was changed since is restored; one that was deleted since stays deleted."""
        return [row for (images,) in self.execute(read, (number,)) for row in undo.put_back(self, images)]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction of its own."""
        self.execute("BEGIN")
        with self._open():
            yield

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Commit the transaction that has begun, or roll it back; what is posted within is sent with what follows."""
        self._is_open = True
        try:
            yield
            self.execute("COMMIT")
        finally:
            self._is_open = False
            self._roll_back()

    def _roll_back(self) -> None:
        """End a transaction that is still open; what was to go ahead is not sent."""
        self._ahead.clear()
        if not self.connection.closed and self.connection.info.transaction_status != TransactionStatus.IDLE:
            self.connection.execute("ROLLBACK")

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        name = f"inner_{len(self._blocks)}"
        self.flush()
        self.connection.execute(f"SAVEPOINT {name}")
        is_kept = False
        try:
            yield
            self.flush()
            is_kept = True
        finally:
            if not is_kept:
                self._ahead.clear()
                self.connection.execute(f"ROLLBACK TO {name}")
            self.connection.execute(f"RELEASE {name}")

    def __enter__(self) -> PostgresSession:
        """Begin a savepoint, or outside any transaction a transaction."""
        is_idle = self.connection.info.transaction_status == TransactionStatus.IDLE
        block = self.transaction() if is_idle else self._savepoint()
        block.__enter__()
        self._blocks.append(block)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._blocks.pop().__exit__(kind, error, trace)
