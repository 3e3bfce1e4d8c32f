"""A disk that is full as long as a file says so: nothing can be written to any database opened on it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import apsw

_BELOW = "unix"


class _File(apsw.VFSFile):
    """A database, its log or its journal."""

    def __init__(self, full: Path, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._full = full
        self._read_only = bool(flags[0] & apsw.SQLITE_OPEN_READONLY)
        super().__init__(_BELOW, name, flags)

    def excepthook(self, *_error: Any) -> bool:
        """The writer gets the error; nobody else needs it."""
        return True

    def xLock(self, level: int) -> None:  # noqa: N802 - SQLite's name
        """Lock the file; a reader that closes it tries for the last lock, in vain, and is to hear no more than that."""
        try:
            super().xLock(level)
        except apsw.IOError:
            if not self._read_only:
                raise
            raise apsw.BusyError("opened for reading") from None

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        if self._full.exists():
            raise apsw.FullError("no space left on device")
        super().xWrite(data, offset)


class _Layer(apsw.VFS):
    """Every file that is opened can be refused space."""

    def __init__(self, full: Path) -> None:
        self._full = full
        super().__init__(f"keepsaid-full-{os.getpid()}", _BELOW, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _File(self._full, name, flags)


_laid: list[apsw.VFS] = []


def lay(full: Path) -> apsw.VFS:
    """From now on, or until it is unregistered, databases that are opened find no space while the file is there."""
    _laid.append(_Layer(full))
    return _laid[-1]
