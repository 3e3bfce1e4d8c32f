"""Workers: how claimed batches run side by side, and when the next is looked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.unit.test_flow import Nothing, Road
from tests.waits import HANG_S

from keepsaid.adapters.sql.query import T
from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.batch import TrialTerms
from keepsaid.domain.commits import ClaimBatches, Commit, ExpireLeases, Fail, Failure
from keepsaid.domain.process import Relinquish, VoidLeases
from keepsaid.domain.turn import ClaimedBatch, Lease, ModelAnswer
from keepsaid.engine.caretakers import CrashNotices, Rescuer
from keepsaid.engine.workers import Attempt, RetryPolicy, TurnConcurrency, Workers
from keepsaid.errors import StoreError
from keepsaid.pipeline.leasing import Leases, LeaseTerms, LifeTerms, ProcessAge
from keepsaid.ports.model import Delta, ModelRequest
from keepsaid.services.inbox import ProgressHub
from keepsaid.testing.clock import settle


class Slow(Nothing):
    """A model that answers when it is let."""

    def __init__(self) -> None:
        self.let = asyncio.Event()

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        await self.let.wait()
        return ModelAnswer("at last", model="slow")


class Seen(Slow):
    """One that knows which questions are open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.most = 0

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        self.open.append(request.prompt.user)
        self.most = max(self.most, len(self.open))
        try:
            return await super().answer(request, delta)
        finally:
            self.open.remove(request.prompt.user)


class Counted(InMemoryOperations):
    """A store that counts the claims."""

    claims = 0

    async def apply(self, commit: Commit[T]) -> T:
        self.claims += isinstance(commit, ClaimBatches)
        return await super().apply(commit)


@asynccontextmanager
async def working(
    road: Road, places: TurnConcurrency | None = None, terms: LifeTerms | None = None
) -> AsyncIterator[Workers]:
    flow, store, clock = road.flow, road.store, road.clock
    life = ProcessAge(store, clock, "alive", terms)
    leases = Leases(store, clock, road.ids, "alive", LeaseTerms(), life=life)
    attempt = Attempt(store, ProgressHub(), clock, road.ids, RetryPolicy())
    workers = Workers(flow, store, leases, attempt, clock, places or TurnConcurrency())
    try:
        yield workers
    finally:
        await workers.stop(0)


async def crashed(road: Road, rooms: int) -> None:
    """Turns of so many rooms were running when their process died."""
    for n in range(rooms):
        await road.say(f"hello {n}", channel="terminal", room=f"room {n}")
    await road.flow.route()
    dead = Leases(road.store, road.clock, road.ids, "dead", LeaseTerms())
    assert len(await road.flow.claim(dead, rooms)) == rooms
    await road.store.apply(VoidLeases("alive", road.clock.now_ms(), "it died", (901,)))


async def test_suspects_that_wait_for_one_another_are_not_asked_for_again_and_again() -> None:
    slow = Slow()
    road = Road(model=slow)
    await crashed(road, 2)
    async with working(road) as workers:
        soon = await workers.claim()
        assert soon is not None
        assert soon > road.clock.now_ms()
        await settle()
        assert await workers.claim() is None, "the other comes when this turn has ended, which sets the hint"
        slow.let.set()
        road.flow.hints.work.clear()
        await asyncio.wait_for(road.flow.hints.work.wait(), HANG_S)
        assert await workers.claim() is not None


async def test_a_process_that_shares_its_store_claims_nothing_in_vain() -> None:
    """A claim holds up what other processes write."""
    store, slow = Counted(), Slow()
    road = Road(store=store, model=slow)
    async with working(road, terms=LifeTerms(shares=True)) as workers:
        assert await workers.claim() is None
        assert store.claims == 0
        await road.say("hello", channel="terminal")
        await road.flow.route()
        await workers.claim()
        assert store.claims == 1
        assert (await store.overview()).batches == {"leased": 1}
        slow.let.set()


async def test_workers_come_back_when_the_process_is_old_enough_for_a_trial() -> None:
    """Not at the next poll: a delay counts in the age at which the process dies, and so lengthens the next wait."""
    road = Road(model=Slow())
    await crashed(road, 1)
    second = Leases(road.store, road.clock, road.ids, "alive", LeaseTerms())
    assert len(await road.flow.claim(second, 1)) == 1
    await road.store.apply(VoidLeases("third", road.clock.now_ms(), "it died", (902,)))
    async with working(road) as workers:
        await road.clock.advance(400)
        soon = await workers.claim()
        assert soon == road.clock.due_ms() + TrialTerms().after_ms - 400
        await road.clock.advance(soon - road.clock.due_ms())
        await workers.claim()
        assert (await road.store.overview()).batches == {"leased": 1}


