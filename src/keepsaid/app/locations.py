"""Locations: the paths of a home that its configuration decides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keepsaid.config import Config, Home


def stores_of(home: Home, config: Config) -> tuple[Path, Path]:
    """The database files, the buffer first; both may be one file."""
    return home.store(config.buffer.path), home.store(config.memory.path)


def folders_of(home: Home, config: Config) -> Sequence[Path]:
    """The directories of the database files."""
    return [store.parent for store in stores_of(home, config)]


def in_use(home: Home, config: Config) -> Sequence[Path]:
    """Files and directories that must stay where they are while a runtime works."""
    return [home.run, *folders_of(home, config), *stores_of(home, config)]
