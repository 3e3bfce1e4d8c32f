"""Progress files: how far a store had come, in a file beside it, so that the next start notices a lost log.

SQLite opens a database without its write-ahead log as if nothing had ever been in the log. The first commit after each
checkpoint raises a counter in the database (a mark), and once that commit is on disk the progress file repeats the
counter. A log that is lost takes a mark with it that the progress file has. The file is never synced: after a power cut
it may be missing, torn or hold an older mark, and none of these is a reason to refuse the store.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from struct import Struct, error

from keepsaid.adapters.sql.query import load, only
from keepsaid.adapters.sqlite.connection import SqliteSession, log_of
from keepsaid.errors import LogLost

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
