"""Connections of SQLite: how a database file is opened, checked and tuned; read-only ones on threads of their own."""

from __future__ import annotations

import asyncio
import os
import threading
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock
from typing import Concatenate
from urllib.parse import quote
from weakref import WeakKeyDictionary

import apsw

from keepsaid.adapters.sql.query import JointStatement, P, Row, T, every, every_replaced
from keepsaid.adapters.sql.search.session import SearchedSession
from keepsaid.adapters.sql.tombstones import open_keyring
from keepsaid.adapters.sqlite import disk, sealing
from keepsaid.errors import ForeignStore, KeepsaidError, StoreError, StoreGone, StoreLocked


class SqliteSession(SearchedSession, apsw.Connection):
    """What `MemorySession` asks for and apsw's connection has not."""

    post = apsw.Connection.execute

    def ask(self, *asked: JointStatement, ends: bool = False) -> list[list[Row]]:
        del ends
        return [(every_replaced if one.replaces else every)(self, one.sql, one.bound) for one in asked]

    def flush(self, *, back_to: str = "", then: Sequence[str] = ()) -> None:
        if back_to:
            self.execute(f"ROLLBACK TO {back_to}")
        for sql in then:
            self.execute(sql)

    def version(self) -> int:
        [[version]] = self.execute("PRAGMA data_version")
        return int(version)

    def numbers(self, values: Sequence[int]) -> object:
        """Bind whole numbers as one value, without a copy: `IN (SELECT value FROM carray(?))`."""
        return apsw.carray(array("q", values))

    def texts(self, values: Sequence[str] | Sequence[bytes]) -> object:
        return apsw.carray(tuple(values))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin at once as the one that writes; roll back unless the block ends well."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        finally:
            if self.in_transaction:
                self.execute("ROLLBACK")

    altered = sealing.altered

    @contextmanager
    def record_undo(self, number: int | None, tables: Sequence[str], keep: str) -> Iterator[None]:
        """An undo image is an inverted changeset, compressed with zlib."""
        if number is None:
            yield
            return
        session = apsw.Session(self, "main")
        try:
            for table in tables:
                session.attach(table)
            yield
            changes = session.changeset()
        finally:
            session.close()
        if changes:
            self.execute(keep, (number, zlib.compress(apsw.Changeset.invert(changes))))

    def put_back(self, number: int, read: str) -> list[tuple[str, tuple[object, ...]]]:
        """A row that was changed since is restored; one that was deleted since stays deleted."""
        found: list[tuple[str, tuple[object, ...]]] = []
        kept: list[tuple[bytes]] = self.execute(read, (number,)).fetchall()  # type: ignore[assignment]
        for (packed,) in kept:
            images = zlib.decompress(packed)
            for change in apsw.Changeset.iter(images):
                row = change.new if change.opcode == apsw.SQLITE_INSERT else change.old
                found.append((change.name, tuple(row[at] for at in sorted(change.pk_columns)) if row else ()))
            apsw.Changeset.apply(images, self, conflict=_settled)
        return found


def _settled(reason: int, _change: object) -> int:
    return apsw.SQLITE_CHANGESET_REPLACE if reason == apsw.SQLITE_CHANGESET_DATA else apsw.SQLITE_CHANGESET_OMIT


Identity = tuple[int, int]


def identity(path: str | Path) -> Identity | None:
    """Device and inode of what stands at a path; None when nothing does."""
    try:
        found = os.stat(path)  # noqa: PTH116 - called at every commit; a Path would cost as much again
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


class FileWatch:
    """Compares files that a process has open with what stands at their paths now, by inode."""

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._known: dict[str, Identity] = {}
        for path in paths:
            self.add(path)

    def add(self, path: Path) -> None:
        """Watch a path from now on, as it stands; a path where nothing stands is not watched."""
        if (found := identity(path)) is not None:
            self._known[str(path)] = found

    def check(self) -> None:
        """Raise StoreGone when one of the paths leads to nothing, or to something else. Costs one stat a path."""
        for path, known in self._known.items():
            if identity(path) != known:
                raise StoreGone(f"{path} was deleted, moved or replaced while keepsaid had it open")


