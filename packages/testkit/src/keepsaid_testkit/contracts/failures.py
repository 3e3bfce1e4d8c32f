"""The contract of failure: fences, charges, parking, burial, and the way back."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import (
    ATTEMPTS_MAX,
    Commit,
    ExpireLeases,
    Fail,
    Failure,
    Release,
    Renew,
    Requeue,
    StepEnd,
    StepStart,
    TurnCommit,
)
from keepsaid.domain.message import ProviderMarks
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.route import Action
from keepsaid.domain.turn import ClaimedBatch, Usage
from keepsaid.testing.builders import outcome, said, step, verdict
from keepsaid_testkit.contracts.store_driver import LEASE_MS, ContractStore, Queued, StoreDriver


def fenced(claimed: ClaimedBatch) -> tuple[Commit[bool], ...]:
    """Everything that only the holder of a lease may do, but failing."""
    batch_id, turn_id, fence = claimed.batch.id, claimed.turn_id, claimed.batch.fence
    return (
        Renew(batch_id, fence, 9_999_999),
        StepStart(turn_id, fence, step(9), 0),
        StepEnd(turn_id, fence, 1, "late", Usage(), 0),
        TurnCommit(turn_id, batch_id, fence, outcome("late"), ReplyDraft(7_777, "late"), 0),
        Release(batch_id, fence, 0),
    )


async def is_shut_out(road: StoreDriver, claimed: ClaimedBatch, queued: Queued) -> None:
    """Nothing the former holder does has any effect."""
    store = road.store
    before = (await road.story(queued.first.id), await store.turn(claimed.turn_id), await store.overview())
    for commit in fenced(claimed):
        assert await store.apply(commit) is False, commit
    for how in Failure:
        failed = Fail(claimed.batch.id, claimed.batch.fence, how, "late", 0, notice=ReplyDraft(7_778, "late"))
        assert await store.apply(failed) == (await road.batch(queued)).state
    assert before == (await road.story(queued.first.id), await store.turn(claimed.turn_id), await store.overview())


async def start(road: StoreDriver, room: str = "room") -> tuple[Queued, ClaimedBatch]:
    """A batch in hand, in its first step."""
    queued = await road.queue(said(room=room))
    claimed = await road.claim_one()
    first = StepStart(claimed.turn_id, claimed.batch.fence, step(1), 0)
    assert await road.store.apply(first)
    return queued, claimed


class FenceContract:
    """Whoever lost a lease cannot write any more."""

    async def test_the_holder_may(self, store: ContractStore) -> None:
        """Else the refusals would mean nothing."""
        road = StoreDriver(store)
        _, claimed = await start(road, "a")
        renew, start_step, end_step, commit, _ = fenced(claimed)
        for allowed in (renew, start_step, end_step, commit):
            assert await store.apply(allowed) is True, allowed
        _, claimed = await start(road, "b")
        assert await store.apply(fenced(claimed)[-1]) is True

    async def test_not_after_the_lease_ran_out(self, store: ContractStore) -> None:
        """Even while nobody else has it."""
        road = StoreDriver(store)
        queued, claimed = await start(road)
        await store.apply(ExpireLeases(LEASE_MS))
        await is_shut_out(road, claimed, queued)

    async def test_not_while_another_has_it(self, store: ContractStore) -> None:
        """The fence is old."""
        road = StoreDriver(store)
        queued, claimed = await start(road)
        await store.apply(ExpireLeases(LEASE_MS))
        await road.claim_one(LEASE_MS, owner="two")
        await is_shut_out(road, claimed, queued)

    async def test_not_after_a_crash(self, store: ContractStore) -> None:
        """A process that was believed dead is."""
        road = StoreDriver(store)
        queued, claimed = await start(road)
        await road.crash()
        await is_shut_out(road, claimed, queued)

    async def test_not_after_giving_it_back(self, store: ContractStore) -> None:
        """A release is final."""
        road = StoreDriver(store)
        queued, claimed = await start(road)
        assert await store.apply(Release(queued.batch_id, claimed.batch.fence, 0))
        await is_shut_out(road, claimed, queued)

    async def test_not_after_the_commit(self, store: ContractStore) -> None:
        """A turn is committed once."""
        road = StoreDriver(store)
        queued, claimed = await start(road)
        await road.answer(claimed)
        await is_shut_out(road, claimed, queued)

    async def test_not_after_burial(self, store: ContractStore) -> None:
        """Nor after it was queued again by hand."""
        road = StoreDriver(store)
        queued, claimed = await start(road)
        await store.apply(Fail(queued.batch_id, claimed.batch.fence, Failure.BURY, "broken", 0))
        await is_shut_out(road, claimed, queued)
        assert await store.apply(Requeue(queued.batch_id, 0, "again"))
        await is_shut_out(road, claimed, queued)

    async def test_a_fence_that_never_was(self, store: ContractStore) -> None:
        """Neither a later one nor an unknown batch."""
        road = StoreDriver(store)
        queued, claimed = await start(road)
        await is_shut_out(road, replace(claimed, batch=replace(claimed.batch, fence=claimed.batch.fence + 1)), queued)
        stranger = replace(claimed, turn_id=4_711, batch=replace(claimed.batch, id=4_712))
        for commit in fenced(stranger):
            assert await store.apply(commit) is False, commit


def fail(
    claimed: ClaimedBatch, how: Failure, at: int = 0, not_before: int = 0, notice: ReplyDraft | None = None
) -> Fail:
    """The holder reports a failure."""
    return Fail(claimed.batch.id, claimed.batch.fence, how, "it broke", at, not_before, notice)


class FailContract:
    """A batch pays for its own errors, three times."""

    async def test_a_failed_batch_is_tried_again_later(self, store: ContractStore) -> None:
        """Charged one attempt; its turn stays open."""
        road = StoreDriver(store)
        queued, claimed = await start(road)
        assert await store.apply(fail(claimed, Failure.RETRY, 10, 40)) == "queued"
        batch = await road.batch(queued)
        assert (batch.state, batch.attempts, batch.crashes) == ("queued", 1, 0)
        assert await road.claim(39) == ()
        assert await store.next_ready() == 40
        again = await road.claim_one(40)
        assert (again.turn_id, [one.n for one in again.steps]) == (claimed.turn_id, [1])

    async def test_the_third_failure_is_the_last(self, store: ContractStore) -> None:
        """Dead, visible, the person told; the lane goes on."""
        road = StoreDriver(store)
        queued = await road.queue(said())
        for attempt in range(1, ATTEMPTS_MAX + 1):
            claimed = await road.claim_one(99)
            notice = ReplyDraft(road.new_id(), "sorry", notice=True)
            state = await store.apply(fail(claimed, Failure.RETRY, 10 + attempt, notice=notice))
            assert state == ("dead" if attempt == ATTEMPTS_MAX else "queued")
        story = await road.story(queued.first.id)
        assert (story.state, story.batch and story.batch.attempts) == ("dead", ATTEMPTS_MAX)
        assert [reply.id for reply in story.replies] == [notice.id]
        turn = await store.turn(claimed.turn_id)
        assert turn is not None
        assert (turn.state, turn.reason, turn.ended_at) == ("abandoned", "it broke", 10 + ATTEMPTS_MAX)
        assert await road.claim(99) == ()
        await road.queue(said("next"))
        assert [message.text for message in (await road.claim_one(99)).messages] == ["next"]

    async def test_a_failure_clears_the_suspicion(self, store: ContractStore) -> None:
        """It raised its own error, so the process lived."""
        road = StoreDriver(store)
        queued = await road.queue(said())
        await road.claim_one(owner="dead")
        await road.crash()
        claimed = await road.claim_one()
        assert claimed.batch.crashes == 1
        await store.apply(fail(claimed, Failure.RETRY))
        batch = await road.batch(queued)
        assert (batch.attempts, batch.crashes) == (1, 0)

    async def test_what_cannot_succeed_is_buried_at_once(self, store: ContractStore) -> None:
        """Without a second try."""
        road = StoreDriver(store)
        queued, claimed = await start(road)
        assert await store.apply(fail(claimed, Failure.BURY, 7)) == "dead"
        story = await road.story(queued.first.id)
        assert (story.state, story.batch and story.batch.attempts, story.replies) == ("dead", 1, ())

    async def test_what_may_have_happened_is_parked(self, store: ContractStore) -> None:
        """For a person to decide; not charged, and its lane goes on."""
        road = StoreDriver(store)
        queued, claimed = await start(road)
        notice = ReplyDraft(road.new_id(), "please look", notice=True)
        assert await store.apply(fail(claimed, Failure.PARK, 7, notice=notice)) == "review"
        story = await road.story(queued.first.id)
        assert (story.state, story.batch and story.batch.attempts) == ("review", 0)
        assert [(reply.id, reply.state, reply.draft.notice) for reply in story.replies] == [
            (notice.id, "pending", True)
        ]
        turn = await store.turn(claimed.turn_id)
        assert turn is not None
        assert (turn.state, turn.reason) == ("abandoned", "it broke")
        await road.queue(said("next"))
        assert [message.text for message in (await road.claim_one()).messages] == ["next"]

    async def test_failed_work_is_not_remembered(self, store: ContractStore) -> None:
        """Only turns and spawned work are."""
        road = StoreDriver(store)
        for how in (Failure.BURY, Failure.PARK):
            _, claimed = await start(road)
            await store.apply(fail(claimed, how))
        assert await store.episode_work(10) == []

    async def test_a_notice_goes_where_the_last_message_wants_its_reply(self, store: ContractStore) -> None:
        """To its URL, naming it."""
        road = StoreDriver(store)
        await road.queue(said("one"))
        marks = ProviderMarks(provider_id="p2")
        await road.queue(replace(said("two", marks=marks), reply_url="https://example.org/in"))
        claimed = await road.claim_one()
        await store.apply(fail(claimed, Failure.BURY, 7, notice=ReplyDraft(900, "sorry", notice=True)))
        [reply] = (await road.story(claimed.messages[0].id)).replies
        assert reply.draft == ReplyDraft(900, "sorry", True, "https://example.org/in", "p2")
        assert (reply.lane, reply.created_at, reply.turn_id) == (claimed.batch.lane, 7, None)

    async def test_a_notice_goes_to_the_newest_url_there_is(self, store: ContractStore) -> None:
        """Also when a later message named none."""
        road = StoreDriver(store)
        await road.queue(replace(said("one"), reply_url="https://example.org/in"))
        await road.queue(said("two"))
        claimed = await road.claim_one()
        await store.apply(fail(claimed, Failure.BURY, 7, notice=ReplyDraft(900, "sorry", notice=True)))
        [reply] = (await road.story(claimed.messages[0].id)).replies
        assert reply.draft.url == "https://example.org/in"


class OutageContract:
    """The reason for a wait is visible, and a wait costs nothing."""

    async def test_a_batch_that_waits_says_why_and_until_when(self, store: ContractStore) -> None:
        """Counted, uncharged, and at work again when its time has come."""
        road = StoreDriver(store)
        queued, claimed = await start(road)
        away = Release(queued.batch_id, claimed.batch.fence, 40, deferred=True, reason="the model is away")
        assert await store.apply(away)
        batch = await road.batch(queued)
        assert (batch.state, batch.error, batch.ready_at) == ("queued", "the model is away", 40)
        assert (batch.deferrals, batch.attempts, (await store.overview()).deferred) == (1, 0, 1)
        again = await road.claim_one(40)
        assert (again.batch.error, (await store.overview()).deferred) == ("the model is away", 0)

    async def test_a_release_without_a_reason_leaves_the_last_one(self, store: ContractStore) -> None:
        """A stop in the middle of an outage hides nothing; a requeue starts a new one."""
        road = StoreDriver(store)
        queued, claimed = await start(road)
        await store.apply(Release(queued.batch_id, claimed.batch.fence, 0, deferred=True, reason="the model is away"))
        claimed = await road.claim_one()
        await store.apply(Release(queued.batch_id, claimed.batch.fence, 0))
        assert (await road.batch(queued)).error == "the model is away"
        claimed = await road.claim_one()
        await store.apply(fail(claimed, Failure.BURY))
        assert (await road.batch(queued)).error == "it broke"
        await store.apply(Requeue(queued.batch_id, 20, "by hand"))
        assert (await road.batch(queued)).error == ""


class RequeueContract:
    """The way back, by a person's word."""

    async def test_each_end_but_done_has_a_way_back(self, store: ContractStore) -> None:
        """Dead, parked and dropped batches start again, uncharged, with a new turn."""
        road = StoreDriver(store)
        for room, how in (("dead", Failure.BURY), ("review", Failure.PARK), ("dropped", None)):
            by = verdict(Action.DROP, "noise") if how is None else None
            queued = await road.queue(said(room=room), by=by)
            turn_id = None
            if how is not None:
                claimed = await road.claim_one()
                turn_id = claimed.turn_id
                await store.apply(fail(claimed, how))
            assert (await road.batch(queued)).state == room
            assert await store.apply(Requeue(queued.batch_id, 20, "by hand"))
            batch = await road.batch(queued)
            assert (batch.state, batch.attempts, batch.crashes, batch.deferrals) == ("queued", 0, 0, 0)
            assert (batch.verdict.action, batch.verdict.reason) == (Action.FORWARD, "by hand")
            assert await road.claim(19) == ()
            again = await road.claim_one(20)
            assert again.turn_id != turn_id
            assert again.steps == ()
            await road.answer(again)
            assert (await road.story(queued.first.id)).turn_id == again.turn_id

    async def test_what_is_open_or_done_stays(self, store: ContractStore) -> None:
        """Queued, leased, done, unknown: no."""
        road = StoreDriver(store)
        queued = await road.queue(said())
        requeue = Requeue(queued.batch_id, 0, "by hand")
        assert not await store.apply(requeue)
        claimed = await road.claim_one()
        assert not await store.apply(requeue)
        await road.answer(claimed)
        assert not await store.apply(requeue)
        assert (await road.batch(queued)).state == "done"
        assert not await store.apply(Requeue(4_711, 0, "by hand"))
