"""The memory store on SQLite: searched by FTS5, blocks of words and vectors in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from keepsaid.adapters.sql.commit_table import CommitTable
from keepsaid.adapters.sql.memory.commits import KeepVectors
from keepsaid.adapters.sql.memory.store import SqlMemories
from keepsaid.adapters.sql.memory.table import MEMORY_COMMITS
from keepsaid.adapters.sql.tombs import Tombs, tombs_beside
from keepsaid.adapters.sqlite import full_text
from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.migrate import look, migrate
from keepsaid.adapters.sqlite.piece_index import settled
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.adapters.sqlite.session import SqliteSession
from keepsaid.adapters.sqlite.vector_index import (
    VectorIndex,
    keep_vectors,
    pack,
    spaces,
    unembedded,
)
from keepsaid.adapters.sqlite.word_blocks import pack_words
from keepsaid.adapters.sqlite.writer import TransactionExecutor, Writer
from keepsaid.domain.memory import Found, Listener, NewVector, Reached, Unembedded, VectorSpace
from keepsaid.ports.redactor import Redactor
from keepsaid.ports.runtime import Ids
from keepsaid.ports.store_views import Operations
from keepsaid.text.words import Rarity

MEMORY_TABLE = MEMORY_COMMITS | CommitTable({KeepVectors: keep_vectors}, {}, (settled, pack, pack_words))
"""For a ledger that writes memory; join it with the operational ones where one file holds both stores."""

_LOG_PAGES = 250
"""One memory that leaves the index changes a hundred pages: a longer log would hold up the writer when it is moved."""


class SqliteMemories(SqlMemories):
    """Memories in one SQLite file; `writer` must know MEMORY_TABLE.

    `closing` are what `close` closes, in order: nothing where writer and readers belong to another store
    in the same file.
    """

    def __init__(
        self,
        writer: Operations,
        readers: Readers,
        ids: Ids,
        closing: Sequence[Readers | Writer] = (),
        redactor: Redactor | None = None,
        tombs: Tombs | None = None,
    ) -> None:
        super().__init__(writer, readers, ids, redactor, tombs or tombs_beside(readers.path))
        self._file = readers
        self._closing = closing
        self._vectors = VectorIndex()

    async def text(self, listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
        """The best full-text matches the listener may hear, active or superseded; any string is a legal query."""
        return await self._file.run(full_text.search, listener, query, limit)

    async def unembedded(self, space: VectorSpace, after: int, limit: int) -> Sequence[Unembedded]:
        """Pieces behind `after` that have no vector in the space, by id."""
        return await self._file.run(unembedded, space, after, limit)

    async def keep_vectors(self, space: VectorSpace, vectors: Sequence[NewVector], at: int, reached: int = 0) -> int:
        """Write vectors; a piece that is gone, or has one, gets none. Returns how many were written.

        `reached` says that no piece up to this one is left without; when none is behind it, the space is filled.
        """
        return await self._writer.apply(KeepVectors(space, tuple(vectors), at, reached))

    async def spaces(self) -> Sequence[Reached]:
        """The spaces that have vectors and how far each is filled, the furthest first."""
        return await self._file.run(spaces)

    async def nearest(self, listener: Listener, space: VectorSpace, query: bytes, limit: int) -> tuple[Found, ...]:
        """The memories nearest to a query that the listener may hear, and how much nearer than others they are."""
        return await self._file.run(self._vectors.search, listener, space, query, limit)

    async def rarity(self, text: str) -> Rarity:
        """In how many of all pieces the words of a text stand."""
        return await self._file.run(full_text.rarity, text)

    async def close(self) -> None:
        """Stop what this store started; what it was given stays open."""
        for part in self._closing:
            await part.close()


async def open_memories(
    path: Path, ids: Ids, redactor: Redactor | None = None, tombs: Tombs | None = None
) -> SqliteMemories:
    """Open or create the memory store at `path`; raises a StoreError with the file untouched.

    `tombs` are those of its home, which stand beside the operational store; else beside this one.
    """
    db = await asyncio.to_thread(_open, path)
    if tombs is not None:
        db.attach(tombs)
    writer = Writer(TransactionExecutor(db, path, MEMORY_TABLE, _LOG_PAGES), "memory")
    readers = Readers(path)
    return SqliteMemories(writer, readers, ids, (readers, writer), redactor, tombs)


def _open(path: Path) -> SqliteSession:
    with ExitStack() as stack:
        look(path, ("memory",))
        db = open_writer(path)
        stack.callback(db.close)
        migrate(db, path, "memory")
        stack.pop_all()
        return db