def log_of(path: Path) -> Path:
    """The write-ahead log of a database file."""
    return path.with_name(f"{path.name}-wal")


APPLICATION_ID = 0x6B656570
"""`keep`, in the header of every database of ours."""

_HEADER = b"SQLite format 3\0"
BUSY_MS = 2_000
"""How long another program that holds a file is waited for."""

WRITES_KIB, SEARCHES_KIB, LOOKUPS_KIB = 16_000, 16_000, 4_000
"""How much of a file the page cache of a connection holds at most: of a writer, and of a reader that searches much or
looks up rows. The operating system has the rest.
"""

_CACHED_STATEMENTS = 512
_open_files: WeakKeyDictionary[apsw.Connection, Identity] = WeakKeyDictionary()
"""Which file each connection has open; a connection that works in another thread cannot be asked."""

_changing = Lock()
"""Held while `_open_files` is read or changed: readers open their connections in threads of their own."""


class _Connection(SqliteSession):
    """A connection that is known as open until it is closed: a new file may have the inode of one that was closed."""

    def close(self, force: bool = False) -> None:
        super().close(force)
        with _changing:
            _open_files.pop(self, None)


_OLDEST_SAFE = (3, 51, 3)


def check_library() -> None:
    """Refuse an SQLite with the WAL-reset bug (fixed in 3.51.3)."""
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < _OLDEST_SAFE:
        raise StoreError(
            f"SQLite {apsw.sqlite_lib_version()} can corrupt a database in WAL mode; 3.51.3 or newer is needed",
            hint="pip install --upgrade apsw",
        )


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, naming the file."""
    try:
        yield
    except KeepsaidError:
        raise
    except apsw.FullError as error:
        raise disk.full(path) from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreLocked(f"another program holds {path}") from error
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise ForeignStore(
            f"{path} is not a readable database ({error})", hint="keepsaid data restore --help"
        ) from error
    except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError) as error:
        raise disk.not_opened(path, error) from error
    except (apsw.IOError, apsw.NoMemError) as error:
        raise disk.refused(path, error) from error
    except apsw.Error as error:
        raise StoreError(f"{path}: {error}") from error


_PRAGMAS = {"journal_mode": "wal", "synchronous": "full", "fullfsync": True, "checkpoint_fullfsync": True}
_PRAGMAS |= {"secure_delete": True, "foreign_keys": False, "temp_store": "memory", "cache_size": -WRITES_KIB}


def open_writer(path: Path) -> SqliteSession:
    """The one connection that writes a file: WAL, synchronous=FULL, secure deletes, no checkpoint but ours.

    A sync goes through to the disk on macOS too, where the system call of that name does not.
    """
    check_library()
    check_header(path)
    with translated(path):
        fresh = not path.exists()
        db = _opened(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        if fresh:
            path.chmod(0o600)
        db.set_busy_timeout(BUSY_MS)
        _check_owner(db, path)
        for name, value in _PRAGMAS.items():
            db.pragma(name, value)
        _plan_once(db)
        db.wal_autocheckpoint(0)
        db.attach(open_keyring(path))
        sealing.register(db)
        return db


def open_reader(path: Path, cached_kib: int = SEARCHES_KIB) -> SqliteSession:
    """A connection that cannot write or checkpoint; it has its own limit for the page cache."""
    check_header(path)
    with translated(path):
        db = _readable(path)
        _check_owner(db, path)
        db.pragma("query_only", True)
        sealing.register(db)
        db.pragma("cache_size", -cached_kib)
        _plan_once(db)
        return db


def _readable(path: Path) -> SqliteSession:
    """A connection that has read from the file.

    A reader writes to the shared memory beside a database in WAL mode. If that cannot be made, because the directory
    is read-only or the disk is full, nobody writes the database, and it is read without.
    https://sqlite.org/wal.html#read_only_databases
    """
    with ExitStack() as undo:
        db = _opened(path, apsw.SQLITE_OPEN_READONLY)
        undo.callback(db.close)
        db.set_busy_timeout(BUSY_MS)
        try:
            db.pragma("schema_version")
        except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.IOError) as error:
            if not (disk.lacks_shared_memory(error) or disk.is_read_only(path) or disk.is_full(path)):
                raise
        else:
            undo.pop_all()
            return db
    return open_without_shared_memory(path)


def open_without_shared_memory(path: Path) -> SqliteSession:
    """A connection that reads a file nobody writes, and makes or changes no file beside it."""
    log = log_of(path)
    if not log.exists() or not log.stat().st_size:
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        return _opened(path, flags, f"file:{quote(str(path))}?immutable=1")
    # In exclusive mode the index of the log is in the heap. A file that is open for reading cannot be locked so.
    db = _opened(path, apsw.SQLITE_OPEN_READONLY, vfs="unix-none")
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    db.pragma("locking_mode", "exclusive")
    return db


def _plan_once(db: apsw.Connection) -> None:
    """Keep a statement's plan whatever is bound to it (SQLITE_DBCONFIG_ENABLE_QPSG).

    Otherwise SQLite, when built with STAT4 as apsw's is, plans FTS5's inner look-ups again for two of three terms
    of a search. Without `sqlite_stat4`, which keepsaid never makes, the new plan is always the old one.
    """
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def check_header(path: Path) -> None:
    """Refuse a file that is not SQLite's, before SQLite may touch it.

    Beside a journal or a log SQLite itself has to say: the power may have gone while it wrote the first page.
    A file that is open here already is not read: closing a file gives up all locks of the process on it, also those
    of SQLite, and then another program that closes the database deletes the log.
    """
    found = identity(path)
    with _changing:
        if found is not None and found in _open_files.values():
            return
    try:
        with path.open("rb") as file:
            head = file.read(len(_HEADER))
    except FileNotFoundError:
        return
    except OSError as error:
        what, hint = f"{path} cannot be read ({error.strerror})", f"make {path} readable for this user"
        raise StoreError(what, safe="Nothing was changed.", hint=hint) from error
    beside = (path.with_name(f"{path.name}-{kind}") for kind in ("journal", "wal"))
    if head and head != _HEADER and not any(one.exists() for one in beside):
        raise ForeignStore(f"{path} is not a keepsaid database")


def _opened(path: Path, flags: int, name: str = "", vfs: str | None = None) -> SqliteSession:
    db = _Connection(name or str(path), flags=flags, vfs=vfs, statementcachesize=_CACHED_STATEMENTS)
    if (found := identity(path)) is not None:
        with _changing:
            _open_files[db] = found
    return db


def _check_owner(db: apsw.Connection, path: Path) -> None:
    """Refuse another program's file, and close it: ours carry an application id, a new one has no tables."""
    try:
        with translated(path):
            if db.pragma("application_id") != APPLICATION_ID and db.pragma("schema_version") != 0:
                raise ForeignStore(f"{path} is another program's database")
    except StoreError:
        db.close()
        raise


