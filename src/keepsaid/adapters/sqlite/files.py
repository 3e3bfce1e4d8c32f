"""Identity of open files: detects that a file was deleted, moved or replaced while a process has it open."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from keepsaid.errors import StoreGone

Identity = tuple[int, int]


def identity(path: str | Path) -> Identity | None:
    """Device and inode of what stands at a path; None when nothing does."""
    try:
        found = os.stat(path)  # noqa: PTH116 - called at every commit; a Path would cost as much again
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


class FileWatch:
    """Compares files and directories that a process has open with what stands at their paths now.

    An open file keeps its inode, so no new file can have the same one.
    """

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._known: dict[str, Identity] = {}
        for path in paths:
            self.add(path)

    def add(self, path: Path) -> None:
        """Watch a path from now on, as it stands; a path where nothing stands is not watched."""
        found = identity(path)
        if found is not None:
            self._known[str(path)] = found

    def check(self) -> None:
        """Raise StoreGone when one of the paths leads to nothing, or to something else. Costs one stat a path."""
        for path, known in self._known.items():
            if identity(path) != known:
                raise StoreGone(f"{path} was deleted, moved or replaced while keepsaid had it open")


def log_of(path: Path) -> Path:
    """The write-ahead log of a database file."""
    return path.with_name(f"{path.name}-wal")
