"""The files that hold both stores of a home: how they are opened, read, checked and moved."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

from keepsaid.adapters.sql.operations.chronicle import SqlChronicles
from keepsaid.adapters.sql.operations.store import SqlOperations
from keepsaid.adapters.sql.search.memories import SearchedMemories
from keepsaid.adapters.sqlite.moving import MovableFiles
from keepsaid.adapters.sqlite.stores import check_stores, lacks_tombstones, open_stores, read_stores
from keepsaid.ports import runtime
from keepsaid.values import frozen


@frozen
class SqliteStores:
    """Both stores in two files, or in one."""

    buffer: Path
    memory: Path

    def __str__(self) -> str:
        return ", ".join(dict.fromkeys(map(str, self.files)))

    @property
    def files(self) -> tuple[Path, ...]:
        return self.buffer, self.memory

    def exists(self) -> bool:
        return self.buffer.exists() or self.memory.exists()

    def check(self) -> None:
        check_stores(self.buffer, self.memory)

    def describe(self) -> str:
        return ""

    @property
    def movable(self) -> MovableFiles:
        return MovableFiles(self.buffer, self.memory)

    def lacks_tombstones(self) -> bool:
        return lacks_tombstones(self.buffer, self.memory)

    async def meet(self, closing: AsyncExitStack) -> None:
        """Meet nobody: one process at a time works with files."""
        del closing

    async def open(
        self, ids: runtime.Ids, closing: AsyncExitStack, redactor: runtime.Redactor | None = None
    ) -> tuple[SqlOperations, SearchedMemories]:
        return await open_stores(self.buffer, self.memory, ids, closing, redactor)

    async def read(self, ids: runtime.Ids, closing: AsyncExitStack) -> tuple[SqlChronicles, SearchedMemories]:
        return await read_stores(self.buffer, self.memory, ids, closing)
