"""The contract of uses: what turns were shown or opened is counted once for each turn, with the memories they bring."""

from __future__ import annotations

from keepsaid.domain.memory import Memory, Used
from keepsaid_testkit.contracts.memories import AUDIT, Factory, SearchableStore, sample


async def counted(store: SearchableStore, memory_id: int) -> tuple[int, int | None]:
    """How often a memory was used, and when last."""
    memory = await store.get(AUDIT, memory_id)
    assert isinstance(memory, Memory)
    return memory.access_count, memory.last_access_at


class UsesContract:
    """Only what a turn was shown or opened counts, and every turn once."""

    async def test_what_turns_used_is_counted_with_what_they_bring(self, factory: Factory) -> None:
        """The count grows by one a turn, the time is the latest; nothing else changes."""
        async with factory() as store:
            cat, dog = await store.keep([sample("cat"), sample("dog")], 5)
            await store.keep([sample("cow")], 9, [Used(1, (cat, dog), 7), Used(2, (cat, cat), 6)])
            assert (await counted(store, cat), await counted(store, dog)) == ((2, 7), (1, 7))
            await store.keep([], 12, [Used(3, (dog, 404), 11)])
            assert (await counted(store, cat), await counted(store, dog)) == ((2, 7), (2, 11))
            memory = await store.get(AUDIT, dog)
            assert memory is not None
            assert (memory.state, memory.recorded_at, memory.new) == ("active", 5, sample("dog"))

    async def test_a_turn_that_is_told_again_counts_nothing(self, factory: Factory) -> None:
        """As after a crash between two stores: in another write as in the same."""
        async with factory() as store:
            [cat] = await store.keep([sample("cat")], 5)
            for _ in range(2):
                await store.keep([sample("cow")], 9, [Used(1, (cat,), 7), Used(1, (cat,), 7)])
            assert await counted(store, cat) == (1, 7)

    async def test_what_is_only_found_is_not_counted(self, factory: Factory) -> None:
        """Neither searches nor lists are uses."""
        async with factory() as store:
            [cat] = await store.keep([sample("cat", "the cat sleeps")], 5)
            assert await store.text(AUDIT, "cat", 9)
            await store.fetch(AUDIT, [cat])
            assert await counted(store, cat) == (0, None)
