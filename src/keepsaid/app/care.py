"""Care: what the doctor and the backup ask of the database files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from keepsaid.adapters.sqlite.care import Checkup, copy, examine, library_version
from keepsaid.adapters.sqlite.deep import DeepLook, look_deep
from keepsaid.adapters.sqlite.pair import accept_loss
from keepsaid.adapters.sqlite.stores import check_stores
from keepsaid.adapters.system.lock import FileLock, holder
from keepsaid.adapters.system.resources import DiskSpace
from keepsaid.adapters.tools.pins import ACCEPTED_FILE
from keepsaid.app.fences import FENCE_FILE
from keepsaid.app.locations import folders_of, stores_of
from keepsaid.config import Config, Home
from keepsaid.errors import HomeBusy, KeepsaidError, LogLost, StoreError, StoreUnpaired


def store_version() -> str:
    """The version of SQLite in use; raises StoreError for one that can corrupt a database."""
    return library_version()


def held_by(home: Home) -> int | None:
    """The process that works in a home, 0 when it is not known which; None when nobody does."""
    return holder(home.lock_file)


@contextmanager
def alone(home: Home, config: Config) -> Iterator[bool]:
    """Hold the home's lock, if nobody else does; says whether."""
    lock = FileLock(home.lock_file, stores_of(home, config))
    try:
        lock.acquire()
    except HomeBusy:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def free_space(home: Home, config: Config) -> int:
    """Bytes that are free where the stores are, or will be."""
    return DiskSpace(*folders_of(home, config)).free_bytes()


def _files(home: Home, config: Config) -> list[tuple[Path, tuple[str, ...]]]:
    """The database files, buffer first, and the parts of the schema each holds."""
    buffer, memory = stores_of(home, config)
    if buffer.resolve() == memory.resolve():
        return [(buffer, ("buffer", "memory"))]
    return [(buffer, ("buffer",)), (memory, ("memory",))]


def pair_trouble(home: Home, config: Config) -> StoreError | None:
    """Why a start would refuse the two stores; None when they are a pair. A file that cannot be opened is none."""
    try:
        check_stores(*stores_of(home, config))
    except (StoreUnpaired, LogLost) as trouble:
        return trouble
    except StoreError:
        return None
    return None


def accept_stores(home: Home, config: Config) -> None:
    """Accept the stores as they are, whatever was lost. Needs the home's lock."""
    accept_loss(*stores_of(home, config))


async def integrity(home: Home, config: Config) -> list[Checkup | KeepsaidError]:
    """Every page of every database that is there, checked; a file that cannot be opened is its error."""
    found: list[Checkup | KeepsaidError] = []
    for path, parts in _files(home, config):
        if not path.exists():
            continue
        try:
            found.append(await examined(path, parts))
        except KeepsaidError as error:
            found.append(error)
    return found


async def deep_looks(home: Home, config: Config, *, mend: bool) -> list[DeepLook | KeepsaidError]:
    """Every row of every database that is there, against its hash and its neighbours; mending needs the home's lock."""
    found: list[DeepLook | KeepsaidError] = []
    for path, parts in _files(home, config):
        if not path.exists():
            continue
        try:
            found.append(await asyncio.to_thread(look_deep, path, parts, mend=mend))
        except KeepsaidError as error:
            found.append(error)
    return found


async def examined(path: Path, parts: Sequence[str]) -> Checkup:
    """One database file, checked; raises a StoreError when it is none of ours or cannot be opened."""
    return await asyncio.to_thread(examine, path, parts)


def beside_stores(home: Home) -> list[Path]:
    """The files of the data directory that a backup contains beside the databases."""
    return [file for file in (home.data / FENCE_FILE, home.data / ACCEPTED_FILE) if file.exists()]


async def copy_stores(home: Home, config: Config, folder: Path) -> list[Checkup]:
    """Verified copies of the databases in `folder`, the buffer first; memory may be ahead of it, never behind."""
    copied = []
    await asyncio.to_thread(check_stores, *stores_of(home, config))
    for path, parts in _files(home, config):
        if not path.exists():
            raise StoreError(f"there is no {path} yet", safe="Nothing was stored here so far.", hint="keepsaid chat")
        copied.append(await asyncio.to_thread(copy, path, folder / f"{parts[0]}.db", parts))
    return copied
