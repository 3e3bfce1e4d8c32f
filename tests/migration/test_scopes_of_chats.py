"""A memory store of schema 2: what was said in direct chats moves to the scope of its person, and is found there."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from tests.migration.files import rows

from keepsaid.adapters.sql.scripts import migrations
from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.integrity import SCHEMA, check_integrity
from keepsaid.adapters.sqlite.stores import open_memories
from keepsaid.adapters.system.machine import SystemIds
from keepsaid.domain.memory import Kind, Listener, NewMemory, conversation_scope, person_scope
from keepsaid.domain.message import Lane, Trust

BOB, OWNER = "chat:bot:bob", "owner"
CHAT, DESK, ROOM = (Lane("chat", "bot", name, f"root:{name}") for name in ("chat", "desk", "room"))


def _said(key: str, text: str, lane: Lane, person: str, **more: object) -> NewMemory:
    """What was kept before: in a direct chat too with the scope of its conversation."""
    new = NewMemory(
        key, Kind.EPISODE, text, conversation_scope(lane), Trust.KNOWN, lane, person, said_at=1, chat_of=person
    )
    return replace(new, **more)  # type: ignore[arg-type]


SAID = (
    _said("message:1", "the kettle is in the cellar", CHAT, BOB),
    _said("reply:1", "noted, the kettle", CHAT, BOB, speaker="assistant"),
    _said("finding:1:0", "Bob lives in Porto", CHAT, BOB, kind=Kind.FACT, derived=True),
    _said("message:2", "the kettle outside", CHAT, BOB, trust=Trust.EXTERNAL),
    _said("summary", "they spoke of a kettle", CHAT, BOB, kind=Kind.THREAD_SUMMARY),
    _said("message:3", "the kettle of the room", ROOM, ""),
    _said("message:4", "my kettle", DESK, OWNER, scope=person_scope(OWNER)),
)


async def _made(path: Path) -> None:
    """A store as the release before left it."""
    memories = await open_memories(path, SystemIds())
    await memories.keep(SAID, 1)
    await memories.close()
    with closing(open_writer(path)) as db, db.transaction():
        db.execute(SCHEMA["set_version"], ("memory", 2))


async def _heard(path: Path, listener: Listener) -> set[str]:
    memories = await open_memories(path, SystemIds())
    found = await memories.text(listener, "kettle Porto", 20)
    keys = {one.new.key for one in await memories.fetch(listener, [hit.memory_id for hit in found])}
    await memories.close()
    return keys


async def test_memories_of_a_direct_chat_are_found_in_the_persons_other_chats(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await _made(path)
    elsewhere = Lane("chat", "bot", "elsewhere", "root:elsewhere")
    heard = await _heard(path, Listener(elsewhere, BOB, direct=True))
    assert heard == {"message:1", "reply:1", "finding:1:0"}
    assert await _heard(path, Listener(CHAT, BOB, direct=True)) == heard | {"message:2", "summary"}
    assert await _heard(path, Listener(ROOM, BOB)) == {"message:3"}
    assert await _heard(path, Listener(elsewhere, OWNER, direct=True)) == {"message:4"}
    scopes = dict(rows(path, "SELECT key, scope FROM memory"))
    assert {key for key, scope in scopes.items() if scope == person_scope(BOB)} == heard | {"message:2"}
    assert scopes["summary"] == conversation_scope(CHAT)
    assert check_integrity(path, ("memory",), mend=False).altered == ()


async def test_the_same_again_is_the_same_memory(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await _made(path)
    memories = await open_memories(path, SystemIds())
    await memories.keep([replace(SAID[0], scope=person_scope(BOB))], 2)
    found = await memories.find(Listener(None, everything=True), (Kind.EPISODE,), 99)
    await memories.close()
    assert [one.new.key for one in found].count("message:1") == 1


async def test_a_death_between_the_migration_and_its_index_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await _made(path)
    script = next(script for number, script in migrations("memory") if number == 3)
    with closing(open_writer(path)) as db, db.transaction():
        db.create_scalar_function("digest", lambda *_: b"x" * 16, -1)
        db.execute(script).fetchall()
        db.execute(SCHEMA["set_version"], ("memory", 3))
    assert "message:1" in await _heard(path, Listener(DESK, BOB, direct=True))
