"""The contract of what a lane was reminded of: kept with its turns, and shown again where that is wanted."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import StepStart, TurnCommit
from keepsaid.domain.compaction import CutContext, CutReason
from keepsaid.domain.context import Block, Reminders
from keepsaid.domain.message import Lane
from keepsaid.domain.prompt import Json
from keepsaid.domain.turn import Step, StepKind
from keepsaid.testing.builders import lane_of, outcome, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

_CAT, _DOG, _OWL = 901, 902, 903


async def _reminded(road: StoreDriver, text: str, *memories: int, opened: tuple[int, ...] = ()) -> None:
    """A turn that was shown these memories, and opened others."""
    await road.queue(said(text))
    claimed = await road.claim_one()
    batch = claimed.batch
    trace: Json = {"memory": {"block": f"about {text}" if memories else ""}}
    first = Step(1, StepKind.MODEL, "test/model", b"x")
    await road.store.apply(StepStart(claimed.turn_id, batch.fence, first, 0, trace))
    end = replace(outcome(), chosen=memories, opened=opened)
    assert await road.store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, 0))


class RemindersContract:
    """What the last turns of a lane were reminded of."""

    async def test_the_memories_of_the_last_turns(self, store: ContractStore) -> None:
        """Turns that were reminded of nothing count too; what a tool opened was not injected."""
        road = StoreDriver(store)
        await _reminded(road, "cats", _CAT, _DOG)
        await _reminded(road, "dogs", _DOG, opened=(_OWL,))
        await _reminded(road, "hello")
        found = [(await store.reminders(lane_of(), turns, 0)).lately for turns in range(5)]
        assert found == [frozenset(), frozenset(), {_DOG}, {_DOG, _CAT}, {_DOG, _CAT}]

    async def test_the_last_blocks_before_the_records_of_their_turns(self, store: ContractStore) -> None:
        """Oldest first; turns without one do not count."""
        road = StoreDriver(store)
        await _reminded(road, "cats", _CAT, _DOG)
        await _reminded(road, "hello")
        await _reminded(road, "dogs", _DOG)
        cats, dogs = Block(1, "about cats", (_CAT, _DOG)), Block(5, "about dogs", (_DOG,))
        found = [(await store.reminders(lane_of(), 0, blocks)).blocks for blocks in range(4)]
        assert found == [(), (dogs,), (cats, dogs), (cats, dogs)]

    async def test_blocks_leave_with_their_turns_and_the_memories_stay(self, store: ContractStore) -> None:
        """After a cut, a summary or a reset a block is gone; that its memories were given is still known."""
        road = StoreDriver(store)
        await _reminded(road, "cats", _CAT)
        await _reminded(road, "dogs", _DOG)
        await store.apply(CutContext(lane_of(), 0, 2, CutReason.GUARD, 80))
        found = await store.reminders(lane_of(), 9, 9)
        assert found == Reminders((Block(3, "about dogs", (_DOG,)),), frozenset({_CAT, _DOG}))
        await store.apply(CutContext(lane_of(), 1, 4, CutReason.RESET, 81))
        assert await store.reminders(lane_of(), 9, 9) == Reminders((), frozenset({_CAT, _DOG}))

    async def test_other_lanes_were_reminded_of_nothing(self, store: ContractStore) -> None:
        """Known or not."""
        await _reminded(StoreDriver(store), "cats", _CAT)
        assert await store.reminders(Lane("no", "such", "lane", "here"), 9, 9) == Reminders()
