"""The pair of stores: whether a buffer and a memory store belong together and neither was lost, before either is used.

Each store has a random identity, made with it, and the buffer holds that of its memory store. An identity is compared
only where both are known: a pair of version 1, or one whose making was cut short, is joined at its next start.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from keepsaid.adapters.sql.query import load, only
from keepsaid.adapters.sqlite.connection import open_reader, open_writer, translated
from keepsaid.adapters.sqlite.migrate import look, migrate, version
from keepsaid.adapters.sqlite.progress import check_log, forget_progress
from keepsaid.errors import StoreError, StoreUnpaired

SQL = load("pair")
_OTHER: Mapping[str, str] = MappingProxyType({"buffer": "memory", "memory": "buffer"})
_HELD: Mapping[str, str] = MappingProxyType({"buffer": "messages", "memory": "memories"})


@dataclass(frozen=True, slots=True)
class Half:
    """One store of the pair, as a reader finds it.

    `schema` is 0 when the file is missing, empty or has no table of its part. `stored` tells whether anything was ever
    put into it, `memory` is the memory store that a buffer was joined with.
    """

    path: Path
    part: str
    schema: int = 0
    is_other: bool = False
    stored: bool = False
    id: bytes | None = None
    memory: bytes | None = None
    is_readable: bool = True


def check_pair(buffer: Path, memory: Path) -> bool:
    """Whether the two files are a joined pair; False when they are new or have to be joined first.

    Raises StoreUnpaired when one is missing, empty, exchanged or of another home, LogLost when a log is lost.
    """
    halves = _inspected(buffer, "buffer"), _inspected(memory, "memory")
    if not all(half.is_readable for half in halves):
        return True
    _check_parts(*halves)
    for half in halves:
        if half.schema:
            with closing(open_reader(half.path)) as db, translated(half.path):
                check_log(db, half.path)
        elif half.path.exists():
            check_log(None, half.path)
    first, second = halves
    for lost, left in ((first, second), (second, first)):
        if not lost.schema and left.stored:
            state = "holds nothing" if lost.path.exists() else "is missing"
            raise StoreUnpaired(f"{lost.path} {state}, and {left.path} holds {_HELD[left.part]} that belong to it")
    is_joined = first.memory is not None and first.memory == second.id
    if first.memory is not None and not is_joined and (first.stored or second.stored):
        raise StoreUnpaired(f"{memory} does not belong to {buffer}: it is of another home, or of another time")
    return is_joined


def join_pair(buffer: Path, memory: Path) -> None:
    """Join the two stores, unless they are a joined pair."""
    if not check_pair(buffer, memory):
        join(buffer, memory)


def join(buffer: Path, memory: Path) -> None:
    """Make or migrate both stores, and let the buffer name the memory store. Safe to repeat after a crash."""
    for path, part in ((buffer, "buffer"), (memory, "memory")):
        look(path, (part,))
    with closing(open_writer(buffer)) as first:
        migrate(first, buffer, "buffer")
        with closing(open_writer(memory)) as second:
            migrate(second, memory, "memory")
            with translated(memory):
                found = only(second, SQL["mark"])[0]
        with translated(buffer):
            first.execute(SQL["join"], (found,))


def accept_loss(buffer: Path, memory: Path) -> None:
    """Accept both files as they are: create a missing one, empty, and join the two."""
    for path in (buffer, memory):
        forget_progress(path)
    if buffer.resolve() != memory.resolve():
        join(buffer, memory)


def _inspected(path: Path, part: str) -> Half:
    if not path.exists() or not path.stat().st_size:
        return Half(path, part)
    try:
        db = open_reader(path)
    except StoreError as error:
        if type(error) is not StoreError:
            raise
        return Half(path, part, is_readable=False)  # it needs repair first, which reading cannot do
    with closing(db), translated(path):
        schema = version(db, part)
        if not schema:
            return Half(path, part, is_other=version(db, _OTHER[part]) > 0)
        known = db.table_exists("main", "store_mark")
        store, named = only(db, SQL["mark"]) if known else (None, None)
        return Half(path, part, schema, False, bool(only(db, SQL[f"stored_{part}"])[0]), store, named)


def _check_parts(buffer: Half, memory: Half) -> None:
    if buffer.is_other and memory.is_other:
        raise StoreUnpaired(
            f"{buffer.path} holds memories and {memory.path} holds messages: the two were exchanged",
            hint="exchange the two files, or the settings buffer.path and memory.path",
        )
    for half in (buffer, memory):
        if half.is_other:
            raise StoreUnpaired(
                f"{half.path} holds {_HELD[_OTHER[half.part]]}, but it is the file of {half.part}.path",
                hint=f"put the right file there, or change the setting {half.part}.path",
            )
