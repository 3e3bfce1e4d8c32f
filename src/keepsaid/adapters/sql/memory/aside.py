"""What memory keeps aside of forgettings that can be undone."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.adapters.sql.query import load, run
from keepsaid.adapters.sql.session import SqlSession
from keepsaid.domain.commits import Commit
from keepsaid.ports.store_views import Operations

SQL = load("memory_forget")
TABLES: tuple[str, ...] = ("memory", "memory_source", "memory_statement", "association", "entity", "mention")
TABLES += ("memory_widened", "identity")
GRAVES = ("memory_tombstone", "memory_echo")


@dataclass(frozen=True, slots=True)
class PutBackMemories(Commit[bool]):
    """Put back what a forgetting kept aside; whether anything was."""

    number: int


@dataclass(frozen=True, slots=True)
class DropMemoriesAside(Commit[bool]):
    """Delete what a forgetting kept aside; whether anything was."""

    number: int


class SqlAside:
    """What one file keeps aside; `writer` must know how both commits are applied."""

    def __init__(self, writer: Operations) -> None:
        self._writer = writer

    async def put_back(self, number: int) -> bool:
        """Put back what one kept aside, with tombstones taken away; whether anything was."""
        return await self._writer.apply(PutBackMemories(number))

    async def drop(self, number: int) -> bool:
        """Delete what one kept aside; whether anything was."""
        return await self._writer.apply(DropMemoriesAside(number))


def put_back_memories(db: SqlSession, commit: PutBackMemories) -> bool:
    """Apply one commit; what came back is indexed anew."""
    found = db.put_back(commit.number, SQL["aside"])
    db.reindex()
    run(db, SQL["drop_aside"], (commit.number,))
    return bool(found)


def drop_memories_aside(db: SqlSession, commit: DropMemoriesAside) -> bool:
    """Apply one commit; names of audiences that no memory is left of go with it."""
    dropped = bool(run(db, SQL["drop_aside"], (commit.number,)))
    db.execute(SQL["unname_audiences"])
    return dropped
