"""A store of a former release is read for the names of people and things that its memories mention."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.integrity import SCHEMA
from keepsaid.adapters.sqlite.stores import open_memories
from keepsaid.adapters.system.machine import SystemIds
from keepsaid.domain.memory import OWNER, Kind, Listener, NewMemory, person_scope
from keepsaid.domain.message import Lane, Trust

HERE = Lane("terminal", "default", "me", "root:terminal:me")
ME = Listener(HERE, OWNER, direct=True)


def _said(n: int, text: str) -> NewMemory:
    return NewMemory(f"made:{n}", Kind.EPISODE, text, person_scope(OWNER), Trust.OWNER, HERE, OWNER, said_at=n)


async def _made(path: Path) -> None:
    """A store as the release before left it: nothing is mentioned, and all is indexed."""
    memories = await open_memories(path, SystemIds())
    await memories.keep([_said(n, f"The ship to Lagos, number {n}") for n in range(1, 71)], 1)
    await memories.close()
    with closing(open_writer(path)) as db, db.transaction():
        for statement in ("DELETE FROM mention", "DELETE FROM entity", "DELETE FROM reindex"):
            db.execute(statement)
        db.execute("INSERT INTO reindex (one, reached, upto) SELECT 1, max(id), max(id) FROM memory")
        db.execute(SCHEMA["set_version"], ("memory", 4))


async def test_what_was_kept_before_is_mentioned_a_share_after_each_commit(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await _made(path)
    memories = await open_memories(path, SystemIds())
    counts = []
    for n in range(101, 106):
        await memories.keep([_said(n, "nothing new")], 2)
        counts.append([one.memories for one in await memories.entities.found(ME, "Lagos")])
    await memories.close()
    assert counts[0] < counts[-1] == [70]
