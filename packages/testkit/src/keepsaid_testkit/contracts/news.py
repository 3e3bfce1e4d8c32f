"""The contract of news: changes of memories are published in order, each once."""

from __future__ import annotations

from keepsaid.domain.event import Event, MemoryChange, News, TellNews
from keepsaid_testkit.contracts.store_driver import ContractStore

SAVED = News(1, 7, MemoryChange.SAVED, "fact")
SAVED_TOO = News(2, 8, MemoryChange.SAVED, "fact")
SUPERSEDED = News(3, 7, MemoryChange.SUPERSEDED, "fact", 8)
ARCHIVED = News(4, 8, MemoryChange.ARCHIVED, "fact")


class NewsContract:
    """News of memory becomes lines of the journal."""

    async def test_it_is_told_once_however_often_it_is_handed_over(self, store: ContractStore) -> None:
        """As after a crash between telling it and removing it."""
        assert await store.apply(TellNews((SAVED, SAVED_TOO), 5)) == 2
        assert await store.apply(TellNews((SAVED, SAVED_TOO), 6)) == 0
        assert await store.apply(TellNews((SAVED, SAVED_TOO, SUPERSEDED), 7)) == 1
        assert await store.apply(TellNews((ARCHIVED,), 8)) == 1
        assert [(one.topic, dict(one.payload), one.at) for one in await _list_memory_events(store)] == [
            ("memory.saved", {"memory": 7, "kind": "fact"}, 5),
            ("memory.saved", {"memory": 8, "kind": "fact"}, 5),
            ("memory.superseded", {"memory": 7, "kind": "fact", "by": 8}, 7),
            ("memory.archived", {"memory": 8, "kind": "fact"}, 8),
        ]

    async def test_what_is_forgotten_meanwhile_is_not_told(self, store: ContractStore) -> None:
        """But it is done with."""
        gone = SAVED._replace(kind="")
        assert await store.apply(TellNews((gone, SAVED_TOO), 5)) == 1
        assert await store.apply(TellNews((gone, SAVED_TOO), 5)) == 0
        assert [one.payload["memory"] for one in await _list_memory_events(store)] == [8]

    async def test_news_of_another_memory_store_is_told_whatever_was_told_before(self, store: ContractStore) -> None:
        """Its numbers start again."""
        assert await store.apply(TellNews((SAVED, SAVED_TOO), 5)) == 2
        other = News(1, 99, MemoryChange.SAVED, "fact")
        assert await store.apply(TellNews((other,), 6)) == 1
        assert await store.apply(TellNews((), 6)) == 0


async def _list_memory_events(store: ContractStore) -> list[Event]:
    return [one for one in await store.journal.latest(100) if one.topic.startswith("memory.")]
