"""The memory store on SQLite: memories, their full text, and who may hear them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from keepsaid.adapters.sql.tombs import Tombs, tombs_beside
from keepsaid.adapters.sqlite import memory_text
from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.memory_aside import SqliteAside
from keepsaid.adapters.sqlite.memory_audit import SqliteAuditing
from keepsaid.adapters.sqlite.memory_bulletins import SqliteBulletins
from keepsaid.adapters.sqlite.memory_commits import KeepMemories, KeepVectors
from keepsaid.adapters.sqlite.memory_echoes import SqliteEchoes
from keepsaid.adapters.sqlite.memory_forgetting import SqliteForgetful
from keepsaid.adapters.sqlite.memory_graph import SqliteGraph, SqliteRelating
from keepsaid.adapters.sqlite.memory_learning import SPARE_IDS, Learn
from keepsaid.adapters.sqlite.memory_library import SqliteArchive, SqliteLibrary, SqliteReminding
from keepsaid.adapters.sqlite.memory_news import Noticing, SqliteNews
from keepsaid.adapters.sqlite.memory_people import SqliteHearing, SqlitePeople
from keepsaid.adapters.sqlite.memory_revisions import SqlitePairs, SqliteTruth
from keepsaid.adapters.sqlite.memory_rows import SQL, bound, memories, rows, without_secrets
from keepsaid.adapters.sqlite.memory_table import MEMORY_TABLE
from keepsaid.adapters.sqlite.memory_transfer import SqliteBundles
from keepsaid.adapters.sqlite.memory_upkeep import SqliteUpkeep
from keepsaid.adapters.sqlite.memory_vectors import VectorIndex, spaces, unembedded
from keepsaid.adapters.sqlite.migrate import look, migrate
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.adapters.sqlite.session import SqliteSession
from keepsaid.adapters.sqlite.writer import Ledger, Writer
from keepsaid.domain.learning import Learnt
from keepsaid.domain.memory import Found, Kind, Listener, Memory, NewMemory, Used
from keepsaid.domain.search import NewVector, Reached, Unembedded, VectorSpace
from keepsaid.ports.redactor import Redactor
from keepsaid.ports.runtime import Ids
from keepsaid.ports.store_views import Operations

_LOG_PAGES = 250
"""One memory that leaves the index changes a hundred pages: a longer log would hold up the writer when it is moved."""


class SqliteMemories(SqliteReminding):
    """Memories in one SQLite file; `writer` must know MEMORY_TABLE.

    `closing` are what `close` closes, in order: nothing where writer and readers belong to another store
    in the same file. With a `redactor` no secret it knows is ever written, whoever keeps the memory.
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
        writer = Noticing(writer)
        self._writer = writer
        self._readers = readers
        self._ids = ids
        self.news = SqliteNews(writer, readers)
        self._closing = closing
        self._redactor = redactor
        self._vectors = VectorIndex()
        self.library = SqliteLibrary(readers)
        self.graph = SqliteGraph(writer, readers, redactor)
        self.people = SqlitePeople(writer, readers, ids)
        self.hearing = SqliteHearing(writer, readers, redactor)
        self.bulletins = SqliteBulletins(readers)
        self.truth = SqliteTruth(writer, readers, ids, redactor)
        self.archive = SqliteArchive(readers)
        self.relating = SqliteRelating(readers)
        self.pairs = SqlitePairs(writer, readers)
        self.auditing = SqliteAuditing(readers)
        self.upkeep = SqliteUpkeep(writer, readers)
        tombs = tombs or tombs_beside(readers.path)
        self.echoes = SqliteEchoes(writer, readers, tombs)
        self.forgetful = SqliteForgetful(writer, readers, tombs, self.echoes)
        self.bundles = SqliteBundles(writer, readers, ids, tombs, redactor)
        self.aside = SqliteAside(writer)

    async def keep(self, memories: Sequence[NewMemory], at: int, used: Sequence[Used] = ()) -> tuple[int, ...]:
        """Write memories, each under its key, and return their ids; 0 stands for one that was forgotten.

        What turns `used` is counted with them, each turn once.

        All of a call are kept or none. Raises a StoreError with nothing kept.
        """
        if not memories and not used:
            return ()
        memories = await without_secrets(self._redactor, memories)
        ids = tuple(self._ids.next() for _ in memories)
        return await self._writer.apply(KeepMemories(ids, tuple(memories), at, tuple(used)))

    async def learn(self, memories: Sequence[NewMemory], at: int) -> tuple[Learnt, ...]:
        """Learn memories, all of a call or none; says of each, in order, what became of it.

        Raises a StoreError with nothing learned.
        """
        if not memories:
            return ()
        memories = await without_secrets(self._redactor, memories)
        ids = tuple(self._ids.next() for _ in range(len(memories) * (1 + SPARE_IDS)))
        return await self._writer.apply(Learn(ids, tuple(memories), at))

    async def find(self, listener: Listener, kinds: Sequence[Kind], limit: int) -> Sequence[Memory]:
        """Active memories the listener may hear, newest first; no kinds means all."""
        return await self._readers.run(_find, listener, tuple(kinds), limit)

    async def get(self, listener: Listener, memory_id: int) -> Memory | None:
        """One memory in any state but forgotten, if the listener may hear it."""
        return await self._readers.run(_get, listener, memory_id)

    async def counts(self) -> dict[str, int]:
        """Active memories by kind."""
        return await self._readers.run(_counts)

    async def fetch(self, listener: Listener, ids: Sequence[int], as_of: int | None = None) -> Sequence[Memory]:
        """Those of the memories that are active or superseded and that the listener may hear, in the order given.

        With `as_of`, only what held true at that time (milliseconds UTC).
        """
        return await self._readers.run(_fetch, listener, tuple(ids), as_of)

    async def text(self, listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
        """The best full-text matches the listener may hear, active or superseded; any string is a legal query."""
        return await self._readers.run(memory_text.search, listener, query, limit)

    async def unembedded(self, space: VectorSpace, after: int, limit: int) -> Sequence[Unembedded]:
        """Pieces behind `after` that have no vector in the space, by id."""
        return await self._readers.run(unembedded, space, after, limit)

    async def keep_vectors(self, space: VectorSpace, vectors: Sequence[NewVector], at: int, reached: int = 0) -> int:
        """Write vectors; a piece that is gone, or has one, gets none. Returns how many were written.

        `reached` says that no piece up to this one is left without; when none is behind it, the space is filled.
        """
        return await self._writer.apply(KeepVectors(space, tuple(vectors), at, reached))

    async def spaces(self) -> Sequence[Reached]:
        """The spaces that have vectors and how far each is filled, the furthest first."""
        return await self._readers.run(spaces)

    async def nearest(self, listener: Listener, space: VectorSpace, query: bytes, limit: int) -> tuple[Found, ...]:
        """The memories nearest to a query that the listener may hear, and how much nearer than others they are."""
        return await self._readers.run(self._vectors.search, listener, space, query, limit)

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
    writer = Writer(Ledger(db, path, MEMORY_TABLE, _LOG_PAGES), "memory")
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


def _find(db: SqliteSession, listener: Listener, kinds: tuple[Kind, ...], limit: int) -> tuple[Memory, ...]:
    wanted: dict[str, Any] = {**bound(listener), "limit": max(0, limit)}
    if not kinds:
        return tuple(memories(db, SQL["find"], wanted))
    # one ordered walk of an index for each kind: a rare kind is not looked for among all memories
    found = [one for kind in set(kinds) for one in memories(db, SQL["find_kind"], {**wanted, "kind": kind})]
    found.sort(key=lambda one: (one.new.said_at, one.id), reverse=True)
    return tuple(found[: wanted["limit"]])


def _get(db: SqliteSession, listener: Listener, memory_id: int) -> Memory | None:
    return next(iter(memories(db, SQL["get"], {**bound(listener), "id": memory_id})), None)


def _fetch(db: SqliteSession, listener: Listener, ids: tuple[int, ...], as_of: int | None) -> tuple[Memory, ...]:
    wanted = {**bound(listener), "ids": json.dumps(ids), "as_of": as_of}
    return tuple(memories(db, SQL["fetch"], wanted))


def _counts(db: SqliteSession) -> dict[str, int]:
    return {str(kind): int(count) for kind, count in rows(db, "counts", {})}
