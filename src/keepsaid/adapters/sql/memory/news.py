"""News of memory: written by triggers with what happened, read and removed by whoever tells of it."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from keepsaid.adapters.sql.memory.commits import KeepMemories, KeepVectors
from keepsaid.adapters.sql.query import SqlView, every, load, reads, run
from keepsaid.adapters.sql.session import SqlReaders, SqlSession
from keepsaid.domain.commits import Commit
from keepsaid.domain.event import DropNews, MemoryChange, News
from keepsaid.domain.memory import Kind
from keepsaid.ports.store_views import Operations

R = TypeVar("R")
SQL = load("memory_news")


class NotifyingWriter:
    """The writer of the memory store; sets `hint` after a commit that may have made news.

    Every commit may, except those that only add episodes or vectors or drop news. `changes` counts the
    commits that ended, kept or not.
    """

    def __init__(self, writer: Operations) -> None:
        self.hint = asyncio.Event()
        self.changes = 0
        self._writer = writer

    async def apply(self, commit: Commit[R]) -> R:
        try:
            result = await self._writer.apply(commit)
        finally:
            self.changes += 1
        if isinstance(commit, KeepMemories):
            is_quiet = all(memory.kind is Kind.EPISODE for memory in commit.memories)
        else:
            is_quiet = isinstance(commit, KeepVectors | DropNews)
        if not is_quiet:
            self.hint.set()
        return result


def _waiting(db: SqlSession, limit: int) -> tuple[News, ...]:
    found = every(db, SQL["waiting"], (limit,))
    return tuple(News(number, of, MemoryChange(what), kind, by) for number, of, what, kind, by in found)


class SqlNews(SqlView):
    """News of memory that was not published yet."""

    def __init__(self, writer: NotifyingWriter, readers: SqlReaders) -> None:
        super().__init__(readers)
        self.hint = writer.hint
        self._writer = writer

    waiting = reads(_waiting)

    @property
    def changes(self) -> int:
        return self._writer.changes

    async def drop_news(self, until: int) -> None:
        await self._writer.apply(DropNews(until))


def drop(db: SqlSession, commit: DropNews) -> int:
    return run(db, SQL["told"], (commit.until,))
