"""The session: runs the statements of commits and queries on one connection to PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, NamedTuple

import psycopg
from psycopg import adapt, postgres
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumper, TextLoader

from keepsaid.adapters.postgres import undo
from keepsaid.adapters.postgres.dialect import translated
from keepsaid.adapters.postgres.postings import post_pieces
from keepsaid.adapters.sql.query import Bound, JointStatement, MentionsOf, Row
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


class SentStatement(NamedTuple):
    """A statement as it is sent: its text, its values, and the cursor that gets its result."""

    text: str
    values: Sequence[object]
    cursor: psycopg.Cursor[Row]
    is_binary: bool = False


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


class _BindingSession(SearchedSession):
    """The part of a session that binds lists."""

    def numbers(self, values: Sequence[int]) -> object:
        return _Numbers(values)

    def texts(self, values: Sequence[str] | Sequence[bytes]) -> object:
        return _Blobs(values) if values and isinstance(values[0], bytes) else _Texts(values)  # type: ignore[arg-type]


class PostgresSession(_BindingSession):
    """What `MemorySession` asks for, over one connection of psycopg.

    `written` are the rows that were changed so far, a posted statement counted as one.
    """

    def __init__(self, db: psycopg.Connection[Row]) -> None:
        self.connection = db
        self._changes = self.written = 0
        self._cursors: list[psycopg.Cursor[Row]] = []
        self._first: list[SentStatement] = []
        self._ahead: list[SentStatement] = []
        self._binary = set[str]()
        self._is_open = False
        self._blocks: list[AbstractContextManager[None]] = []

    def execute(self, sql: str, bound: Bound = (), /) -> FetchedRows:
        made = translated(sql)
        if not made.marks and ";" in made.text:
            # Several statements at once take no values, and can neither be prepared nor be sent beside others.
            self._send()
            cursor = self._take_cursors(1)[0]
            cursor.execute(made.text, prepare=False)
            return self._fetched(cursor, made.text)
        asked = self._statement(made.text, made.values(bound), self._take_cursors(1)[0])
        self._send(asked)
        return self._fetched(asked.cursor, made.text)

    def ask(self, *asked: JointStatement, ends: bool = False) -> list[list[Row]]:
        del ends
        made = [translated(one.sql) for one in asked]
        sent = [
            self._statement(one.text, one.values(of.bound), cursor)
            for one, of, cursor in zip(made, asked, self._take_cursors(len(made)), strict=True)
        ]
        self._send(*sent)
        return [self._fetched(one.cursor, one.text).fetchall() for one in sent]

    def post(self, sql: str, bound: Bound = (), /) -> None:
        if not self._is_open:
            self.execute(sql, bound)
            return
        made = translated(sql)
        self._ahead.append(self._blind(made.text, made.values(bound)))
        self._changes = 0
        self.written += 1
        if len(self._ahead) == _AHEAD_MAX:
            self.flush()

    def flush(self, *, back_to: str = "", then: Sequence[str] = ()) -> None:
        if back_to:
            self._ahead.clear()
            self.execute(f"ROLLBACK TO {back_to}")
            return
        after = [self._blind(text) for text in then]
        if not self._ahead and then:
            self._first += after
        elif self._ahead:
            self._send(*after)

    def _take_cursors(self, count: int) -> list[psycopg.Cursor[Row]]:
        """Return cursors of the connection, one of them at least: to make one takes a third of a statement's time."""
        if self._cursors and self._cursors[0].connection is not self.connection:
            self._cursors.clear()
        while len(self._cursors) <= count:
            self._cursors.append(self.connection.cursor())
        return self._cursors[1 : count + 1] or self._cursors[:1]

    def _blind(self, text: str, values: Sequence[object] = ()) -> SentStatement:
        """A statement whose result nobody reads: one cursor is enough for all of these."""
        return SentStatement(text, values, self._take_cursors(0)[0])

    def _statement(self, text: str, values: Sequence[object], cursor: psycopg.Cursor[Row]) -> SentStatement:
        return SentStatement(text, values, cursor, text in self._binary)

    def _fetched(self, cursor: psycopg.Cursor[Row], text: str) -> FetchedRows:
        if text not in self._binary and _is_better_binary(cursor):
            self._binary.add(text)
        self._count(0 if (cursor.statusmessage or "SELECT").startswith("SELECT") else cursor.rowcount)
        return FetchedRows(cursor)

    def _send(self, *asked: SentStatement) -> None:
        """Send what is to go ahead, and these statements; raises what any of it is refused with."""
        first, ahead, self._first, self._ahead = self._first, self._ahead, [], []
        self._exchange([*first, *ahead, *asked])

    def _exchange(self, statements: Sequence[SentStatement]) -> None:
        """Send statements in one trip; after one that is refused, none of them is run."""
        if len(statements) == 1:
            [one] = statements
            one.cursor.execute(one.text, one.values, binary=one.is_binary)
        elif statements:
            with self.connection.pipeline():
                for one in statements:
                    one.cursor.execute(one.text, one.values, binary=one.is_binary)

    def _count(self, changed: int) -> None:
        self._changes = max(changed, 0)
        self.written += self._changes

    def changes(self) -> int:
        return self._changes

    def version(self) -> int:
        """Return 0: who only reads remembers nothing."""
        return 0

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
        self._first.clear()
        self._ahead.clear()
        if not self.connection.closed and self.connection.info.transaction_status != TransactionStatus.IDLE:
            self.connection.execute("ROLLBACK")

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        name = f"inner_{len(self._blocks)}"
        self._send()
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
        is_idle = not self._is_open and self.connection.info.transaction_status == TransactionStatus.IDLE
        block = self.transaction() if is_idle else self._savepoint()
        block.__enter__()
        self._blocks.append(block)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._blocks.pop().__exit__(kind, error, trace)
