"""A store of a former release is indexed again, so that its texts are found by the stems of their language."""

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
SAID = tuple(
    NewMemory(f"made:{n}", Kind.FACT, text, person_scope(OWNER), Trust.OWNER, HERE, OWNER, said_at=n)
    for n, text in enumerate(["Die alten Häuser stehen am Hafen", *(f"Das ist der Satz {n}" for n in range(70))], 1)
)
ME = Listener(HERE, OWNER, direct=True)


async def _made(path: Path) -> None:
    """A store as the release before left it: without the terms of a language, and without a record of them."""
    memories = await open_memories(path, SystemIds())
    await memories.keep(SAID, 1)
    await memories.close()
    with closing(open_writer(path)) as db, db.transaction():
        db.execute("UPDATE memory_piece SET grams = ''")
        db.execute("DROP TABLE reindex")
        db.execute(SCHEMA["set_version"], ("memory", 3))


async def test_what_was_kept_before_is_found_by_the_stems_of_its_language(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await _made(path)
    memories = await open_memories(path, SystemIds())
    found = []
    for n in range(4):
        await memories.keep([NewMemory(f"new:{n}", Kind.FACT, f"new {n}", person_scope(OWNER), Trust.OWNER, HERE)], 2)
        found.append(bool(await memories.text(ME, "Wo steht das Haus?", 5)))
    await memories.close()
    assert found[-1], "some memories are indexed again after each commit"
    with closing(open_writer(path)) as db:
        assert db.execute("SELECT reached >= upto FROM reindex").fetchall() == [(1,)]
