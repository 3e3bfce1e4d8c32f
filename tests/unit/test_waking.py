"""Waking: one claim for what is routed, and none too few."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import pytest
from tests.unit.test_flow import Road
from tests.unit.test_workers import Slow, working
from tests.waits import HANG_S

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.batch import StoredBatch
from keepsaid.domain.commits import Commit
from keepsaid.domain.message import Lane
from keepsaid.domain.route import Action, Verdict
from keepsaid.domain.turn import Lease
from keepsaid.engine.supervisor import ServiceLoop, keep_going
from keepsaid.pipeline.leasing import Waking
from keepsaid.testing.clock import settle

R = TypeVar("R")
_ITERATIONS = 4
"""So often the loop comes round until the writer does."""

FORWARD = Verdict(Action.FORWARD, "default", "1", "")
TAKEN = (Lease(StoredBatch(1, Lane("terminal", "", "room", "root:room"), 1, 1, "leased", FORWARD, 10), 2),)


class Claim:
    """A claim under way."""

    def __init__(self, waking: Waking) -> None:
        self.store: asyncio.Future[tuple[Lease, ...]] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(waking.claimed(self.store))

    async def back(self, leases: tuple[Lease, ...]) -> None:
        self.store.set_result(leases)
        assert await self.task == leases


async def begun(waking: Waking) -> Claim:
    claim = Claim(waking)
    await settle()
    return claim


async def test_who_claims_is_woken_where_no_claim_was_made_meanwhile() -> None:
    hint = asyncio.Event()
    with Waking(hint).writing():
        assert not hint.is_set()
    assert hint.is_set()


async def test_a_claim_that_comes_back_with_the_batches_is_the_only_one() -> None:
    hint = asyncio.Event()
    waking = Waking(hint)
    with waking.writing():
        claim = await begun(waking)
    assert not hint.is_set(), "what is written together comes back together"
    await claim.back(TAKEN)
    assert not hint.is_set()


async def test_a_claim_that_overtook_the_batches_is_made_again() -> None:
    hint = asyncio.Event()
    waking = Waking(hint)
    with waking.writing():
        claim = await begun(waking)
        await claim.back(())
        assert not hint.is_set()
    assert hint.is_set()
    hint.clear()
    with waking.writing():
        claim = await begun(waking)
    await claim.back(())
    assert hint.is_set(), "it was on its way when they had been written, and did not see them"


async def test_a_claim_from_before_is_not_waited_for() -> None:
    hint = asyncio.Event()
    waking = Waking(hint)
    claim = await begun(waking)
    with waking.writing():
        pass
    assert hint.is_set()
    hint.clear()
    await claim.back(TAKEN)
    assert not hint.is_set()


async def test_a_claim_that_fails_is_no_longer_under_way() -> None:
    hint = asyncio.Event()
    waking = Waking(hint)
    with waking.writing():
        claim = await begun(waking)
        claim.store.set_exception(OSError("no disk"))
        await settle()
    assert hint.is_set()
    with pytest.raises(OSError, match="no disk"):
        await claim.task


class Grouping(InMemoryOperations):
    """A store whose writer takes what waits when it gets to it."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[list[str]] = [[]]

    async def apply(self, commit: Commit[R]) -> R:
        self.groups[-1].append(type(commit).__name__)
        for _ in range(_ITERATIONS):
            await asyncio.sleep(0)
        if self.groups[-1]:
            self.groups.append([])
        return await super().apply(commit)


async def test_what_is_routed_and_who_takes_it_are_written_at_once() -> None:
    store, slow = Grouping(), Slow()
    road = Road(model=slow, store=store)
    async with working(road) as workers:
        stage = ServiceLoop("work", workers.claim, road.flow.hints.work)
        claiming = asyncio.create_task(keep_going(stage, road.clock, lambda _: None))
        await settle()
        await road.say("hello", channel="terminal")
        await road.flow.route()
        await settle()
        assert (await store.overview()).batches == {"leased": 1}
        slow.let.set()
        await asyncio.wait_for(road.flow.hints.deliver.wait(), HANG_S)
        claiming.cancel()
    assert ["Dispatch", "ClaimBatches"] in store.groups
