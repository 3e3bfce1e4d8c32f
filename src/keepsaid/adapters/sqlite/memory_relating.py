"""Memories that are to be associated: learned ones, with their vectors and the episodes they came from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import apsw

from keepsaid.adapters.sqlite.memory_rows import space_names
from keepsaid.adapters.sqlite.query import every, only
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.memory import IMPORTANCE
from keepsaid.domain.search import VectorSpace
from keepsaid.ports.memory_maintenance import Unrelated

SQL = load("memory_relating")
_KINDS = json.dumps(list(IMPORTANCE))


class SqliteRelating:
    """What is to be associated in one SQLite file, read only."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def related_upto(self) -> int:
        """The newest memory that was found to be related to an older one; 0 for none."""
        return await self._readers.run(lambda db: int(only(db, SQL["related_upto"])[0]))

    async def unrelated(self, space: VectorSpace, after: int, limit: int) -> Sequence[Unrelated]:
        """Learned memories that hold, behind this one, by id, up to the first that still waits for its vector."""
        return await self._readers.run(_unrelated, space, after, limit)

    async def among_learned(self, ids: Sequence[int]) -> Sequence[int]:
        """Those of the memories that are learned ones and hold, in the order given."""
        return await self._readers.run(_among_learned, tuple(ids))


def _unrelated(db: apsw.Connection, space: VectorSpace, after: int, limit: int) -> tuple[Unrelated, ...]:
    import numpy as np  # noqa: PLC0415 - a program that associates nothing starts without

    wanted = {**space_names(space), "after": after, "limit": limit, "kinds": _KINDS}
    rows: list[tuple[Any, ...]] = every(db, SQL["unrelated"], wanted)
    found: list[Unrelated] = []
    for memory_id, short, episodes in rows:
        if short is None:
            break
        vector = np.frombuffer(short, np.float16).astype(np.float32).tobytes()
        found.append(Unrelated(memory_id, vector, tuple(json.loads(episodes))))
    return tuple(found)


def _among_learned(db: apsw.Connection, ids: tuple[int, ...]) -> tuple[int, ...]:
    found = every(db, SQL["among_learned"], {"ids": json.dumps(ids), "kinds": _KINDS})
    return tuple(int(str(row[0])) for row in found)
