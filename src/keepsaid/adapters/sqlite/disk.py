"""The disk below a database: whether it is full or read-only, and the errors that say so."""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from keepsaid.errors import StoreBroken, StoreError, StoreFull


def is_full(path: Path) -> bool:
    """Whether the file system of a path has no block or no inode left."""
    try:
        found = os.statvfs(path.parent)
    except OSError:
        return False
    return not found.f_bavail or (found.f_files > 0 and not found.f_favail)


def is_read_only(path: Path) -> bool:
    """Whether this process may not write a file, or not the directory that SQLite writes its log in."""
    return not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK))


def lacks_shared_memory(error: Exception) -> bool:
    """Whether the shared memory beside a database could not get the space that it needs; no data was written then."""
    return getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE


def full(path: Path) -> StoreFull:
    """The error for a file that there is no space for."""
    return StoreFull(f"the disk is full: no space left for {path}")


def refused(path: Path, error: Exception) -> StoreError:
    """The error for an I/O error. After a sync that failed, nothing more may be written before a restart."""
    if lacks_shared_memory(error):
        return full(path)
    if is_full(path):
        return StoreBroken(
            f"the disk is full, and {path} was not written", hint="free some space, then: keepsaid serve"
        )
    return StoreBroken(f"the disk refused {path} ({error})")


def not_opened(path: Path, error: Exception) -> StoreError:
    """The error for a file that cannot be opened or written."""
    if is_full(path):
        return full(path)
    what = f"{path} cannot be opened for writing"
    if path.exists() and is_read_only(path):
        safe, hint = "Nothing was changed; it can be read.", f"make {path.parent} writable"
        return StoreError(f"{what}: it or its directory is read-only", safe=safe, hint=hint)
    return StoreError(f"{what} ({error})", hint=f"see who may write: ls -la {path.parent}")
