"""Writing a file: each group of commits is a transaction; a progress file shows when a log was lost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from struct import Struct, error
from typing import Any

import apsw

from keepsaid.adapters.sql.query import CommitTable, load, only
from keepsaid.adapters.sql.writer import CommitGroup, RejectedCommit
from keepsaid.adapters.sqlite.connection import BUSY_MS, FileWatch, SqliteSession, log_of, translated
from keepsaid.domain.forgetting import EmptyLog
from keepsaid.errors import KeepsaidError, LogLost, StoreError
from keepsaid.ports.runtime import point

SQL = load("progress")
_FORM = Struct("<16sq")
_HASH_BYTES = 8


def progress_of(path: Path) -> Path:
    """The progress file of a database file."""
    return path.with_name(f"{path.name}-progress")


class ProgressMarks:
    """Marks a database on its one writer's connection, and repeats each mark in the progress file."""

    def __init__(self, db: SqliteSession, path: Path) -> None:
        self._db = db
        self._path = progress_of(path)
        self._is_kept = bool(db.filename) and db.table_exists("main", "store_mark")
        self._is_due = self._is_kept
        self._due_mark: bytes | None = None
        self._file: int | None = None

    def begin(self) -> None:
        """Mark the next commit: the log was moved into the database."""
        self._is_due = self._is_kept

    def mark(self) -> None:
        """Raise the counter in the open transaction, if this is the first since `begin`."""
        self._due_mark = None
        if self._is_due:
            store, marks = only(self._db, SQL["raise"])
            self._due_mark = _packed(store, marks)

    def write(self) -> None:
        """Repeat the mark of the transaction that is on disk now. A file that cannot be written keeps an older mark."""
        mark, self._due_mark = self._due_mark, None
        if mark is None:
            return
        self._is_due = False
        with suppress(OSError):
            if self._file is None:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(self._file, mark, 0)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def check_log(db: SqliteSession | None, path: Path) -> None:
    """Raise LogLost if a database (`db` None: an empty file) is behind its progress file and its log is missing."""
    noted = _read(path)
    if noted is None or noted[1] == 0 or _size(log_of(path)):
        return
    if db is None or not db.pragma("schema_version"):
        raise _lost(path)
    reached = only(db, SQL["reached"]) if db.table_exists("main", "store_mark") else (noted[0], 0)
    if reached[0] == noted[0] and int(reached[1]) < noted[1]:
        raise _lost(path)


def forget_progress(path: Path) -> None:
    """Delete the progress file of a database: what the database holds now is accepted."""
    progress_of(path).unlink(missing_ok=True)


def _lost(path: Path) -> LogLost:
    return LogLost(
        f"{log_of(path)} is gone, and with it commits that {path} does not hold; or {path} is an older copy of itself"
    )


def _read(path: Path) -> tuple[bytes, int] | None:
    """The store and the mark that a progress file names; None when it is missing or not whole."""
    try:
        raw = progress_of(path).read_bytes()
        store, marks = _FORM.unpack(raw[: _FORM.size])
    except (OSError, error):
        return None
    return (store, marks) if raw == _packed(store, marks) else None


def _packed(store: bytes, marks: int) -> bytes:
    packed = _FORM.pack(store, marks)
    return packed + blake2b(packed, digest_size=_HASH_BYTES).digest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


_FATAL = (apsw.FullError, apsw.IOError, apsw.NoMemError, apsw.CorruptError, apsw.NotADBError)
"""After these nothing of a group may be kept."""


_REWRITTEN_BYTES_MAX = 64 << 20
"""A file of this size is written again in about half a second."""


