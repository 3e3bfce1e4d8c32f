"""The layer: SQLite's files on a medium. Reads, locks and shared memory are those of the real disk below."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from keepsaid_testkit.power.medium import Medium, Resized, Written

_BELOW = "unix"
_NAMES_FOLLOW = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL
"""SQLite syncs the folder with the first sync of such a file that it may have created."""


def _went_on(alive: bool) -> None:
    if not alive:
        raise apsw.IOError("the power is cut")


class _File(apsw.VFSFile):
    """A file whose changes go to the medium before the disk below."""

    def __init__(self, medium: Medium, path: Path, flags: list[int], name: str | apsw.URIFilename | None) -> None:
        self._medium = medium
        self._name = path.name
        self._read_only = bool(flags[0] & apsw.SQLITE_OPEN_READONLY)
        creating = bool(flags[0] & apsw.SQLITE_OPEN_CREATE)
        self._names_follow = creating and bool(flags[0] & _NAMES_FOLLOW)
        if medium.known(path.name):
            pass
        elif path.exists():
            medium.adopt(path.name, path.read_bytes())
        elif creating:
            _went_on(medium.create(path.name))
        super().__init__(_BELOW, name, flags)

    def excepthook(self, *_error: Any) -> bool:
        """Nobody needs to hear twice that the power is gone, least of all from a connection being closed."""
        return self._medium.dead()

    def xLock(self, level: int) -> None:  # noqa: N802
        """Lock the file; a connection being closed hears that it is busy, which alone makes it go without more.

        That is so once the power is gone, and where a reader tries for the last lock, in vain.
        """
        if self._medium.dead() and level == apsw.SQLITE_LOCK_EXCLUSIVE:
            raise apsw.BusyError("the power is cut")
        try:
            super().xLock(level)
        except apsw.IOError:
            if not self._read_only:
                raise
            raise apsw.BusyError("opened for reading") from None

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 - SQLite's name
        _went_on(self._medium.change(self._name, Written(offset, bytes(data))))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        _went_on(self._medium.change(self._name, Resized(newsize)))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802, ARG002
        """The disk below is not asked: what it would keep is never looked at."""
        _went_on(self._medium.sync(self._name))
        if self._names_follow:
            _went_on(self._medium.sync_names())
            self._names_follow = False

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        """Nothing is promised but that a torn write spoils none of its neighbours."""
        return super().xDeviceCharacteristics() & apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE


class _Layer(apsw.VFS):
    """Files of one folder go to the medium, all others straight to the disk below."""

    def __init__(self, folder: Path, medium: Medium) -> None:
        self._folder = folder.resolve()
        self._medium = medium
        super().__init__(f"keepsaid-power-{os.getpid()}-{id(medium)}", _BELOW, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        path = Path(name.filename() if isinstance(name, apsw.URIFilename) else name or "")
        if path.parent != self._folder:
            return apsw.VFSFile(_BELOW, name, flags)
        return _File(self._medium, path, flags, name)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        path = Path(filename)
        if path.parent == self._folder and self._medium.known(path.name):
            self._medium.delete(path.name, synced=syncdir)  # no commit waits for it: an error would tell nobody
        super().xDelete(filename, syncdir)


@contextmanager
def laid(folder: Path, medium: Medium) -> Iterator[None]:
    """Databases of `folder` that are opened meanwhile stay on the medium as long as they are open."""
    layer = _Layer(folder, medium)
    try:
        yield
    finally:
        layer.unregister()
