"""The library: memories under narrower filters, what was said around one, the archive, reminders for a turn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from keepsaid.adapters.sql.memory.rows import bound, memories, statements, storable
from keepsaid.adapters.sql.query import every, reads
from keepsaid.adapters.sql.session import SqlReaders, SqlSession
from keepsaid.domain.memory import Found, Kind, Listener, Memory, Narrowing
from keepsaid.text.words import root, spelled, topic

SQL = statements("memory_archive")


def _search(db: SqlSession, listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
    """Those the listener may hear that share most words with a query, the newest first among equals."""
    stems = sorted({stem.removesuffix("i") or stem for stem in topic(query) or map(root, spelled(query))})
    wanted = {**bound(listener), "stems": json.dumps(stems, ensure_ascii=False), "limit": max(0, limit)}
    rows: list[tuple[Any, ...]] = every(db, SQL["archived"], wanted)
    return tuple(Found(id_, shared / len(stems)) for id_, shared in rows)


class SqlArchive:
    """The archived memories, read only."""

    def __init__(self, readers: SqlReaders) -> None:
        self._readers = readers

    text = reads(_search)

    async def fetch(self, listener: Listener, ids: Sequence[int], as_of: int | None = None) -> Sequence[Memory]:
        """Those of the memories that are archived and that the listener may hear, in the order given.

        With `as_of`, only what held true at that time (milliseconds UTC).
        """
        return await self._readers.run(_fetch, listener, tuple(ids), as_of)


def _fetch(db: SqlSession, listener: Listener, ids: tuple[int, ...], as_of: int | None) -> tuple[Memory, ...]:
    wanted = {**bound(listener), "ids": json.dumps(ids), "as_of": as_of}
    return tuple(memories(db, SQL["fetch"], wanted))


LIBRARY = statements("memory_library")


def _sources(db: SqlSession, listener: Listener, memory: Memory, limit: int) -> Sequence[Memory]:
    """The episodes a memory was made from, as far as they are heard; an episode is its own source."""
    new = memory.new
    keys = [new.key] if new.kind is Kind.EPISODE else [f"{one.kind}:{one.ref}" for one in new.sources]
    wanted = {"keys": json.dumps([storable(key) for key in keys]), "limit": max(0, limit)}
    return memories(db, LIBRARY["sources"], {**bound(listener), **wanted})


def _around(db: SqlSession, listener: Listener, memory: Memory, each: int) -> Sequence[Memory]:
    """An episode between its neighbours in its lane, as far as they are heard."""
    if memory.new.lane is None or memory.new.kind is not Kind.EPISODE:
        return []
    names = ("of_channel", "of_account", "of_conversation", "of_key")
    place = dict(zip(names, map(storable, memory.new.lane), strict=True))
    wanted = {**place, "said_at": memory.new.said_at, "id": memory.id, "each": max(0, each)}
    return memories(db, LIBRARY["around"], {**bound(listener), **wanted})


class SqlLibrary:
    """Memories, read closely."""

    def __init__(self, readers: SqlReaders) -> None:
        self._readers = readers

    async def narrowed(self, listener: Listener, ids: Sequence[int], to: Narrowing) -> Sequence[int]:
        """Those of the memories that the listener may hear and that fit, in the order given; of any person."""
        return await self._readers.run(_narrowed, listener, tuple(ids), to)

    sources = reads(_sources)
    around = reads(_around)


def _narrowed(db: SqlSession, listener: Listener, ids: tuple[int, ...], to: Narrowing) -> Sequence[int]:
    limits = {"kind": to.kind, "since": to.since, "until": to.until, "as_of": to.as_of}
    return [row[0] for row in every(db, LIBRARY["narrowed"], {**bound(listener), **limits, "ids": json.dumps(ids)})]