class TransactionExecutor:
    """Writes one database file; not safe for use by two threads at once.

    What the log holds is moved into the file once that is more than `log_pages`, which takes some 10 ms for a thousand.
    """

    quiet_s = 0.0

    def __init__(self, db: SqliteSession, path: Path, table: CommitTable, log_pages: int = 1_000) -> None:
        self._db = db
        self._log_pages = log_pages
        self._path = path
        self._table = table
        self._group = CommitGroup(db, table, self._refused)
        self._wal_pages = 0
        self._files = FileWatch((path, log_of(path)))
        self._progress = ProgressMarks(db, path)
        db.set_wal_hook(self._on_commit)

    def apply(self, commits: Sequence[object]) -> list[Any]:
        """Apply the commits in order; each result stands at its place, Refused where one was not kept.

        Nothing is kept before the transaction of all is on disk; when that fails, all are refused. So are they when
        the files they were written to no longer stand at their paths.
        """
        names = sorted({type(commit).__name__ for commit in commits})
        for name in names:
            point(f"commit.{name}.before")
        try:
            with translated(self._path):
                results = self._transaction(commits)
                self._files.check()
                self._progress.write()
                if "EmptyLog" in names:
                    emptied = self._empty_log(whole=any(isinstance(one, EmptyLog) and one.whole for one in commits))
                    results = [
                        emptied if isinstance(one, EmptyLog) else of for one, of in zip(commits, results, strict=True)
                    ]
        except Exception as error:  # noqa: BLE001  # guard: store writer - the writer outlives any commit
            self._group.notify_undone()
            return [RejectedCommit(error)] * len(commits)
        for name in names:
            point(f"commit.{name}.after")
        return results

    def _transaction(self, commits: Sequence[object]) -> list[Any]:
        with self._db.transaction():
            changes = self._db.total_changes()
            results = self._group.apply(commits)
            if self._db.total_changes() != changes:
                self._progress.mark()
        return results

    def _empty_log(self, *, whole: bool) -> bool:
        """Move the log into the file and cut it to nothing, unless somebody reads it; nobody is waited for."""
        for keep_up in self._table.upkeep if whole else ():
            keep_up(self._db, True)
        if whole:
            self._rewrite()
        self._db.set_busy_timeout(0)
        try:
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            self._progress.begin()  # the log may have been moved and only not cut: the next commit may overwrite it
            return False
        finally:
            self._db.set_busy_timeout(BUSY_MS)
        self._checkpointed()
        return True

    def _rewrite(self) -> None:
        """Write a small file again: where SQLite moved a row, a copy stays in the unused part of its former page.

        `secure_delete` empties deleted rows, not these copies. A larger file would hold up every commit for long.
        """
        [[pages]], [[size]] = self._db.execute("PRAGMA page_count"), self._db.execute("PRAGMA page_size")
        if int(pages) * int(size) <= _REWRITTEN_BYTES_MAX:
            self._db.execute("VACUUM")

    def _refused(self, error: Exception) -> Exception | None:
        if not self._db.in_transaction or isinstance(error, _FATAL):
            return None
        return _ours(error, self._path)

    def _on_commit(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def tidy(self) -> bool:
        """Upkeep; and move what the log holds into the file once it is long. Readers are never made to wait.

        The rest is done after the next group.
        """
        with translated(self._path):
            for keep_up in self._table.upkeep:
                keep_up(self._db, False)
        if self._wal_pages > self._log_pages:
            with translated(self._path):
                self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._checkpointed()
        return False

    def _checkpointed(self) -> None:
        self._wal_pages = 0
        self._progress.begin()

    def close(self, *, broken: bool = False) -> None:
        """Empty the log into the file and close it; after an error of the disk, close it and write nothing."""
        self._progress.close()
        if broken:
            self._db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self._db.close()
            return
        try:
            with translated(self._path):
                for keep_up in self._table.upkeep:
                    keep_up(self._db, True)
                self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except StoreError:
            pass  # a reader is still there, or the disk is full: the log keeps what it holds
        finally:
            self._db.close()


def _ours(error: Exception, path: Path) -> Exception:
    if not isinstance(error, apsw.Error):
        return error
    try:
        with translated(path):
            raise error
    except KeepsaidError as ours:
        return ours
