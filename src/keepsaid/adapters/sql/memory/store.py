"""The memory store, whatever database holds it: every write by its commit, every read by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from keepsaid.adapters.sql.commit_table import CommitTable, emptied
from keepsaid.adapters.sql.memory import forgetting, library, people, revisions, undo_log
from keepsaid.adapters.sql.memory.commits import KeepMemories, keep
from keepsaid.adapters.sql.memory.echoes import SqlEchoes
from keepsaid.adapters.sql.memory.graph import Relate, SqlGraph, SqlRelating, relate
from keepsaid.adapters.sql.memory.learning import SPARE_IDS, Learn, learn
from keepsaid.adapters.sql.memory.news import NotifyingWriter, SqlNews, drop
from keepsaid.adapters.sql.memory.rows import SQL, bound, memories, rows, without_secrets
from keepsaid.adapters.sql.memory.transfer import SqlBundles, take
from keepsaid.adapters.sql.memory.upkeep import SqlUpkeep, maintain
from keepsaid.adapters.sql.query import SqlView, reads
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
        JoinPeople: people.join,
        SplitPerson: people.split,
        ShareMemory: people.share,
        forgetting.HideMemories: forgetting.hide,
        forgetting.EraseMemories: forgetting.erase,
        undo_log.PutBackMemories: undo_log.put_back_memories,
        undo_log.DropMemoryUndo: undo_log.drop_memory_undo,
        EmptyLog: emptied,
        Learn: learn,
        revisions.Correct: revisions.correct,
        revisions.Pin: revisions.pin,
        revisions.Confirm: revisions.confirm,
        revisions.Merge: revisions.merge,
        revisions.ArchiveMemories: revisions.archive,
        TakeIn: take,
        RulePairs: revisions.rule,
        DropNews: drop,
    },
    sets={KeepMemories: keep},
)
"""Each database adds what it keeps vectors by, and the upkeep of its indexes."""


def _important(db: SqlSession, listener: Listener, kind: Kind, limit: int) -> Sequence[Memory]:
    return tuple(memories(db, SQL["find_important"], {**bound(listener), "kind": kind, "limit": max(0, limit)}))


def _get(db: SqlSession, listener: Listener, memory_id: int) -> Memory | None:
    return next(iter(memories(db, SQL["get"], {**bound(listener), "id": memory_id})), None)


def _counts(db: SqlSession) -> dict[str, int]:
    return {str(kind): int(count) for kind, count in rows(db, "counts", {})}


def _find(db: SqlSession, listener: Listener, kinds: Sequence[Kind], limit: int) -> Sequence[Memory]:
    bindings: dict[str, Any] = {**bound(listener), "limit": max(0, limit)}
    if not kinds:
        return tuple(memories(db, SQL["find"], bindings))
    # one ordered walk of an index for each kind: a rare kind is not looked for among all memories
    found = [one for kind in set(kinds) for one in memories(db, SQL["find_kind"], {**bindings, "kind": kind})]
    found.sort(key=lambda one: (one.new.said_at, one.id), reverse=True)
    return tuple(found[: bindings["limit"]])


def _fetch(db: SqlSession, listener: Listener, ids: Sequence[int], as_of: int | None = None) -> Sequence[Memory]:
    return tuple(memories(db, SQL["fetch"], {**bound(listener), "ids": json.dumps(list(ids)), "as_of": as_of}))


class SqlMemories(SqlView):
    """Memories in one database; with a `redactor`, no secret it knows is ever written."""

    def __init__(
        self, writer: Operations, readers: SqlReaders, ids: Ids, redactor: Redactor | None, keyring: TombstoneKeyring
    ) -> None:
        super().__init__(readers)
        writer = NotifyingWriter(writer)
        self._writer = writer
        self._ids = ids
        self._redactor = redactor
        self.news = SqlNews(writer, readers)
        self.library = library.SqlLibrary(readers)
        self.graph = SqlGraph(writer, readers, redactor)
        self.people = people.SqlPeople(writer, readers, ids)
        self.sharing = people.SqlSharing(writer, readers, redactor)
        self.bulletins = library.SqlBulletins(readers)
        self.revisions = revisions.SqlRevisions(writer, readers, ids, redactor)
        self.archive = library.SqlArchive(readers)
        self.relating = SqlRelating(readers)
        self.pairs = revisions.SqlPairs(writer, readers)
        self.auditing = library.SqlAuditing(readers)
        self.upkeep = SqlUpkeep(writer, readers)
        self.echoes = SqlEchoes(writer, readers, keyring)
        self.forgetful = forgetting.SqlForgetful(writer, readers, keyring, self.echoes)
        self.bundles = SqlBundles(writer, readers, ids, keyring, redactor)
        self.undo_log = undo_log.SqlUndoLog(writer)

    important = reads(_important)
    alike = reads(library.alike)
    find = reads(_find)
    get = reads(_get)
    fetch = reads(_fetch)
    counts = reads(_counts)

    async def keep(self, memories: Sequence[NewMemory], at: int, used: Sequence[Used] = ()) -> tuple[int, ...]:
        """The id of a memory that was forgotten is 0."""
        if not memories and not used:
            return ()
        memories = await without_secrets(self._redactor, memories)
        ids = tuple(self._ids.next() for _ in memories)
        return await self._writer.apply(KeepMemories(ids, tuple(memories), at, tuple(used)))

    async def learn(self, memories: Sequence[NewMemory], at: int) -> tuple[LearnResult, ...]:
        if not memories:
            return ()
        memories = await without_secrets(self._redactor, memories)
        ids = tuple(self._ids.next() for _ in range(len(memories) * (1 + SPARE_IDS)))
        return await self._writer.apply(Learn(ids, tuple(memories), at))