_MOMENT_S = 0.05


class Readers:
    """A few read-only connections to one file, each of which holds at most `cached_kib` of it in memory."""

    def __init__(self, path: Path, count: int = 2, cached_kib: int = SEARCHES_KIB) -> None:
        self.path = path
        self._cached_kib = cached_kib
        self._local = threading.local()
        self._open: list[SqliteSession] = []
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="keepsaid-read")

    async def run(self, query: Callable[Concatenate[SqliteSession, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `query` with a connection, off the event loop, inside one snapshot."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: self._run(query, *args, **kwargs))

    async def view(self, query: Callable[Concatenate[SqliteSession, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a query that does nothing but read."""
        return await self.run(query, *args, **kwargs)

    def _run(self, query: Callable[Concatenate[SqliteSession, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with translated(self.path):
            db: SqliteSession | None = getattr(self._local, "db", None)
            if db is None:
                db = self._local.db = open_reader(self.path, self._cached_kib)
                self._open.append(db)
            db.execute("BEGIN")
            try:
                return query(db, *args, **kwargs)
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

    async def close(self) -> None:
        """Cut short what still runs after a moment, and close every connection.

        Nobody waits for it any more: a search through all that was ever said would hold up the stop.
        """
        ended = asyncio.ensure_future(asyncio.to_thread(self._pool.shutdown))
        while not (await asyncio.wait([ended], timeout=_MOMENT_S))[0]:
            for db in self._open:
                db.interrupt()
        for db in self._open:
            db.close()
