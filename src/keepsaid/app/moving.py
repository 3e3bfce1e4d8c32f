"""Moving the stores of a home: copied while others work there, and switched once nobody does.

A kill at any point leaves the home with the stores that it had, or with those that it has now, and the same command
goes on. Each step is on record in both places, see adapters/sql/marks.py.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from keepsaid.adapters.sql.marks import COPIED, MOVED, MOVING
from keepsaid.adapters.sql.moving import MovableStores, MovedRows, compare_stores, copy_stores
from keepsaid.app.store_place import place_of
from keepsaid.app.stores import reapply_forgetting, try_lock_home
from keepsaid.config import Config, Home
from keepsaid.errors import StoreError
from keepsaid.values import frozen

_SAFE = "Nothing was changed."


@frozen
class MoveOrder:
    """Where to: `wanted` are the settings that say it, `switch` writes them; `report` hears what is done meanwhile."""

    wanted: Config
    switch: Callable[[], None]
    at: int
    report: Callable[[str], object] = str


@frozen
class StoresMoved:
    """What was copied, and who still worked with the stores, so that nothing was switched.

    `former` names the place that they were in, `kept` are its files by their names of now.
    """

    tables: Sequence[MovedRows]
    working: Sequence[str] = ()
    former: str = ""
    kept: Sequence[Path] = ()


async def move_stores(home: Home, config: Config, order: MoveOrder) -> StoresMoved:
    """Move the stores of a home to where other settings say that they are.

    While others work with the stores, they are copied and not switched: the next call copies what changed since.
    Raises StoreError, with the stores in use as they were.
    """
    former, place = place_of(home, config), place_of(home, order.wanted)
    if former == place:
        raise StoreError(f"the stores are in {place.movable} already", safe=_SAFE, hint="keepsaid status")
    source, target = former.movable, place.movable
    await asyncio.to_thread(_check, source, target)
    if not source.mark():
        await reapply_forgetting(home, config)
    with try_lock_home(home, config) as is_alone:
        moved = await asyncio.to_thread(_moved, source, target, is_alone, order)
    if moved.working:
        return moved
    return StoresMoved(moved.tables, (), str(source), _renamed(former.files, order.at))


def _check(source: MovableStores, target: MovableStores) -> None:
    mark, theirs = source.mark(), target.mark()
    if mark == MOVING or (mark == MOVED and theirs != COPIED):
        what = f"{source} does not hold the stores in use: " + (
            "they were never all moved there" if mark == MOVING else "they were moved elsewhere"
        )
        raise StoreError(what, safe=_SAFE, hint="keepsaid config get store.url; set it to where they are")
    if not mark and source.is_empty():
        raise StoreError(f"nothing was stored in {source} so far", safe=_SAFE, hint="keepsaid config set store.url URL")
    if not theirs and not target.is_empty():
        raise StoreError(f"{target} holds messages or memories already", safe=_SAFE, hint="choose an empty database")


def _moved(source: MovableStores, target: MovableStores, is_alone: bool, order: MoveOrder) -> StoresMoved:
    at, report = order.at, order.report
    if is_alone:
        source.prepare()
    target.prepare()
    working = source.working() if is_alone else ("another process of this home", *source.working())
    with ExitStack() as held:
        if not working:
            held.enter_context(source.held())
            if working := source.working():
                held.close()
        if source.mark() != MOVED:
            target.set_mark(MOVING, at)
        copied = copy_stores(source, target, lambda table: report(f"copying {table}"))
        if working:
            return StoresMoved(copied, working)
        compared = compare_stores(source, target, lambda table: report(f"comparing {table}"))
        target.set_mark(COPIED, at)
        source.set_mark(MOVED, at)
        with ExitStack() as undo:
            undo.callback(source.set_mark, "", at)
            order.switch()
            undo.pop_all()
        target.set_mark("", at)
        return StoresMoved(compared)


def _renamed(files: Sequence[Path], at: int) -> list[Path]:
    """Give files of stores that were moved the names of copies, which receipts of forgetting list."""
    kept = []
    suffix = f".moved-{time.strftime('%Y-%m-%dT%H%M%SZ', time.gmtime(at / 1_000))}.bak"
    for path in dict.fromkeys(one.resolve() for one in files):
        copy = path.with_name(path.name + suffix)
        path.rename(copy)
        if (log := path.with_name(f"{path.name}-wal")).exists() and log.stat().st_size:
            log.rename(copy.with_name(f"{copy.name}-wal"))
        for ending in ("-wal", "-shm", "-progress"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        kept.append(copy)
    return kept
