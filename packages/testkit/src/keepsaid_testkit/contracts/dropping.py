"""The contract of a person's word that a batch need not be answered."""

from __future__ import annotations

from keepsaid.domain.commits import Drop, Release, Renew, Requeue, TurnCommit
from keepsaid.domain.route import Action
from keepsaid.testing.builders import outcome, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver


class DropContract:
    """A queued batch is dropped, and can come back."""

    async def test_a_queued_batch_is_dropped_with_its_reason(self, store: ContractStore) -> None:
        """Its message and rule stay, and nobody claims it."""
        road = StoreDriver(store)
        queued = await road.queue(said())
        assert await store.apply(Drop(queued.batch_id, 5, "not for us"))
        story = await road.story(queued.first.id)
        assert (story.state, story.message.text) == ("dropped", "hello")
        verdict = (await road.batch(queued)).verdict
        assert (verdict.action, verdict.rule, verdict.reason) == (Action.DROP, "default", "not for us")
        assert await road.claim(10) == ()
        assert await store.next_ready() is None

    async def test_the_lane_goes_on_behind_it(self, store: ContractStore) -> None:
        """The next batch of the lane is ready at once, and takes in what comes later."""
        road = StoreDriver(store)
        queued = await road.queue(said("first"))
        await road.claim_one()
        behind = await road.queue(said("second"))
        await road.crash()
        assert await store.apply(Drop(queued.batch_id, 5, "it kills us"))
        claimed = await road.claim_one(6)
        assert claimed.batch.id == behind.batch_id
        await road.answer(claimed)

    async def test_an_open_turn_is_over(self, store: ContractStore) -> None:
        """What an earlier attempt began is abandoned with the reason; a return starts a new one."""
        road = StoreDriver(store)
        queued = await road.queue(said())
        claimed = await road.claim_one()
        assert await store.apply(Release(queued.batch_id, claimed.batch.fence, 90, True, "the model is away"))
        assert await store.apply(Drop(queued.batch_id, 5, "no longer needed"))
        turn = await store.turn(claimed.turn_id)
        assert turn is not None
        assert (turn.state, turn.reason, turn.ended_at) == ("abandoned", "no longer needed", 5)
        assert await store.apply(Requeue(queued.batch_id, 6, "needed after all"))
        again = await road.claim_one(6)
        assert again.turn_id != claimed.turn_id
        await road.answer(again)

    async def test_what_was_dropped_stays_dropped_after_a_crash(self, store: ContractStore) -> None:
        """Neither a start nor a second word changes it."""
        road = StoreDriver(store)
        queued = await road.queue(said())
        assert await store.apply(Drop(queued.batch_id, 5, "once"))
        await road.crash(6)
        assert not await store.apply(Drop(queued.batch_id, 7, "twice"))
        assert (await road.batch(queued)).verdict.reason == "once"
        assert await road.claim(10) == ()

    async def test_a_running_batch_is_dropped_where_that_is_asked_for(self, store: ContractStore) -> None:
        """Its turn is abandoned and its owner refused; the lane goes on, and a return begins another turn."""
        road = StoreDriver(store)
        queued = await road.queue(said("first"))
        claimed = await road.claim_one()
        behind = await road.queue(said("second"))
        assert await store.apply(Drop(queued.batch_id, 5, "stopped", running=True))
        assert not await store.apply(Renew(queued.batch_id, claimed.batch.fence, 90))
        late = TurnCommit(claimed.turn_id, queued.batch_id, claimed.batch.fence, outcome("late"), None, 6)
        assert not await store.apply(late)
        turn = await store.turn(claimed.turn_id)
        assert turn is not None
        assert (turn.state, turn.reason, (await road.batch(queued)).state) == ("abandoned", "stopped", "dropped")
        following = await road.claim_one(6)
        assert following.batch.id == behind.batch_id
        await road.answer(following)
        assert await store.apply(Requeue(queued.batch_id, 7, "needed after all"))
        again = await road.claim_one(8)
        assert again.turn_id != claimed.turn_id
        await road.answer(again)
        assert not await store.apply(Drop(queued.batch_id, 9, "too late", running=True))

    async def test_what_does_not_wait_is_not_dropped(self, store: ContractStore) -> None:
        """Leased, done, unknown: no."""
        road = StoreDriver(store)
        queued = await road.queue(said())
        claimed = await road.claim_one()
        drop = Drop(queued.batch_id, 5, "too late")
        assert not await store.apply(drop)
        await road.answer(claimed)
        assert not await store.apply(drop)
        assert (await road.batch(queued)).state == "done"
        assert not await store.apply(Drop(4_711, 5, "nobody"))
