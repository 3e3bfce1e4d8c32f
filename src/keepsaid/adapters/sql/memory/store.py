"""The memory store, whatever database holds it: every write by its commit, every read by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from keepsaid.adapters.sql.commit_table import CommitTable, emptied
from keepsaid.adapters.sql.memory.commits import KeepMemories, keep
from keepsaid.adapters.sql.memory.echoes import SqlEchoes
from keepsaid.adapters.sql.memory.forgetting import EraseMemories, HideMemories, SqlForgetful, erase, hide
from keepsaid.adapters.sql.memory.graph import Relate, SqlGraph, SqlRelating, relate
from keepsaid.adapters.sql.memory.learning import SPARE_IDS, Learn, learn
from keepsaid.adapters.sql.memory.library import SqlArchive, SqlAuditing, SqlBulletins, SqlLibrary
from keepsaid.adapters.sql.memory.news import NotifyingWriter, SqlNews, drop
from keepsaid.adapters.sql.memory.people import SqlPeople, SqlSharing, join, share, split
from keepsaid.adapters.sql.memory.revisions import (
    ArchiveMemories,
    Confirm,
    Correct,
    Merge,
    Pin,
    SqlPairs,
    SqlRevisions,
    archive,
    confirm,
    correct,
    merge,
    pin,
    rule,
)
from keepsaid.adapters.sql.memory.rows import SQL, bound, memories, rows, without_secrets
from keepsaid.adapters.sql.memory.transfer import SqlBundles, take
from keepsaid.adapters.sql.memory.undo_log import (
    DropMemoryUndo,
    PutBackMemories,
    SqlUndoLog,
    drop_memory_undo,
    put_back_memories,
)
from keepsaid.adapters.sql.memory.upkeep import SqlUpkeep, maintain
from keepsaid.adapters.sql.query import reads
from keepsaid.adapters.sql.session import SqlReaders, SqlSession
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.domain.bundle import TakeIn
from keepsaid.domain.event import DropNews
from keepsaid.domain.forgetting import EmptyLog
from keepsaid.domain.learning import LearnResult, RulePairs
from keepsaid.domain.maintenance import Maintain
from keepsaid.domain.memory import Kind, Listener, Memory, NewMemory, Used
from keepsaid.domain.visibility import JoinPeople, ShareMemory, SplitPerson
from keepsaid.ports.redactor import Redactor
from keepsaid.ports.runtime import Ids
from keepsaid.ports.store_views import Operations

MEMORY_COMMITS = CommitTable(
    single={
        Relate: relate,
        Maintain: maintain,
        JoinPeople: join,
        SplitPerson: split,
        ShareMemory: share,
        HideMemories: hide,
        EraseMemories: erase,
        PutBackMemories: put_back_memories,
        DropMemoryUndo: drop_memory_undo,
        EmptyLog: emptied,
        Learn: learn,
        Correct: correct,
        Pin: pin,
        Confirm: confirm,
        Merge: merge,
        ArchiveMemories: archive,
        TakeIn: take,
        RulePairs: rule,
        DropNews: drop,
    },
    sets={KeepMemories: keep},
)
"""Each database adds what it keeps vectors by, and the upkeep of its indexes."""


def _important(db: SqlSession, listener: Listener, kind: Kind, limit: int) -> tuple[Memory, ...]:
    """Active memories of a kind the listener may hear, the most important first, then the newest; no episodes."""
    wanted = {**bound(listener), "kind": kind, "limit": max(0, limit)}
    return tuple(memories(db, SQL["find_important"], wanted))


def _get(db: SqlSession, listener: Listener, memory_id: int) -> Memory | None:
    """One memory in any state but forgotten, if the listener may hear it."""
    return next(iter(memories(db, SQL["get"], {**bound(listener), "id": memory_id})), None)


def _counts(db: SqlSession) -> dict[str, int]:
    """Active memories by kind."""
    return {str(kind): int(count) for kind, count in rows(db, "counts", {})}


class SqlMemories:
    """Memories in one database; `writer` must know MEMORY_TABLE.

    With a `redactor` no secret it knows is ever written, whoever keeps the memory.
    """

    def __init__(
        self, writer: Operations, readers: SqlReaders, ids: Ids, redactor: Redactor | None, tombs: TombstoneKeyring
    ) -> None:
        writer = NotifyingWriter(writer)
        self._writer = writer
        self._readers = readers
        self._ids = ids
        self._redactor = redactor
        self.news = SqlNews(writer, readers)
        self.library = SqlLibrary(readers)
        self.graph = SqlGraph(writer, readers, redactor)
        self.people = SqlPeople(writer, readers, ids)
        self.sharing = SqlSharing(writer, readers, redactor)
        self.bulletins = SqlBulletins(readers)
        self.revisions = SqlRevisions(writer, readers, ids, redactor)
        self.archive = SqlArchive(readers)
        self.relating = SqlRelating(readers)
        self.pairs = SqlPairs(writer, readers)
        self.auditing = SqlAuditing(readers)
        self.upkeep = SqlUpkeep(writer, readers)
        self.echoes = SqlEchoes(writer, readers, tombs)
        self.forgetful = SqlForgetful(writer, readers, tombs, self.echoes)
        self.bundles = SqlBundles(writer, readers, ids, tombs, redactor)
        self.undo_log = SqlUndoLog(writer)

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

    async def learn(self, memories: Sequence[NewMemory], at: int) -> tuple[LearnResult, ...]:
        """Learn memories, all of a call or none; says of each, in order, what became of it.

        Raises a StoreError with nothing learned.
        """
        if not memories:
            return ()
        memories = await without_secrets(self._redactor, memories)
        ids = tuple(self._ids.next() for _ in range(len(memories) * (1 + SPARE_IDS)))
        return await self._writer.apply(Learn(ids, tuple(memories), at))

    important = reads(_important)

    async def alike(self, ids: Sequence[int], above: float) -> tuple[tuple[int, int], ...]:
        """Pairs of these memories whose vectors have a cosine above `above`."""
        return await self._readers.run(_alike, tuple(ids), above)

    async def find(self, listener: Listener, kinds: Sequence[Kind], limit: int) -> Sequence[Memory]:
        """Active memories the listener may hear, newest first; no kinds means all."""
        return await self._readers.run(_find, listener, tuple(kinds), limit)

    get = reads(_get)
    counts = reads(_counts)

    async def fetch(self, listener: Listener, ids: Sequence[int], as_of: int | None = None) -> Sequence[Memory]:
        """Those of the memories that are active or superseded and that the listener may hear, in the order given.

        With `as_of`, only what held true at that time (milliseconds UTC).
        """
        return await self._readers.run(_fetch, listener, tuple(ids), as_of)


def _alike(db: SqlSession, ids: tuple[int, ...], above: float) -> tuple[tuple[int, int], ...]:
    return db.alike(ids, above)


def _find(db: SqlSession, listener: Listener, kinds: tuple[Kind, ...], limit: int) -> tuple[Memory, ...]:
    wanted: dict[str, Any] = {**bound(listener), "limit": max(0, limit)}
    if not kinds:
        return tuple(memories(db, SQL["find"], wanted))
    # one ordered walk of an index for each kind: a rare kind is not looked for among all memories
    found = [one for kind in set(kinds) for one in memories(db, SQL["find_kind"], {**wanted, "kind": kind})]
    found.sort(key=lambda one: (one.new.said_at, one.id), reverse=True)
    return tuple(found[: wanted["limit"]])


def _fetch(db: SqlSession, listener: Listener, ids: tuple[int, ...], as_of: int | None) -> tuple[Memory, ...]:
    wanted = {**bound(listener), "ids": json.dumps(ids), "as_of": as_of}
    return tuple(memories(db, SQL["fetch"], wanted))
