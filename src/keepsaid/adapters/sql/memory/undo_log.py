"""What memory keeps aside of forgettings that can be undone."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.adapters.sql.query import load, run, writes
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
class DropMemoryUndo(Commit[bool]):
    """Delete the undo image of a forgetting; the result is whether there was one."""

    number: int


class SqlUndoLog:
    """The undo log of memory."""

    def __init__(self, writer: Operations) -> None:
        self._writer = writer

    put_back = writes(PutBackMemories)
    drop = writes(DropMemoryUndo)


def put_back_memories(db: SqlSession, commit: PutBackMemories) -> bool:
    found = db.put_back(commit.number, SQL["aside"])
    db.reindex()
    run(db, SQL["drop_aside"], (commit.number,))
    return bool(found)


def drop_memory_undo(db: SqlSession, commit: DropMemoryUndo) -> bool:
    """Delete the undo image of a forgetting, and names of audiences that have no memories left."""
    dropped = bool(run(db, SQL["drop_aside"], (commit.number,)))
    db.execute(SQL["unname_audiences"])
    return dropped
