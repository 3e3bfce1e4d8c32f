"""The memory store, whatever database holds it: every write by its commit, every read by name, and its news."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from keepsaid.adapters.sql import query as sql
from keepsaid.adapters.sql.measured import MeasuredWriter
from keepsaid.adapters.sql.memory import entities, forgetting, graph, revisions, rows, transfer, upkeep
from keepsaid.adapters.sql.memory.bulletins import KeepBulletin, SqlBulletins, keep_bulletin
from keepsaid.adapters.sql.memory.commits import KeepMemories, KeepVectors, SqlEchoes, keep
from keepsaid.adapters.sql.memory.learning import SPARE_IDS, Learn, learn
from keepsaid.adapters.sql.memory.rows import SQL, MemoryAccess, MemoryParts, bound, memories, statements, storable
from keepsaid.adapters.sql.query import MemorySession, SqlView, T, as_json, column, every, load, only, reads
from keepsaid.domain import bundle, event, learning, maintenance, visibility
from keepsaid.domain.commits import Commit
from keepsaid.domain.entities import MergeEntities
from keepsaid.domain.forgetting import EmptyLog
from keepsaid.domain.memory import Found, Kind, Listener, Memory, Narrowing, NewMemory, Source, Used
from keepsaid.ports.runtime import Hint
from keepsaid.ports.store_views import Operations
from keepsaid.ports.telemetry import Doing, Telemetry
from keepsaid.text.topics import topic
from keepsaid.text.words import root, spelled

ARCHIVE = statements("memory_archive")


def _search(db: MemorySession, listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
    """Memories that share most words with a query, the newest first among equals."""
    stems = sorted({stem.removesuffix("i") or stem for stem in topic(query) or map(root, spelled(query))})
    bindings = {**bound(listener), "stems": as_json(stems), "limit": max(0, limit)}
    return tuple(Found(id_, shared / len(stems)) for id_, shared in every(db, ARCHIVE["archived"], bindings))


def _archived(db: MemorySession, listener: Listener, ids: Sequence[int], as_of: int | None = None) -> Sequence[Memory]:
    return tuple(memories(db, ARCHIVE["fetch"], {**bound(listener), "ids": as_json(ids), "as_of": as_of}))


class SqlArchive(SqlView):
    """The archived memories, read only."""

    text = reads(_search)
    fetch = reads(_archived)


LIBRARY = statements("memory_library")


def _narrowed(db: MemorySession, listener: Listener, ids: Sequence[int], to: Narrowing) -> Sequence[int]:
    limits = {"kind": to.kind, "since": to.since, "until": to.until, "as_of": to.as_of, "ids": as_json(ids)}
    return column(db, LIBRARY["narrowed"], {**bound(listener), **limits})


def _filling(db: MemorySession, listener: Listener, slots: Sequence[bytes], limit: int) -> Sequence[int]:
    bindings = {"slots": as_json(slot.hex() for slot in slots), "limit": max(0, limit)}
    return column(db, LIBRARY["filling"], {**bound(listener), **bindings})


def _keyed(db: MemorySession, listener: Listener, key: str) -> Sequence[Memory]:
    return memories(db, LIBRARY["sources"], {**bound(listener), "keys": as_json([storable(key)]), "limit": 1})


def _sources(db: MemorySession, listener: Listener, memory: Memory, limit: int) -> Sequence[Memory]:
    new = memory.new
    keys = [new.key] if new.kind is Kind.EPISODE else [f"{one.kind}:{one.ref}" for one in new.sources]
    bindings = {"keys": as_json(map(storable, keys)), "limit": max(0, limit)}
    return memories(db, LIBRARY["sources"], {**bound(listener), **bindings})


def _around(db: MemorySession, listener: Listener, memory: Memory, each: int) -> Sequence[Memory]:
    if memory.new.lane is None or memory.new.kind is not Kind.EPISODE:
        return []
    names = ("of_channel", "of_account", "of_conversation", "of_key")
    place = dict(zip(names, map(storable, memory.new.lane), strict=True))
    bindings = {**place, "said_at": memory.new.said_at, "id": memory.id, "each": max(0, each)}
    return memories(db, LIBRARY["around"], {**bound(listener), **bindings})


class SqlLibrary(SqlView):
    """Memories with their sources and neighbours, read only."""

    narrowed = reads(_narrowed)
    filling = reads(_filling)
    keyed = reads(_keyed)
    sources = reads(_sources)
    around = reads(_around)


_AUDIT_PARTS = load("memory_audit")
AUDIT = {name: sql.replace("/*entry*/", _AUDIT_PARTS["entry"]) for name, sql in _AUDIT_PARTS.items()}
_KINDS = as_json(sorted(learning.LEARNABLE))


def _learned(db: MemorySession, after: int, limit: int) -> Sequence[maintenance.AuditEntry]:
    return [_entry(row) for row in every(db, AUDIT["learned"], {"after": after, "limit": limit, "kinds": _KINDS})]


def _entries(db: MemorySession, ids: Sequence[int]) -> Sequence[maintenance.AuditEntry]:
    bindings = {"ids": as_json(sorted(set(ids))), "kinds": _KINDS}
    return [_entry(row) for row in every(db, AUDIT["entries"], bindings)]


def _entry(row: sql.Row) -> maintenance.AuditEntry:
    id_, text, scope, external, *rest, kept, learned, sources = row
    flags = (bool(kept), bool(learned), tuple(Source(*source) for source in json.loads(sources)))
    return maintenance.AuditEntry(*(id_, text, scope, bool(external), *rest, *flags))


def _texts(db: MemorySession, after: int, limit: int) -> Sequence[tuple[int, str]]:
    return [(id_, text) for id_, text in every(db, AUDIT["texts"], {"after": after, "limit": limit})]


def _loose(
    db: MemorySession, task: maintenance.UpkeepTask, after: int, limit: int
) -> tuple[int, tuple[int, ...]] | None:
    upto, _ = only(db, upkeep.LOOSE_SQL[task], (after, limit))
    return None if upto is None else (upto, tuple(row[0] for row in upkeep.loose_in(db, task, after, upto)))


def _withdrawn(db: MemorySession, at: int, limit: int) -> Sequence[int]:
    return column(db, upkeep.LOOSE_SQL["withdrawn"], (at, limit))


def alike(db: MemorySession, ids: Sequence[int], above: float) -> tuple[tuple[int, int], ...]:
    return db.alike(ids, above)


class SqlAuditing(SqlView):
    """All memories, for the owner's eyes; read only."""

    learned = reads(_learned)
    entries = reads(_entries)
    texts = reads(_texts)
    loose = reads(_loose)
    withdrawn = reads(_withdrawn)
    alike = reads(alike)


