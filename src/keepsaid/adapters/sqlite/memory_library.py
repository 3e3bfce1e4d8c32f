"""The library of memory: what fits a narrower search, and what was said around a memory."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from keepsaid.adapters.sqlite.memory_rows import bound, memories, statements, storable
from keepsaid.adapters.sqlite.query import every
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.domain.memory import Kind, Listener, Memory
from keepsaid.domain.search import Narrowing

SQL = statements("memory_library")


class SqliteLibrary:
    """Memories, read closely."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def narrowed(self, listener: Listener, ids: Sequence[int], to: Narrowing) -> Sequence[int]:
        """Those of the memories that the listener may hear and that fit, in the order given; of any person."""
        return await self._readers.run(_narrowed, listener, tuple(ids), to)

    async def sources(self, listener: Listener, memory: Memory, limit: int) -> Sequence[Memory]:
        """The episodes a memory was made from, as far as they are heard; an episode is its own source."""
        return await self._readers.run(_sources, listener, memory, limit)

    async def around(self, listener: Listener, memory: Memory, each: int) -> Sequence[Memory]:
        """An episode between its neighbours in its lane, as far as they are heard."""
        return await self._readers.run(_around, listener, memory, each)


def _narrowed(db: apsw.Connection, listener: Listener, ids: tuple[int, ...], to: Narrowing) -> Sequence[int]:
    limits = {"kind": to.kind, "since": to.since, "until": to.until, "as_of": to.as_of}
    return [row[0] for row in every(db, SQL["narrowed"], {**bound(listener), **limits, "ids": json.dumps(ids)})]


def _sources(db: apsw.Connection, listener: Listener, of: Memory, limit: int) -> Sequence[Memory]:
    keys = [of.new.key] if of.new.kind is Kind.EPISODE else [f"{one.kind}:{one.ref}" for one in of.new.sources]
    wanted = {"keys": json.dumps([storable(key) for key in keys]), "limit": max(0, limit)}
    return memories(db, SQL["sources"], {**bound(listener), **wanted})


def _around(db: apsw.Connection, listener: Listener, of: Memory, each: int) -> Sequence[Memory]:
    if of.new.lane is None or of.new.kind is not Kind.EPISODE:
        return []
    names = ("of_channel", "of_account", "of_conversation", "of_key")
    place = dict(zip(names, map(storable, of.new.lane), strict=True))
    wanted = {**place, "said_at": of.new.said_at, "id": of.id, "each": max(0, each)}
    return memories(db, SQL["around"], {**bound(listener), **wanted})
