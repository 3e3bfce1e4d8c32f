"""The instance lock: an OS file lock, given up by the death of its process."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from keepsaid.errors import HomeBusy, HomeError

_PID_BYTES_MAX = 32
_AGAIN_S = 0.01
"""Seconds after which a held lock is tried again: `holder` looks at it for a moment."""


def holder(path: Path) -> int | None:
    """The process that holds a lock file, 0 when it did not say which it is; None when nobody does."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        said = os.read(file, _PID_BYTES_MAX).strip()
        return int(said) if said.isdigit() else 0
    except OSError:
        return None
    else:
        return None
    finally:
        os.close(file)


class FileLock:
    """Holds a lock file for as long as the process lives or until released."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def acquire(self) -> None:
        """Take the lock; raises HomeBusy naming the holder's process."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise HomeError(f"{self._path} cannot be opened ({error.strerror})") from error
        if not _taken(file):
            said = os.read(file, _PID_BYTES_MAX).decode("ascii", "replace").strip() or "unknown"
            os.close(file)
            raise HomeBusy(f"process {said} is already running this home ({self._path.parent})")
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        self._file = file

    def release(self) -> None:
        """Give it back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _taken(file: int) -> bool:
    for wait_s in (_AGAIN_S, 0.0):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(wait_s)
        else:
            return True
    return False