NEWS = load("memory_news")

_SPANS: Mapping[type, tuple[Doing, str]] = {
    KeepMemories: (Doing.CREATE_MEMORY, "memories"),
    Learn: (Doing.UPSERT_MEMORY, "memories"),
    revisions.Correct: (Doing.UPSERT_MEMORY, ""),
    forgetting.HideMemories: (Doing.DELETE_MEMORY, "ids"),
}
"""Commits that traces show, and the field of each that holds its records."""


class NotifyingWriter:
    """The writer of the memory store; sets `hint` after a commit that may have made news.

    Every commit may, except those that only add episodes or vectors or drop news. `changes` counts the
    commits that ended, kept or not.
    """

    def __init__(self, writer: Operations) -> None:
        self.hint = Hint()
        self.changes = 0
        self.measured = self._writer = MeasuredWriter(writer, "memory", _SPANS)

    async def apply(self, commit: Commit[T]) -> T:
        try:
            result = await self._writer.apply(commit)
        finally:
            self.changes += 1
        kept = commit.memories if isinstance(commit, KeepMemories) else ()
        is_quiet = isinstance(commit, KeepMemories | KeepVectors | event.DropNews)
        if not is_quiet or any(memory.kind is not Kind.EPISODE for memory in kept):
            self.hint.set()
        return result


def _waiting(db: MemorySession, limit: int) -> tuple[event.News, ...]:
    found = every(db, NEWS["waiting"], (limit,))
    return tuple(event.News(number, of, event.MemoryChange(what), kind, by) for number, of, what, kind, by in found)


class SqlNews(SqlView):
    """News of memory that was not published yet."""

    def __init__(self, writer: NotifyingWriter, readers: sql.SqlReaders) -> None:
        super().__init__(readers)
        self.hint = writer.hint
        self._writer = writer

    waiting = reads(_waiting)

    @property
    def changes(self) -> int:
        return self._writer.changes

    async def drop_news(self, until: int) -> None:
        await self._writer.apply(event.DropNews(until))


def drop(db: MemorySession, commit: event.DropNews) -> int:
    return sql.run(db, NEWS["told"], (commit.until,))


