"""What injection asks of the memories, beside recall."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from keepsaid.adapters.sqlite import memory_alike, memory_text
from keepsaid.adapters.sqlite.memory_rows import SQL, bound, memories
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.domain.memory import Kind, Listener, Memory
from keepsaid.text.words import Rarity


class SqliteReminding:
    """Memories as injection looks at them, read only."""

    _readers: Readers

    async def important(self, listener: Listener, kind: Kind, limit: int) -> Sequence[Memory]:
        """Active memories of a kind the listener may hear, the most important first, then the newest; no episodes."""
        return await self._readers.run(_important, listener, kind, limit)

    async def rarity(self, text: str) -> Rarity:
        """In how many of all pieces the words of a text stand."""
        return await self._readers.run(memory_text.rarity, text)

    async def alike(self, ids: Sequence[int], above: float) -> tuple[tuple[int, int], ...]:
        """Pairs of these memories whose vectors have a cosine above `above`."""
        return await self._readers.run(memory_alike.alike, tuple(ids), above)


def _important(db: apsw.Connection, listener: Listener, kind: Kind, limit: int) -> tuple[Memory, ...]:
    wanted = {**bound(listener), "kind": kind, "limit": max(0, limit)}
    return tuple(memories(db, SQL["find_important"], wanted))
