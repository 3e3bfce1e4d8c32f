"""A strike: the real store lives on a medium until its power goes, and what is left is judged and kept for the next."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from itertools import count
from pathlib import Path
from random import Random

import apsw

from keepsaid.adapters.sql.operations.queries import buffer_commits
from keepsaid.adapters.sql.query import CommitTable
from keepsaid.adapters.sql.tombstones import open_keyring
from keepsaid.adapters.sqlite.connection import Readers, SqliteSession
from keepsaid.adapters.sqlite.stores import SqliteOperations, start
from keepsaid.adapters.sqlite.writer import progress_of
from keepsaid.errors import KeepsaidError
from keepsaid.values import frozen
from keepsaid_testkit.power.book import Book
from keepsaid_testkit.power.judge import Finding, judge
from keepsaid_testkit.power.layer import laid
from keepsaid_testkit.power.load import Load, WaveGate
from keepsaid_testkit.power.medium import Medium

_STORE = "buffer.db"
_HOME, _LEFT, _JUDGED = "home", "left", "judged"
_FOLD_EVERY = 16


class Mode(StrEnum):
    """How commits reach the disk."""

    FULL = "full"
    NORMAL = "normal"
    LYING = "lying"


@frozen
class PowerPlay:
    """The life of one store over all its cuts: its mode, its book, and the chance that decides everything."""

    mode: Mode
    book: Book
    chance: Random


async def strike(folder: Path, last: int, play: PowerPlay) -> Finding:
    """Let the store in `folder` live until the change of its disk with number `last`; judge a copy of what is left."""
    home = folder / _HOME
    home.mkdir(exist_ok=True)
    medium = Medium(last, honest=play.mode is not Mode.LYING)
    former = progress_left(home / _STORE)
    while not medium.dead():
        await _life(home, medium, play)
    latest = progress_left(home / _STORE)
    _leave(folder, medium, play.chance)
    if play.mode is Mode.FULL:
        leave_progress(home / _STORE, (former, latest), play.chance)
    judged = _emptied(folder / _JUDGED)
    shutil.copytree(home, judged, dirs_exist_ok=True)
    return await judge(judged / _STORE, play.book)


def sweep(folder: Path) -> None:
    """Remove what `strike` left in a folder."""
    for name in (_HOME, _LEFT, _JUDGED):
        shutil.rmtree(folder / name, ignore_errors=True)


def progress_left(store: Path) -> bytes:
    """The progress file of a store as it is now; nothing when there is none."""
    file = progress_of(store)
    return file.read_bytes() if file.exists() else b""


def leave_progress(store: Path, states: tuple[bytes, bytes], chance: Random) -> None:
    """Leave the progress file, which is never synced: as it was last or before, torn, empty or not at all."""
    former, latest = states
    at = chance.randrange(len(latest) + 1)
    left = chance.choice([latest, latest, former, former[:at] + latest[at:], latest[:at], None])
    if left is not None:
        progress_of(store).write_bytes(left)


async def _life(home: Path, medium: Medium, play: PowerPlay) -> None:
    """Open the store, load it and close it; the power may go at any moment of that."""
    gate = WaveGate()
    try:
        with laid(home, medium):
            writer = await start(home / _STORE, ("buffer",), _table(play.mode, gate))
    except (KeepsaidError, apsw.Error):
        if not medium.dead():
            raise
        return
    store = SqliteOperations(writer, Readers(home / _STORE), writer)
    try:
        await Load(store, gate, play.book, play.chance).run(play.chance.randint(10, 150))
    finally:
        gate.open()
        await store.close()


def _table(mode: Mode, gate: WaveGate) -> Callable[[SqliteSession], CommitTable]:
    """The commits of the store; the writer waits at the gate after each group, and folds keys more often."""
    groups = count(1)

    def table(db: SqliteSession) -> CommitTable:
        if mode is Mode.NORMAL:
            db.pragma("synchronous", "normal")
        commits = buffer_commits(db, open_keyring(Path(db.filename)))

        def keep_up(db: SqliteSession, finish: bool) -> None:
            if not finish:
                gate.wait()
            for keep in commits.upkeep:
                keep(db, finish or next(groups) % _FOLD_EVERY == 0)

        return replace(commits, upkeep=(keep_up,))

    return table


def _leave(folder: Path, medium: Medium, chance: Random) -> None:
    """Put what the cut left in the place of the home; the index of the log, never synced, is whatever it was."""
    home, left = folder / _HOME, _emptied(folder / _LEFT)
    medium.leave(left, chance)
    index = home / f"{_STORE}-shm"
    if index.exists() and chance.random() < 0.5:
        shutil.copyfile(index, left / index.name)
    shutil.rmtree(home)
    left.rename(home)


def _emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder
