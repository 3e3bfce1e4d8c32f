"""The contract of claims: who gets which batch, in which order, and with what beside it."""

from __future__ import annotations

from keepsaid.domain.batch import TrialTerms, Window
from keepsaid.domain.commits import (
    LONER_PATIENCE_MS,
    ClaimBatches,
    ExpireLeases,
    Fail,
    Failure,
    Release,
    Renew,
    Requeue,
    StepStart,
)
from keepsaid.domain.process import Relinquish
from keepsaid.testing.builders import lane_of, said, step
from keepsaid_testkit.contracts.store_driver import LEASE_MS, ContractStore, Queued, StoreDriver, read


class ClaimContract:
    """Each lane offers its first open batch; the best of them are leased."""

    async def test_a_claim_hands_over_batch_messages_and_turn(self, store: ContractStore) -> None:
        """Under a fence of its own."""
        road = StoreDriver(store)
        queued = await road.queue(said("hi"), at=1)
        [lease] = await store.apply(ClaimBatches("one", 5, (501, 502), 2, 1_000))
        claimed = await read(store, lease)
        assert (claimed.batch.id, claimed.batch.state, claimed.batch.fence) == (queued.batch_id, "leased", 1)
        assert claimed.turn_id in (501, 502)
        assert [message.text for message in claimed.messages] == ["hi"]
        assert (claimed.steps, claimed.alone, claimed.trace) == ((), False, None)
        story = await road.story(queued.first.id)
        assert (story.state, story.turn_id, story.batch) == ("batched", claimed.turn_id, claimed.batch)
        turn = await store.turn(claimed.turn_id)
        assert turn is not None
        assert (turn.state, turn.started_at, turn.ended_at) == ("open", 2, None)

    async def test_a_lease_that_was_lost_is_for_nothing(self, store: ContractStore) -> None:
        """Whether the batch waits again, somebody else has it, or it is settled."""
        road = StoreDriver(store)
        await road.queue(said())
        [lease] = await store.apply(ClaimBatches("one", 1, (501,), 0, 1_000))
        assert (await read(store, lease)).batch == lease.batch
        assert await store.apply(ExpireLeases(1_000)) == 1
        assert await store.claimed(lease) is None
        [next_lease] = await store.apply(ClaimBatches("two", 1, (502,), 1_000, 2_000))
        assert (next_lease.turn_id, lease.continued, next_lease.continued) == (501, False, True)
        assert await store.claimed(lease) is None
        await road.answer(await read(store, next_lease))
        assert await store.claimed(next_lease) is None

    async def test_best_priority_then_arrival_then_batch(self, store: ContractStore) -> None:
        """Arrival is that of a batch's first message."""
        road = StoreDriver(store)
        order = (("late", 10, 9), ("hook", 50, 0), ("early", 10, 3), ("cron", 100, 0), ("tie", 10, 3))
        for room, priority, at in order:
            await road.queue(said(room=room, priority=priority), at)
        claimed = [one.batch.lane.conversation for limit in (2, 9) for one in await road.claim(9, limit)]
        assert claimed == ["early", "tie", "late", "hook", "cron"]

    async def test_what_has_waited_long_counts_as_better(self, store: ContractStore) -> None:
        """A webhook after two minutes, a schedule after ten; then arrival decides."""
        road = StoreDriver(store)
        for room, priority, at in (("cron", 100, 0), ("hook", 50, 500_000), ("ann", 10, 590_000), ("bob", 10, 610_000)):
            await road.queue(said(room=room, priority=priority), at)
        early = await road.claim(599_999, limit=1)
        late = await road.claim(620_000)
        assert [one.batch.lane.conversation for one in (*early, *late)] == ["ann", "cron", "hook", "bob"]
        assert late[1].batch.priority == 50, "only its place has changed"

    async def test_no_more_than_asked_for(self, store: ContractStore) -> None:
        """None when none is asked for."""
        road = StoreDriver(store)
        for room in ("a", "b", "c"):
            await road.queue(said(room=room))
        assert len(await road.claim(limit=2)) == 2
        assert await road.claim(limit=0) == ()
        assert len(await road.claim(limit=2)) == 1

    async def test_no_more_than_there_are_turns_for(self, store: ContractStore) -> None:
        """Each needs an id."""
        road = StoreDriver(store)
        for room in ("a", "b"):
            await road.queue(said(room=room))
        for turn_ids in ((), (501,), (502,)):
            claimed = await store.apply(ClaimBatches("one", 2, turn_ids, 0, 1_000))
            assert tuple(one.turn_id for one in claimed) == turn_ids

    async def test_a_lane_is_first_in_first_out(self, store: ContractStore) -> None:
        """The next batch only when the one before is settled."""
        road = StoreDriver(store)
        await road.queue(said("one"))
        first = await road.claim_one()
        await road.queue(said("two"))
        await road.queue(said("other", room="b"))
        assert [one.batch.lane.conversation for one in await road.claim()] == ["b"]
        assert await store.next_ready() is None
        await road.answer(first)
        assert [message.text for message in (await road.claim_one()).messages] == ["two"]

    async def test_priority_does_not_overtake_within_a_lane(self, store: ContractStore) -> None:
        """A batch that waits for later holds up those behind it."""
        road = StoreDriver(store)
        first = await road.queue(said("one", priority=100))
        claimed = await road.claim_one()
        await road.queue(said("two", priority=10))
        assert await store.apply(Release(first.batch_id, claimed.batch.fence, 500, deferred=True))
        assert await road.claim(499) == ()
        assert await store.next_ready() == 500
        assert (await road.claim_one(500)).batch.id == first.batch_id

    async def test_the_next_attempt_continues_the_open_turn(self, store: ContractStore) -> None:
        """With its steps, under a higher fence."""
        road = StoreDriver(store)
        queued = await road.queue(said())
        first = await road.claim_one()
        start = StepStart(first.turn_id, first.batch.fence, step(), 1, trace={"seen": [1]})
        assert await store.apply(start)
        assert await store.apply(Release(queued.batch_id, first.batch.fence, 0))
        again = await road.claim_one()
        assert (again.turn_id, again.steps, again.trace) == (first.turn_id, (step(),), {"seen": [1]})
        assert again.batch.fence == first.batch.fence + 1

    async def test_turns_have_ids_of_their_own(self, store: ContractStore) -> None:
        """Beside a batch that continues its turn."""
        road = StoreDriver(store)
        await road.queue(said(room="a"))
        first = await road.claim_one()
        await road.crash()
        await road.queue(said(room="b"))
        await road.queue(said(room="c"))
        turns = {one.batch.lane.conversation: one.turn_id for one in await road.claim()}
        assert turns["a"] == first.turn_id
        assert len(set(turns.values())) == 3

    async def test_nothing_queued_nothing_ready(self, store: ContractStore) -> None:
        """Waiting messages are not yet work."""
        road = StoreDriver(store)
        assert await store.next_ready() is None
        await road.receive(said())
        assert await store.next_ready() is None
        assert await road.claim() == ()

    async def test_a_requeued_batch_does_not_run_beside_its_lane(self, store: ContractStore) -> None:
        """Its lane still has one turn at a time; then it is first."""
        road = StoreDriver(store)
        first = await road.queue(said("one"))
        claimed = await road.claim_one()
        await store.apply(Fail(first.batch_id, claimed.batch.fence, Failure.BURY, "broken", 0))
        await road.queue(said("two"))
        second = await road.claim_one()
        await road.queue(said("three"))
        assert await store.apply(Requeue(first.batch_id, 5, "try again"))
        assert await road.claim(9) == ()
        await road.answer(second)
        assert [message.text for message in (await road.claim_one(9)).messages] == ["one"]


class LeaseContract:
    """A lease is renewed, given back, or runs out; none of it is charged."""

    async def test_a_lease_is_found_by_its_batch_and_fence_until_it_ends(self, store: ContractStore) -> None:
        """Then only the state that its batch has is; nothing under a fence that is not the newest."""
        road = StoreDriver(store)
        queued = await road.queue(said())
        first = await road.claim_one()
        state, lease = await store.lease(queued.batch_id, first.batch.fence)
        assert state == "leased"
        assert lease is not None
        assert await store.claimed(lease) == first
        assert [list(await store.expired(at)) for at in (LEASE_MS - 1, LEASE_MS)] == [[], [lease]]
        assert await store.lease(queued.batch_id, first.batch.fence + 1) == ("", None)
        assert await store.apply(Release(queued.batch_id, first.batch.fence, 0))
        assert await store.lease(queued.batch_id, first.batch.fence) == ("queued", None)
        again = await road.claim_one()
        assert await store.lease(queued.batch_id, first.batch.fence) == ("", None)
        await road.answer(again)
        assert await store.lease(queued.batch_id, again.batch.fence) == ("done", None)
        assert await store.lease(404, 1) == ("", None)

    async def test_a_lease_runs_out(self, store: ContractStore) -> None:
        """At its end, not before; nothing is charged."""
        road = StoreDriver(store)
        queued = await road.queue(said())
        await road.claim_one(at=0)
        assert await store.apply(ExpireLeases(LEASE_MS - 1)) == 0
        assert await store.apply(ExpireLeases(LEASE_MS)) == 1
        batch = await road.batch(queued)
        assert (batch.state, batch.attempts, batch.crashes, batch.deferrals) == ("queued", 0, 0, 0)
        assert (await road.claim_one(LEASE_MS)).batch.fence == 2

    async def test_a_renewed_lease_goes_on(self, store: ContractStore) -> None:
        """To its new end."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        assert await store.apply(Renew(claimed.batch.id, claimed.batch.fence, 5_000))
        assert await store.apply(ExpireLeases(4_999)) == 0
        assert await store.apply(ExpireLeases(5_000)) == 1

    async def test_a_graceful_release_charges_nothing(self, store: ContractStore) -> None:
        """The crash it was in before is not forgotten."""
        road = StoreDriver(store)
        queued = await road.queue(said())
        await road.claim_one()
        await road.crash(owner="two")
        claimed = await road.claim_one(owner="two")
        assert await store.apply(Release(queued.batch_id, claimed.batch.fence, 0))
        batch = await road.batch(queued)
        assert (batch.state, batch.attempts, batch.crashes, batch.deferrals) == ("queued", 0, 1, 0)

    async def test_a_deferral_is_counted_and_clears_the_suspicion(self, store: ContractStore) -> None:
        """An outage is nobody's fault, and the process lived through it."""
        road = StoreDriver(store)
        queued = await road.queue(said())
        await road.claim_one()
        await road.crash(owner="two")
        claimed = await road.claim_one(owner="two")
        assert await store.apply(Release(queued.batch_id, claimed.batch.fence, 77, deferred=True))
        batch = await road.batch(queued)
        assert (batch.state, batch.attempts, batch.crashes, batch.deferrals) == ("queued", 0, 0, 1)
        assert await store.next_ready() == 77

    async def test_an_owner_gives_back_all_it_holds(self, store: ContractStore) -> None:
        """And only that."""
        road = StoreDriver(store)
        for room in ("a", "b", "c"):
            await road.queue(said(room=room))
        await road.claim(limit=2, owner="one")
        await road.claim(limit=1, owner="two")
        assert await store.apply(Relinquish("one", 5)) == 2
        assert (await store.overview()).batches == {"queued": 2, "leased": 1}
        again = await road.claim(owner="two")
        assert [one.batch.attempts + one.batch.crashes + one.batch.deferrals for one in again] == [0, 0]

    async def test_leases_of_this_owner_are_not_void(self, store: ContractStore) -> None:
        """Only those of others."""
        road = StoreDriver(store)
        queued = await road.queue(said())
        await road.claim_one(owner="one")
        assert await road.crash(owner="one") == ()
        assert (await road.batch(queued)).state == "leased"


