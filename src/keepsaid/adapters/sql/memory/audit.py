"""What an audit reads of the memories, a page at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from keepsaid.adapters.sql.memory.rows import Row
from keepsaid.adapters.sql.memory.upkeep import LOOSE_SQL, loose_in
from keepsaid.adapters.sql.query import every, load, only, reads
from keepsaid.adapters.sql.session import SqlReaders, SqlSession
from keepsaid.domain.learning import LEARNABLE
from keepsaid.domain.maintenance import AuditEntry, UpkeepTask
from keepsaid.domain.memory import Source

_PARTS = load("memory_audit")
SQL = {name: sql.replace("/*entry*/", _PARTS["entry"]) for name, sql in _PARTS.items()}
_KINDS = json.dumps(sorted(LEARNABLE))


def _texts(db: SqlSession, after: int, limit: int) -> Sequence[tuple[int, str]]:
    """All that memories that are there say, behind an id, in the order of their ids."""
    rows: list[Row] = every(db, SQL["texts"], {"after": after, "limit": limit})
    return tuple((int(row[0]), str(row[1])) for row in rows)


def _loose(db: SqlSession, task: UpkeepTask, after: int, limit: int) -> tuple[int, tuple[int, ...]] | None:
    """How far a page of one table behind an id goes, and the ids in it that lead to nothing; None for no more."""
    upto, _ = only(db, LOOSE_SQL[task], (after, limit))
    return None if upto is None else (upto, tuple(int(row[0]) for row in loose_in(db, task, after, upto)))


class SqlAuditing:
    """The memories of one file, for the owner's eyes; read only."""

    def __init__(self, readers: SqlReaders) -> None:
        self._readers = readers

    async def learned(self, after: int, limit: int) -> Sequence[AuditEntry]:
        """What is learned and active, behind an id, in the order of their ids."""
        return await self._readers.run(_entries, "learned", {"after": after, "limit": limit})

    texts = reads(_texts)

    async def entries(self, ids: Sequence[int]) -> Sequence[AuditEntry]:
        """Those of these memories that are active, of whatever kind."""
        return await self._readers.run(_entries, "entries", {"ids": json.dumps(sorted(set(ids)))})

    loose = reads(_loose)

    async def withdrawn(self, at: int, limit: int) -> Sequence[int]:
        """Bulletins that tell what holds no more."""
        return await self._readers.run(
            lambda db: tuple(int(row[0]) for row in every(db, LOOSE_SQL["withdrawn"], (at, limit)))
        )

    async def alike(self, ids: Sequence[int], above: float) -> Sequence[tuple[int, int]]:
        """Pairs of these memories, the smaller id first, whose cosine is above `above`."""
        return await self._readers.run(_alike, tuple(ids), above)


def _entries(db: SqlSession, statement: str, wanted: dict[str, Any]) -> Sequence[AuditEntry]:
    rows: list[Row] = every(db, SQL[statement], {**wanted, "kinds": _KINDS})
    return tuple(_entry(row) for row in rows)


def _entry(row: Row) -> AuditEntry:
    id_, text, scope, external, slot, subject, attribute, value, start, until, after, recorded_at = row[:12]
    uses, kept, learned, sources = row[12:]
    came = tuple(Source(*one) for one in json.loads(sources))
    about = (slot, subject, attribute, value)
    times = (start, until, after, recorded_at)
    return AuditEntry(id_, text, scope, bool(external), *about, *times, uses, bool(kept), bool(learned), came)


def _alike(db: SqlSession, ids: tuple[int, ...], above: float) -> tuple[tuple[int, int], ...]:
    return db.alike(ids, above)
