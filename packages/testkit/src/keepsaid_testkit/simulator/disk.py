"""Disks: the stores of a simulated machine, without threads; what they hold outlives the process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keepsaid.adapters.sql.query import every
from keepsaid.adapters.sqlite.inline import (
    InlineReaders,
    InlineWriter,
    InMemoryDatabase,
    InMemoryOperations,
    buffer_inline,
    memory_inline,
)
from keepsaid.adapters.sqlite.stores import SqliteMemories, SqliteOperations
from keepsaid.ports.runtime import Ids
from keepsaid.ports.store import Store
from keepsaid_testkit.simulator.strands import Executed

_ROOM_BYTES = 1 << 40
_EXECUTED = Path(__file__).with_suffix(".sql").read_text("utf-8")


class Roomy:
    """Space that is never short: how full the disk of whoever plays is must not change a play."""

    def free_bytes(self) -> int:
        """Enough."""
        return _ROOM_BYTES


class InMemoryDisk:
    """The operational store in memory."""

    def __init__(self) -> None:
        self._database = InMemoryDatabase()

    def open(self) -> Store:
        """The store, for one more process."""
        return InMemoryOperations(self._database)

    async def executed(self) -> Sequence[Executed]:
        """The commands in the journal."""
        return [(str(turn), str(name)) for turn, name in self._database.rows(_EXECUTED)]

    def drop(self, store: Store) -> None:
        """A process that had the store open is dead."""


class FileDisk:
    """The operational store in a file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "buffer.db"
        self._open: dict[int, tuple[InlineWriter, InlineReaders]] = {}

    def open(self) -> Store:
        """The store, for one more process."""
        writer, readers = buffer_inline(self._path)
        store = SqliteOperations(writer, readers)
        self._open[id(store)] = writer, readers
        return store

    async def executed(self) -> Sequence[Executed]:
        """The commands in the journal."""
        readers = InlineReaders(self._path)
        try:
            rows = await readers.run(every, _EXECUTED, ())
        finally:
            readers.drop()
        return [(str(turn), str(name)) for turn, name in rows]

    def drop(self, store: Store) -> None:
        """A process that had the store open is dead."""
        for part in self._open.pop(id(store), ()):
            part.drop()


Disk = InMemoryDisk | FileDisk


class MemoryStoreDisk:
    """The memory store, on SQLite in memory."""

    def __init__(self) -> None:
        self._parts = memory_inline()

    def open(self, ids: Ids) -> SqliteMemories:
        """The store, for one more process."""
        return SqliteMemories(*self._parts, ids)