async def suspects(road: StoreDriver, *rooms: str) -> list[Queued]:
    """One batch in each room, all in flight at one crash."""
    queued = [await road.queue(said(room=room)) for room in rooms]
    await road.claim(owner="dead")
    await road.crash()
    return queued


async def poison(road: StoreDriver, room: str, crashes: int = 2) -> Queued:
    """A batch that was in flight at a number of crashes in a row; nothing else may be ready."""
    [queued] = await suspects(road, room)
    for _ in range(crashes - 1):
        assert (await road.claim_one(owner="dead")).batch.id == queued.batch_id
        await road.crash()
    assert (await road.batch(queued)).crashes == crashes
    return queued


class SuspectContract:
    """What was in flight at a crash starts one at a time; at two in a row, alone."""

    async def test_a_crash_is_not_charged_to_those_that_ran_together(self, store: ContractStore) -> None:
        """They are suspects."""
        road = StoreDriver(store)
        for queued in await suspects(road, "a", "b"):
            batch = await road.batch(queued)
            assert (batch.state, batch.crashes, batch.attempts) == ("queued", 1, 0)

    async def test_one_suspect_at_a_time_beside_normal_work(self, store: ContractStore) -> None:
        """The next when it is settled."""
        road = StoreDriver(store)
        await suspects(road, "a", "b")
        await road.queue(said(room="c"))
        claimed = {one.batch.lane.conversation: one for one in await road.claim()}
        assert sorted(claimed) == ["a", "c"]
        assert not any(one.alone for one in claimed.values())
        assert await road.claim() == ()
        await road.answer(claimed["a"])
        assert [one.batch.lane.conversation for one in await road.claim()] == ["b"]

    async def test_a_suspect_waits_its_turn(self, store: ContractStore) -> None:
        """Best priority first, suspects too."""
        road = StoreDriver(store)
        await suspects(road, "a")
        await road.queue(said(room="urgent", priority=1))
        assert [one.batch.lane.conversation for one in await road.claim(limit=1)] == ["urgent"]
        assert [one.batch.lane.conversation for one in await road.claim(limit=1)] == ["a"]

    async def test_after_two_crashes_it_runs_alone(self, store: ContractStore) -> None:
        """Nothing beside it, whatever its priority."""
        road = StoreDriver(store)
        queued = await poison(road, "a")
        await road.queue(said(room="urgent", priority=1))
        [claimed] = await road.claim()
        assert (claimed.batch.id, claimed.alone, claimed.batch.crashes) == (queued.batch_id, True, 2)
        assert await road.claim() == ()
        await road.answer(claimed)
        assert [one.batch.lane.conversation for one in await road.claim()] == ["urgent"]

    async def test_it_waits_until_nothing_is_leased(self, store: ContractStore) -> None:
        """Others go on meanwhile."""
        road = StoreDriver(store)
        queued = await poison(road, "a")
        claimed = await road.claim_one()
        await store.apply(Release(queued.batch_id, claimed.batch.fence, 50))
        await road.queue(said(room="b"))
        normal = await road.claim_one(at=10)
        assert normal.batch.lane == lane_of("b")
        await road.queue(said(room="c"))
        assert [one.batch.lane.conversation for one in await road.claim(60, limit=1)] == ["c"]
        assert await road.claim(60) == ()
        await store.apply(ExpireLeases(5_000))
        [alone] = await road.claim(60)
        assert (alone.batch.id, alone.alone) == (queued.batch_id, True)

    async def test_two_poisons_run_one_after_the_other(self, store: ContractStore) -> None:
        """Each alone."""
        road = StoreDriver(store)
        first, second = await suspects(road, "a", "b")
        assert (await road.claim_one(owner="dead")).batch.id == first.batch_id
        await road.crash()
        assert (await road.claim_one()).batch.id == first.batch_id
        await store.apply(Release(first.batch_id, (await road.batch(first)).fence, 50))
        assert (await road.claim_one(owner="dead")).batch.id == second.batch_id
        await road.crash()
        for queued in (first, second):
            [claimed] = await road.claim(60)
            assert (claimed.batch.id, claimed.alone) == (queued.batch_id, True)
            await road.answer(claimed)

    async def test_it_does_not_wait_for_ever(self, store: ContractStore) -> None:
        """After a minute nothing new begins before it has run."""
        road = StoreDriver(store)
        queued = await poison(road, "a")
        claimed = await road.claim_one()
        await store.apply(Release(queued.batch_id, claimed.batch.fence, 50))
        await road.queue(said(room="b"))
        other = await road.claim_one(at=10)
        await road.queue(said(room="c"))
        until = 50 + TrialTerms().after_ms + LONER_PATIENCE_MS
        assert await road.claim(until) == ()
        await road.answer(other)
        [alone] = await road.claim(until)
        assert (alone.batch.id, alone.alone) == (queued.batch_id, True)

    async def test_a_start_tries_at_once_what_was_to_wait(self, store: ContractStore) -> None:
        """An outage may be over. A window stays open."""
        road = StoreDriver(store)
        queued = await road.queue(said(room="a"))
        claimed = await road.claim_one()
        await store.apply(Release(queued.batch_id, claimed.batch.fence, 9_999, deferred=True))
        await road.receive(said(room="b"), 5, Window(60_000))
        assert (await store.next_ready(), await store.next_due()) == (9_999, 60_005)
        await road.crash(at=7)
        assert (await store.next_ready(), await store.next_due()) == (0, 60_005)
