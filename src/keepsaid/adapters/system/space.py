"""The free space of the file systems that hold given directories."""

from __future__ import annotations

import shutil
from pathlib import Path


class DiskSpace:
    """Looks at the disks; a directory that is not there yet will be made on that of its nearest parent."""

    def __init__(self, *folders: Path) -> None:
        self._folders = folders

    def free_bytes(self) -> int:
        """Bytes that this user may still write on the fullest of the disks."""
        return min(shutil.disk_usage(standing(folder)).free for folder in self._folders)


def standing(folder: Path) -> Path:
    """The directory, or the nearest above it that is there."""
    folder = folder.absolute()
    return next(place for place in (folder, *folder.parents) if place.exists())
