"""The memory store with its search index: full text and vectors, whatever database holds them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from keepsaid.adapters.sql.memory.commits import KeepVectors
from keepsaid.adapters.sql.memory.rows import MemoryParts
from keepsaid.adapters.sql.memory.store import MEMORY_COMMITS, SqlMemories
from keepsaid.adapters.sql.query import CommitTable, reads, writes
from keepsaid.adapters.sql.search import full_text, piece_index, vector_index, word_blocks
from keepsaid.domain.memory import Found, Listener, VectorSpace

MEMORY_TABLE = MEMORY_COMMITS | CommitTable(
    {KeepVectors: vector_index.keep_vectors}, {}, (piece_index.settled, vector_index.pack, word_blocks.pack_words)
)
"""For a writer of memory; join it with the operational commits where one database holds both stores."""


class SearchedMemories(SqlMemories):
    """Memories in any database; the writer must know MEMORY_TABLE, `closing` closes in order what was opened for it."""

    def __init__(
        self,
        parts: MemoryParts,
        closing: Sequence[Callable[[], Awaitable[None]]] = (),
        vectors: vector_index.VectorIndex | None = None,
    ) -> None:
        super().__init__(parts)
        self._closing = closing
        self._vectors = vectors or vector_index.VectorIndex()

    text = reads(full_text.search)
    read_document_frequencies = reads(full_text.read_document_frequencies)
    unembedded = reads(vector_index.unembedded)
    keep_vectors = writes(KeepVectors)
    spaces = reads(vector_index.spaces)

    async def nearest(self, listener: Listener, space: VectorSpace, query: bytes, limit: int) -> tuple[Found, ...]:
        return await self._readers.run(self._vectors.search, listener, space, query, limit)

    async def close(self) -> None:
        """Stop what this store started; what it was given stays open."""
        for close in self._closing:
            await close()
