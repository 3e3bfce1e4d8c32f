"""The contract of staged deeds: what a turn asks memory to do is there with its turn, until memory has it."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import EpisodesKept, TurnCommit
from keepsaid.domain.memory import Kind
from keepsaid.domain.staged import MemoryAction, StageMemory
from keepsaid.testing.builders import outcome, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

SAVE = StageMemory(0, MemoryAction.SAVE, 0, Kind.GOAL, "Zoë\nruns", "Zoë", "sport", "runs", 5, 9)
CONFIRM = StageMemory(1, MemoryAction.CONFIRM, 1 << 60)


class StagingContract:
    """Committed with the turn, or not at all."""

    async def test_what_a_turn_staged_is_there_until_it_is_done(self, store: ContractStore) -> None:
        """With the episodes of its batch, in order, and gone with them; another turn has nothing of it."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        batch = claimed.batch
        end = replace(outcome(), effects=(SAVE, CONFIRM))
        assert not await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence + 1, end, None, 7))
        assert list(await store.episode_work(9)) == []
        assert await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, 7))
        await road.settle(said("again"))
        first, second = await store.episode_work(9)
        assert (first.staged, second.staged) == ((SAVE, CONFIRM), ())
        await store.apply(EpisodesKept((second.batch_id,)))
        assert [work.staged for work in await store.episode_work(9)] == [(SAVE, CONFIRM)]
        await store.apply(EpisodesKept((first.batch_id,)))
        assert list(await store.episode_work(9)) == []
