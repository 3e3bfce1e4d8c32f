"""The archive: memories that left the index, looked through one by one when somebody asks for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import apsw

from keepsaid.adapters.sqlite.memory_rows import bound, memories, statements
from keepsaid.adapters.sqlite.query import every
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.domain.memory import Found, Listener, Memory
from keepsaid.text.words import root, spelled, topic

SQL = statements("memory_archive")


class SqliteArchive:
    """The archived memories in one SQLite file, read only."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def text(self, listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
        """Those the listener may hear that share most words with a query, the newest first among equals."""
        return await self._readers.run(_search, listener, query, limit)

    async def fetch(self, listener: Listener, ids: Sequence[int], as_of: int | None = None) -> Sequence[Memory]:
        """Those of the memories that are archived and that the listener may hear, in the order given.

        With `as_of`, only what held true at that time (milliseconds UTC).
        """
        return await self._readers.run(_fetch, listener, tuple(ids), as_of)


def _search(db: apsw.Connection, listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
    stems = sorted({stem.removesuffix("i") or stem for stem in topic(query) or map(root, spelled(query))})
    wanted = {**bound(listener), "stems": json.dumps(stems, ensure_ascii=False), "limit": max(0, limit)}
    rows: list[tuple[Any, ...]] = every(db, SQL["archived"], wanted)
    return tuple(Found(id_, shared / len(stems)) for id_, shared in rows)


def _fetch(db: apsw.Connection, listener: Listener, ids: tuple[int, ...], as_of: int | None) -> tuple[Memory, ...]:
    wanted = {**bound(listener), "ids": json.dumps(ids), "as_of": as_of}
    return tuple(memories(db, SQL["fetch"], wanted))
