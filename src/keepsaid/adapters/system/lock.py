"""The instance lock: an OS file lock, given up by the death of its process."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from keepsaid.errors import HomeBusy, HomeError


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
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(file, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(file)
            raise HomeBusy(f"process {holder} is already running this home ({self._path.parent})") from None
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        self._file = file

    def release(self) -> None:
        """Give it back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