MEMORY_COMMITS = sql.CommitTable(
    single={
        graph.Relate: graph.relate,
        MergeEntities: entities.merge_entities,
        maintenance.Maintain: upkeep.maintain,
        visibility.JoinPeople: rows.join,
        visibility.SplitPerson: rows.split,
        visibility.ShareMemory: rows.share,
        forgetting.HideMemories: forgetting.hide,
        forgetting.EraseMemories: forgetting.erase,
        forgetting.PutBackMemories: forgetting.put_back_memories,
        forgetting.DropMemoryUndo: forgetting.drop_memory_undo,
        EmptyLog: sql.emptied,
        Learn: learn,
        KeepBulletin: keep_bulletin,
        revisions.Correct: revisions.correct,
        revisions.Pin: revisions.pin,
        revisions.Confirm: revisions.confirm,
        revisions.Merge: revisions.merge,
        revisions.ArchiveMemories: revisions.archive,
        revisions.UndoMemory: revisions.undo,
        bundle.TakeIn: transfer.take,
        learning.RulePairs: revisions.rule,
        event.DropNews: drop,
    },
    sets={KeepMemories: keep},
)
"""Each database adds what it keeps vectors by, and the upkeep of its indexes."""


def _important(db: MemorySession, listener: Listener, kind: Kind, limit: int) -> Sequence[Memory]:
    return tuple(memories(db, SQL["find_important"], {**bound(listener), "kind": kind, "limit": max(0, limit)}))


def _get(db: MemorySession, listener: Listener, memory_id: int) -> Memory | None:
    return next(iter(memories(db, SQL["get"], {**bound(listener), "id": memory_id})), None)


def _counts(db: MemorySession) -> dict[str, int]:
    return dict(every(db, SQL["counts"]))


def _find(db: MemorySession, listener: Listener, kinds: Sequence[Kind], limit: int) -> Sequence[Memory]:
    bindings = {**bound(listener), "limit": max(0, limit)}
    if not kinds:
        return tuple(memories(db, SQL["find"], bindings))
    # one ordered walk of an index for each kind: a rare kind is not looked for among all memories
    found = [one for kind in set(kinds) for one in memories(db, SQL["find_kind"], {**bindings, "kind": kind})]
    found.sort(key=lambda one: (one.new.said_at, one.id), reverse=True)
    return tuple(found[: bindings["limit"]])


def _fetch(db: MemorySession, listener: Listener, ids: Sequence[int], as_of: int | None = None) -> Sequence[Memory]:
    return tuple(memories(db, SQL["fetch"], {**bound(listener), "ids": as_json(ids), "as_of": as_of}))


class SqlMemories(MemoryAccess):
    """Memories in one database."""

    def __init__(self, parts: MemoryParts) -> None:
        writer = NotifyingWriter(parts.writer)
        self._measured = writer.measured
        parts = parts._replace(writer=writer)
        super().__init__(parts)
        self.news = SqlNews(writer, parts.readers)
        self.library = SqlLibrary(parts.readers)
        self.graph = graph.SqlGraph(parts)
        self.entities = entities.SqlEntities(parts)
        self.people = rows.SqlPeople(parts)
        self.sharing = rows.SqlSharing(parts)
        self.bulletins = SqlBulletins(parts)
        self.revisions = revisions.SqlRevisions(parts)
        self.archive = SqlArchive(parts.readers)
        self.relating = graph.SqlRelating(parts.readers)
        self.pairs = revisions.SqlPairs(parts)
        self.auditing = SqlAuditing(parts.readers)
        self.upkeep = upkeep.SqlUpkeep(parts)
        self.echoes = SqlEchoes(parts)
        self.forgetful = forgetting.SqlForgetful(parts, self.echoes)
        self.bundles = transfer.SqlBundles(parts)
        self.undo_log = forgetting.SqlUndoLog(parts)

    def measure(self, telemetry: Telemetry) -> None:
        """Measure every commit from now on."""
        self._measured.telemetry = telemetry

    important = reads(_important)
    alike = reads(alike)
    find = reads(_find)
    get = reads(_get)
    fetch = reads(_fetch)
    counts = reads(_counts)

    async def keep(self, memories: Sequence[NewMemory], at: int, used: Sequence[Used] = ()) -> tuple[int, ...]:
        """The id of a memory that was forgotten is 0."""
        if not memories and not used:
            return ()
        clean = tuple(await self._without_secrets(memories))
        return await self._writer.apply(KeepMemories(self._new_ids(len(clean)), clean, at, tuple(used)))

    async def learn(self, memories: Sequence[NewMemory], at: int) -> tuple[learning.LearnResult, ...]:
        if not memories:
            return ()
        clean = tuple(await self._without_secrets(memories))
        return await self._writer.apply(Learn(self._new_ids(len(clean) * (1 + SPARE_IDS)), clean, at))
