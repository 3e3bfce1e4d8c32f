"""Facts that a former release filed under another name of their attribute are about one thing again."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.integrity import SCHEMA
from keepsaid.adapters.sqlite.stores import open_memories
from keepsaid.adapters.system.machine import SystemIds
from keepsaid.domain.memory import GLOBAL, Kind, Listener, NewMemory, Source
from keepsaid.domain.message import Trust
from keepsaid.text.normal import digest

EVERYBODY = Listener(None, everything=True)


def _fact(n: int, attribute: str, value: str) -> NewMemory:
    made = NewMemory(f"fact:{n}", Kind.FACT, f"Ann: {value}", GLOBAL, Trust.OWNER, said_at=n, subject="Ann")
    return replace(made, sources=(Source("message", str(n)),), attribute=attribute, value=value)


async def test_two_names_of_an_attribute_become_one_slot_and_the_newer_value_holds(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    memories = await open_memories(path, SystemIds())
    first, second = await memories.learn([_fact(1, "lives in", "Lisbon"), _fact(2, "plans", "Porto")], 5)
    await memories.close()
    with closing(open_writer(path)) as db, db.transaction():
        former = digest("slot", "ann", "home_place_of_living")
        moved = "UPDATE memory SET attribute = 'residence', slot = ?, row_seal = NULL WHERE id = ?"
        db.execute(moved, (former, second.memory_id))
        db.execute(SCHEMA["set_version"], ("memory", 4))
    memories = await open_memories(path, SystemIds())
    for n in (8, 9):
        await memories.keep([_fact(n, "hobby", f"rowing {n}")], 9)  # some memories are renewed after each commit
    before, now = await memories.fetch(EVERYBODY, [first.memory_id, second.memory_id])
    await memories.close()
    assert (before.state, before.superseded_by) == ("superseded", second.memory_id)
    assert (now.state, now.new.value) == ("active", "Porto")