async def test_a_lane_whose_model_hangs_takes_no_place_for_long() -> None:
    slow = Slow()
    road = Road(model=slow)
    for n in range(3):
        await road.say("hello", channel="terminal", room=f"room {n}")
    await road.flow.route()
    async with working(road, TurnConcurrency(at_once=1, slow_s=0.01, open_max=2)) as workers:
        await workers.claim()
        assert (await road.store.overview()).batches == {"leased": 1, "queued": 2}
        assert await workers.claim() is None, "the one place is taken"
        road.flow.hints.work.clear()
        await asyncio.wait_for(road.flow.hints.work.wait(), HANG_S)
        await workers.claim()
        assert (await road.store.overview()).batches == {"leased": 2, "queued": 1}
        road.flow.hints.work.clear()
        await asyncio.wait_for(road.flow.hints.work.wait(), HANG_S)
        assert await workers.claim() is None, "and no more than two are ever open"
        assert (await road.store.overview()).batches == {"leased": 2, "queued": 1}
        slow.let.set()


async def test_leases_do_not_go_by_the_wall_clock() -> None:
    slow = Slow()
    road = Road(model=slow)
    await road.say("hello", channel="terminal")
    await road.flow.route()
    rescuer = Rescuer(road.store, road.clock, road.ids, "alive", CrashNotices("it died"))
    async with working(road) as workers:
        await workers.claim()
        await settle()
        for jump in (3_600_000, 86_400_000, -200_000_000):
            road.clock.jump(jump)
            assert await rescuer.rescue() == 0, "somebody set the clock; the turn still runs"
        slow.let.set()
        await asyncio.wait_for(road.flow.hints.deliver.wait(), HANG_S)
    assert (await road.store.overview()).batches == {"done": 1}
    assert await road.store.apply(ExpireLeases(road.clock.steady_ms() + 10**9)) == 0


async def test_a_turn_that_lost_its_lane_has_ended_before_the_next_of_the_lane_begins() -> None:
    seen = Seen()
    road = Road(model=seen)
    await road.say("one", channel="terminal")
    await road.flow.route()
    async with working(road) as workers:
        await workers.claim()
        await settle()
        assert seen.open == ["ann: one"]
        await road.store.apply(ExpireLeases(road.clock.steady_ms() + 10**9))
        other = Leases(road.store, road.clock, road.ids, "other", LeaseTerms())
        (taken,) = await road.flow.claim(other, 1)
        await road.store.apply(Fail(taken.batch.id, taken.batch.fence, Failure.BURY, "it was bad", road.clock.now_ms()))
        await road.say("two", channel="terminal")
        await road.flow.route()
        await workers.claim()
        await settle()
        assert (seen.open, seen.most) == (["ann: two"], 1), "nobody had told the first that another owner settled it"
        seen.let.set()
        await asyncio.wait_for(road.flow.hints.deliver.wait(), HANG_S)


async def test_a_batch_that_cannot_be_read_waits_and_comes_again() -> None:
    road = Road()
    await road.say("hello", channel="terminal")
    await road.flow.route()
    attempt = Attempt(road.store, ProgressHub(), road.clock, road.ids, RetryPolicy())
    leases = Leases(road.store, road.clock, road.ids, "alive", LeaseTerms())
    (lease,) = await road.flow.claim(leases, 1)

    async def unreadable(_: Lease) -> ClaimedBatch:
        raise StoreError("the disk does not give it")

    assert await attempt.opened(lease, unreadable) is None
    assert (await road.store.overview()).deferred == 1
    assert await road.flow.claim(leases, 1) == ()
    await road.clock.advance(1_000)
    (lease,) = await road.flow.claim(leases, 1)
    claimed = await attempt.opened(lease, road.flow.open)
    assert claimed is not None
    assert [message.text for message in claimed.messages] == ["hello"]


async def test_a_lease_that_was_lost_before_it_was_opened_is_left_to_its_next_owner() -> None:
    road = Road()
    await road.say("hello", channel="terminal")
    await road.flow.route()
    attempt = Attempt(road.store, ProgressHub(), road.clock, road.ids, RetryPolicy())
    one, two = (Leases(road.store, road.clock, road.ids, name, LeaseTerms()) for name in ("one", "two"))
    (lost,) = await road.flow.claim(one, 1)
    await road.store.apply(Relinquish("one", road.clock.now_ms()))
    (held,) = await road.flow.claim(two, 1)
    assert await attempt.opened(lost, road.flow.open) is None
    assert await attempt.opened(held, road.flow.open) is not None
    assert (await road.store.overview()).batches == {"leased": 1}
