"""After pruning, whenever and whatever, a lane goes on, and nothing that is still needed is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.sqlite.integrity import check_integrity
from keepsaid.adapters.sqlite.stores import open_operations
from keepsaid.domain.commits import EpisodesKept, Fail, Failure, IntakeResult, MarkReplyShown
from keepsaid.domain.message import ProviderMarks
from keepsaid.domain.retention import Stale
from keepsaid.domain.route import Action
from keepsaid.domain.views import MessageFilter
from keepsaid.testing.builders import lane_of, said, verdict
from keepsaid_testkit.contracts.pruning import prune
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

DEEDS = st.lists(st.sampled_from(["done", "done", "dropped", "dead", "burst", "messages", "records"]), max_size=40)
BURST = 70
"""More than a mark of a lane covers."""


class Walk:
    """One lane over a store, and what must be in it."""

    def __init__(self, store: ContractStore) -> None:
        self.store = store
        self.road = StoreDriver(store)
        self.heard = 0
        self.kept: list[str] = []
        self.prunable: list[str] = []

    async def hear(self) -> str:
        """The next message; its number is the next of the lane."""
        self.heard += 1
        text = f"{self.heard}"
        received = await self.road.receive(said(text, marks=ProviderMarks(text)))
        assert (received.intake, received.number) == (IntakeResult.STORED, self.heard)
        return text

    async def do(self, deed: str) -> None:
        """One deed."""
        if deed in ("messages", "records"):
            await prune(self.store, Stale(deed), rows_max=7)
            if deed == "messages":
                self.prunable.clear()
            return
        texts = [await self.hear() for _ in range(BURST if deed == "burst" else 1)]
        batch_id = await self.road.route(lane_of(), by=verdict(Action.DROP) if deed == "dropped" else None)
        if deed != "dropped":
            claimed = await self.road.claim_one()
            assert [message.text for message in claimed.messages] == texts
            if deed == "dead":
                await self.store.apply(Fail(batch_id, claimed.batch.fence, Failure.BURY, "it broke", 0))
            else:
                await self.store.apply(MarkReplyShown(await self.road.answer(claimed), 0))
                await self.store.apply(EpisodesKept((batch_id,)))
        (self.kept if deed == "dead" else self.prunable).extend(texts)

    async def check(self) -> None:
        """What must be there is there, what came is known, and the next message finds its place."""
        found = {story.message.text for story in await self.store.find(MessageFilter(limit=10_000))}
        assert found == {*self.kept, *self.prunable}
        for number in range(1, self.heard + 1):
            again = await self.road.receive(said(f"{number}", marks=ProviderMarks(f"{number}")))
            assert again.intake is IntakeResult.DUPLICATE
        await self.do("done")


async def walked(store: ContractStore, deeds: Sequence[str]) -> None:
    walk = Walk(store)
    for deed in deeds:
        await walk.do(deed)
    await walk.check()
    await store.close()  # type: ignore[attr-defined]


@settings(max_examples=examples(30), deadline=None, derandomize=True)
@given(DEEDS)
def test_a_lane_goes_on_in_memory(deeds: list[str]) -> None:
    asyncio.run(walked(InMemoryOperations(), deeds))


@settings(max_examples=examples(8), deadline=None, derandomize=True)
@given(DEEDS)
def test_a_lane_goes_on_in_a_file_that_is_whole(deeds: list[str]) -> None:
    async def go(path: Path) -> None:
        await walked(await open_operations(path), deeds)

    with TemporaryDirectory() as folder:
        path = Path(folder, "buffer.db")
        asyncio.run(go(path))
        looked = check_integrity(path, ("buffer",), mend=False)
        assert (looked.damaged, looked.damage, looked.astray) == ((), (), ())
