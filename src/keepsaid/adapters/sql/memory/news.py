"""News of memory: written by triggers with what happened, read and removed by whoever tells of it."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from keepsaid.adapters.sql.memory.commits import KeepMemories, KeepVectors
from keepsaid.adapters.sql.query import every, load, reads, run
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
        """Apply one commit."""
        try:
            done = await self._writer.apply(commit)
        finally:
            self.changes += 1
        if not _is_quiet(commit):
            self.hint.set()
        return done


def _is_quiet(commit: Commit[object]) -> bool:
    if isinstance(commit, KeepMemories):
        return all(one.kind is Kind.EPISODE for one in commit.memories)
    return isinstance(commit, KeepVectors | DropNews)


def _waiting(db: SqlSession, limit: int) -> tuple[News, ...]:
    """The oldest news that is kept."""
    return tuple(
        News(n, of, MemoryChange(what), kind, by) for n, of, what, kind, by in every(db, SQL["waiting"], (limit,))
    )


class SqlNews:
    """What happened to the memories of one file and was not told yet."""

    def __init__(self, writer: NotifyingWriter, readers: SqlReaders) -> None:
        self.hint = writer.hint
        self._writer = writer
        self._readers = readers

    @property
    def changes(self) -> int:
        """How many commits to memory ended in this process, kept or not."""
        return self._writer.changes

    waiting = reads(_waiting)

    async def drop_news(self, until: int) -> None:
        """Delete news with numbers up to `until`, inclusive."""
        await self._writer.apply(DropNews(until))


def drop(db: SqlSession, commit: DropNews) -> int:
    """Apply one commit."""
    return run(db, SQL["told"], (commit.until,))
