"""News of memory: what happens there reaches the journal, once, over crashes and restarts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories
from keepsaid.domain.forgetting import name_digest
from keepsaid.domain.memory import GLOBAL, Kind, NewMemory, Source
from keepsaid.domain.message import Trust
from keepsaid.events.dispatcher import NewsPublisher
from keepsaid.testing.clock import CountingIds, VirtualClock

Told = list[tuple[str, dict[str, object]]]


def fact(key: str, city: str, said_at: int = 1) -> NewMemory:
    """What somebody said of where Ann lives."""
    text, source = f"Ann lives in {city}", Source("message", str(said_at))
    told = NewMemory(key=key, text=text, kind=Kind.FACT, scope=GLOBAL, trust=Trust.OWNER, said_at=said_at)
    return replace(told, subject="Ann", attribute="city", value=city, sources=(source,))


@pytest.fixture
async def memories(tmp_path: Path) -> AsyncIterator[SqliteMemories]:
    """An empty memory store."""
    made = await open_memories(tmp_path / "memory.db", CountingIds())
    yield made
    await made.close()


class Journal:
    """An operational store, and who tells it of memory."""

    def __init__(self, memories: SqliteMemories) -> None:
        self.store = InMemoryOperations()
        self.memories = memories
        self.teller = NewsPublisher(memories.news, self.store, VirtualClock())

    async def told(self) -> Told:
        """All that was told once everything is."""
        while await self.teller.work() == 0:
            pass
        found = await self.store.journal.latest(1_000)
        return [(one.topic, dict(one.payload)) for one in found]


async def test_what_is_learned_put_right_and_put_away_is_told(memories: SqliteMemories) -> None:
    journal = Journal(memories)
    [oslo] = await memories.learn([fact("a", "Oslo")], 1)
    assert await journal.told() == [("memory.saved", {"memory": oslo.memory_id, "kind": "fact"})]
    [rome] = await memories.learn([fact("b", "Rome", 2)], 2)
    assert (await journal.told())[1:] == [
        ("memory.saved", {"memory": rome.memory_id, "kind": "fact"}),
        ("memory.superseded", {"memory": oslo.memory_id, "kind": "fact", "by": rome.memory_id}),
    ]
    assert await memories.revisions.archive([rome.memory_id], 3) == (rome.memory_id,)
    assert (await journal.told())[3:] == [("memory.archived", {"memory": rome.memory_id, "kind": "fact"})]
    assert await memories.news.waiting(10) == ()


async def test_episodes_are_not_told_of_and_wake_nobody(memories: SqliteMemories) -> None:
    journal = Journal(memories)
    await memories.keep([replace(fact("a", "Oslo"), kind=Kind.EPISODE, attribute="", value="")], 1)
    assert not memories.news.hint.is_set()
    assert await journal.told() == []
    await memories.learn([fact("b", "Rome")], 2)
    assert memories.news.hint.is_set()


async def test_a_crash_between_the_stores_repeats_nothing(memories: SqliteMemories) -> None:
    journal = Journal(memories)
    await memories.learn([fact("a", "Oslo")], 1)
    waiting = await memories.news.waiting(10)
    assert [one.n for one in waiting] == [1]

    class Dying:
        """Its process ends before anything is removed."""

        hint, changes = memories.news.hint, 0
        waiting = staticmethod(memories.news.waiting)

        async def drop_news(self, until: int) -> None:
            raise ConnectionResetError(until)

    with pytest.raises(ConnectionResetError):
        await NewsPublisher(Dying(), journal.store, VirtualClock()).work()
    assert len(await memories.news.waiting(10)) == 1
    assert len(await journal.told()) == 1


async def test_what_was_forgotten_before_it_was_told_is_not_told(memories: SqliteMemories) -> None:
    journal = Journal(memories)
    [learnt] = await memories.learn([fact("a", "Oslo")], 1)
    await memories.forgetful.hide([learnt.memory_id], [name_digest("a")], 2, 0)
    assert await journal.told() == []
    assert await memories.news.waiting(10) == ()
