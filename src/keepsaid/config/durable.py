"""Durable files: written whole or not at all, and on the disk when the call returns.

Never for the file of an open database: closing a file gives up the locks that SQLite holds on it.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
"""macOS keeps written data in the cache of the disk unless asked so."""


def sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on the disk. Raises OSError."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_open(number)
    finally:
        os.close(number)


def sync_open(number: int) -> None:
    """The same for an open file. Raises OSError."""
    if _FULL_SYNC is not None:
        with suppress(OSError):  # not every file system knows it
            fcntl.fcntl(number, _FULL_SYNC)
            return
    os.fsync(number)


def sync_tree(folder: Path) -> None:
    """Sync every file and directory below a directory, and itself. Raises OSError."""
    for place, _, files in os.walk(folder, topdown=False):
        for name in files:
            file = Path(place) / name
            if not file.is_symlink():
                sync(file)
        sync(Path(place))


def put_in_place(partial: Path, target: Path) -> None:
    """Sync what was written beside its place, and give it its name, for certain. Raises OSError."""
    if partial.is_dir():
        sync_tree(partial)
    else:
        sync(partial)
    partial.replace(target)
    sync(target.parent)


def write_file(target: Path, content: str | bytes, mode: int = 0o600) -> None:
    """Write a file whole or not at all, on the disk when this returns. Raises OSError."""
    partial = target.with_name(f"{target.name}.partial")
    partial.unlink(missing_ok=True)
    number = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(number, "wb") as out:
            out.write(content.encode() if isinstance(content, str) else content)
            out.flush()
            sync_open(out.fileno())
        partial.replace(target)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    sync(target.parent)


def append_line(file: Path, line: str, mode: int = 0o600) -> None:
    """Add a line to a file, which is made when it is not there; on the disk when this returns. Raises OSError."""
    is_new = not file.exists()
    number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, mode)
    with os.fdopen(number, "ab") as out:
        out.write(f"{line}\n".encode())
        out.flush()
        sync_open(out.fileno())
    file.chmod(mode)
    if is_new:
        sync(file.parent)
