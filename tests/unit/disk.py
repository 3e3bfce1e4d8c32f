"""A disk that fails when a test says so: a real SQLite file system layer between the database and the real disk."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
from tests.waits import HANG_S

from keepsaid.adapters.sql.operations.queries import buffer_commits
from keepsaid.adapters.sql.query import CommitTable
from keepsaid.adapters.sql.tombstones import open_keyring
from keepsaid.adapters.sqlite.connection import SqliteSession, open_writer
from keepsaid.adapters.sqlite.integrity import migrate
from keepsaid.adapters.sqlite.writer import TransactionExecutor

_BELOW = "unix"


class Disk:
    """What happens to the databases opened on it: to their logs, and to the files the logs are moved into."""

    def __init__(self) -> None:
        self.sync_error: Exception | None = None
        self.write_error: Exception | None = None
        self.move_error: Exception | None = None
        self.read_error: Exception | None = None
        self.syncs = 0
        self.writes = 0
        self._held = threading.Event()
        self._held.set()
        self.reached = threading.Event()

    def hold(self) -> None:
        """Let the next sync wait for `release`; `reached` is set once it waits."""
        self.reached.clear()
        self._held.clear()

    def release(self) -> None:
        """Let it go on."""
        self._held.set()

    def synced(self) -> None:
        """The log is written through."""
        self.syncs += 1
        self.reached.set()
        assert self._held.wait(HANG_S), "nobody released the disk"
        _fail_once(self, "sync_error")

    def written(self, log: bool) -> None:
        """Something is written to the log, or moved from it into the file."""
        self.writes += 1
        error = self.write_error if log else self.move_error
        if error is not None:
            raise error

    def read(self) -> None:
        """Something is read from a database."""
        _fail_once(self, "read_error")


def _fail_once(disk: Disk, name: str) -> None:
    error = getattr(disk, name)
    if error is not None:
        setattr(disk, name, None)
        raise error


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        self._log = bool(flags[0] & apsw.SQLITE_OPEN_WAL)
        super().__init__(_BELOW, name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        if self._log:
            self._disk.synced()
        super().xSync(flags)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        self._disk.written(self._log)
        super().xWrite(data, offset)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._disk.read()
        return super().xRead(amount, offset)


class _Layer(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        super().__init__("keepsaid-test", _BELOW, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _File(self._disk, name, flags)


def layered(path: Path, disk: Disk | None = None) -> SqliteSession:
    """The writer's connection to a buffer on a disk, migrated."""
    layer = _Layer(disk) if disk is not None else None
    try:
        db = open_writer(path)
    finally:
        if layer is not None:
            layer.unregister()
    migrate(db, path, "buffer")
    return db


def opened(
    path: Path, disk: Disk | None = None, also: CommitTable | None = None
) -> tuple[TransactionExecutor, SqliteSession]:
    """The ledger of a buffer, and its connection; `also` adds ways to apply commits."""
    db = layered(path, disk)
    table = buffer_commits(db, open_keyring(path))
    if also is not None:
        table = replace(table, single={**table.single, **also.single}, sets={**table.sets, **also.sets})
    return TransactionExecutor(db, path, table), db
