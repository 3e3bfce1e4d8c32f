"""The contract of busy lanes: messages that arrive during a turn join it, restart it, or wait."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.batch import Window
from keepsaid.domain.busy import INTERRUPTED, Interrupt, Steer
from keepsaid.domain.commits import Drop, Fail, Failure, Release, Requeue, StepEnd, StepStart, TurnCommit
from keepsaid.domain.message import Inbound
from keepsaid.domain.prompt import Record, Role
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.route import Action
from keepsaid.domain.turn import ClaimedBatch, Steered, StepKind, Usage
from keepsaid.testing.builders import AT_ONCE, lane_of, outcome, said, step, verdict
from keepsaid.values import frozen
from keepsaid_testkit.contracts.store_driver import ContractStore, Queued, StoreDriver


@frozen
class BusyLane:
    """A lane with a batch at work."""

    road: StoreDriver
    queued: Queued
    claimed: ClaimedBatch

    @property
    def store(self) -> ContractStore:
        """Where it is."""
        return self.road.store

    async def started(self, n: int, *, repeatable: bool = True, of: ClaimedBatch | None = None) -> bool:
        """A call of the turn begins."""
        held = of or self.claimed
        begun = replace(step(n, StepKind.TOOL), repeatable=repeatable)
        return await self.store.apply(StepStart(held.turn_id, held.batch.fence, begun, 0))

    async def finished(self, n: int, *, repeatable: bool = True) -> None:
        """A call of the turn is made."""
        assert await self.started(n, repeatable=repeatable)
        assert await self.store.apply(StepEnd(self.claimed.turn_id, self.claimed.batch.fence, n, "done", Usage(), 0))

    async def more(self, text: str = "more", rule: str = "default", url: str | None = None) -> Queued:
        """Somebody writes meanwhile."""
        return await self.road.queue(replace(said(text), reply_url=url), by=verdict(rule=rule))

    async def joined_in_doubt(self, *newer: Queued) -> None:
        """These join the turn, and then it begins something that must not be repeated."""
        assert [one.batch_id for one in await self.steer(1)] == [one.batch_id for one in newer]
        await self.finished(1)
        await self.started(2, repeatable=False)

    async def fail(self, *reply_ids: int, how: Failure = Failure.PARK) -> str:
        """The turn is given up, with a notice."""
        notice, held = ReplyDraft(self.road.new_id(), "I could not", notice=True), self.claimed.batch
        return await self.store.apply(Fail(held.id, held.fence, how, "it broke", 0, 0, notice, reply_ids))

    async def interrupt(self, window: Window = AT_ONCE) -> int | None:
        """The newest message wants the lane."""
        return await self.store.apply(Interrupt(lane_of(), window, 5))

    async def steer(self, n: int, window: Window = AT_ONCE, of: ClaimedBatch | None = None) -> tuple[Steered, ...]:
        """The turn asks what came."""
        held = of or self.claimed
        return await self.store.apply(Steer(held.turn_id, held.batch.id, held.batch.fence, n, window))

    async def commit(self, *steered: int, of: ClaimedBatch | None = None) -> bool:
        """The turn ends, having been shown these batches."""
        held = of or self.claimed
        shown = Record(Role.USER, "more", speaker="Ann", ref="message:77")
        end = replace(outcome("both"), records=(shown, Record(Role.ASSISTANT, "both")))
        draft = ReplyDraft(self.road.new_id(), "both")
        commit = TurnCommit(held.turn_id, held.batch.id, held.batch.fence, end, draft, 9, steered=steered)
        return await self.store.apply(commit)

    async def is_untouched(self, waiting: Queued) -> None:
        """Both batches are as they were."""
        assert (await self.road.batch(self.queued)).state == "leased"
        assert (await self.road.batch(waiting)).id == waiting.batch_id
        assert await self.started(9), "the holder still has it"


async def busy(road: StoreDriver, inbound: Inbound | None = None) -> BusyLane:
    """A lane at work on one message."""
    queued = await road.queue(inbound or said("first"))
    return BusyLane(road, queued, await road.claim_one())


class InterruptContract:
    """The running batch restarts with the new messages, or nothing changes."""

    async def test_the_two_are_one_batch_and_the_turn_is_over(self, store: ContractStore) -> None:
        """A new turn starts without replay; the old holder is refused."""
        lane = await busy(StoreDriver(store))
        await lane.finished(0)
        newer = await lane.more()
        assert await lane.interrupt() == lane.queued.batch_id
        turn = await store.turn(lane.claimed.turn_id)
        assert turn is not None
        assert (turn.state, turn.reason, turn.ended_at) == ("abandoned", INTERRUPTED, 5)
        assert not await lane.started(1)
        assert not await lane.commit()
        again = await lane.road.claim_one()
        assert (again.batch.id, again.steps, again.turn_id != lane.claimed.turn_id) == (lane.queued.batch_id, (), True)
        assert [message.text for message in again.messages] == ["first", "more"]
        assert (again.batch.attempts, again.batch.crashes) == (0, 0)
        assert again.batch.fence > lane.claimed.batch.fence
        assert not await lane.started(1), "its fence is old"
        assert await lane.commit(of=again)
        story = await lane.road.story(newer.first.id)
        assert (story.state, story.turn_id) == ("done", again.turn_id)
        assert (await store.overview()).batches == {"done": 1}

    async def test_it_takes_the_better_priority(self, store: ContractStore) -> None:
        """Of the two."""
        road = StoreDriver(store)
        await road.queue(said("first", priority=50))
        lane = BusyLane(road, await road.queue(said("other", "den")), (await road.claim(limit=9))[1])
        await road.queue(said("more", priority=20))
        assert await lane.interrupt() is not None
        assert (await road.claim_one()).batch.priority == 20

    async def test_nothing_runs_or_nothing_came(self, store: ContractStore) -> None:
        """No move."""
        lane = await busy(StoreDriver(store))
        assert await lane.interrupt() is None
        assert await lane.commit()
        await lane.more()
        assert await lane.interrupt() is None

    async def test_another_rule_or_a_full_window_waits_its_turn(self, store: ContractStore) -> None:
        """A restart without it would repeat work; so a batch restarts a bounded number of times."""
        lane = await busy(StoreDriver(store))
        waiting = await lane.more(rule="other")
        assert await lane.interrupt() is None
        await lane.is_untouched(waiting)
        lane = await busy(lane.road, said("first", "den"))
        waiting = await lane.road.queue(said("more", "den"))
        for full in (replace(AT_ONCE, count_max=1), replace(AT_ONCE, chars_max=8)):
            assert await store.apply(Interrupt(lane_of("den"), full, 5)) is None
        await lane.is_untouched(waiting)

    async def test_what_lies_between_keeps_them_apart(self, store: ContractStore) -> None:
        """A batch is contiguous."""
        lane = await busy(StoreDriver(store))
        await lane.road.queue(said("noise"), by=verdict(Action.DROP, "noise"))
        waiting = await lane.more()
        assert await lane.interrupt() is None
        await lane.is_untouched(waiting)

    async def test_what_must_not_be_done_again_is_not_begun_anew(self, store: ContractStore) -> None:
        """Whether or not its result is known."""
        road = StoreDriver(store)
        for room, finish in (("a", False), ("b", True)):
            lane = await busy(road, said("first", room))
            await (lane.finished(0, repeatable=False) if finish else lane.started(0, repeatable=False))
            waiting = await lane.road.queue(said("more", room))
            assert await store.apply(Interrupt(lane_of(room), AT_ONCE, 5)) is None
            await lane.is_untouched(waiting)
            assert await lane.commit()
            await road.answer(await road.claim_one())

    async def test_the_innocent_does_not_join_a_suspect(self, store: ContractStore) -> None:
        """Nor one that was charged or deferred: its past would be theirs."""
        road = StoreDriver(store)
        for room in ("crashed", "failed", "deferred"):
            lane = await busy(road, said("first", room))
            batch_id, fence = lane.claimed.batch.id, lane.claimed.batch.fence
            if room == "crashed":
                await lane.road.crash()
            elif room == "failed":
                await store.apply(Fail(batch_id, fence, Failure.RETRY, "it broke", 0))
            else:
                await store.apply(Release(batch_id, fence, 0, deferred=True, reason="away"))
            lane = BusyLane(lane.road, lane.queued, await lane.road.claim_one(50))
            waiting = await lane.road.queue(said("more", room))
            assert await store.apply(Interrupt(lane_of(room), AT_ONCE, 5)) is None
            await lane.is_untouched(waiting)
            assert await lane.commit()
            [rest] = await lane.road.claim(60)
            await lane.road.answer(rest)


class SteerContract:
    """What waits next joins a running turn, and is done when that is."""

    async def test_it_is_shown_and_settled_with_the_turn(self, store: ContractStore) -> None:
        """One reply, in the stories of both; each remembered once."""
        lane = await busy(StoreDriver(store))
        newer = await lane.more()
        [steered] = await lane.steer(2)
        assert (steered.batch_id, steered.n, [one.text for one in steered.messages]) == (newer.batch_id, 2, ["more"])
        assert await lane.steer(4) == (), "it is shown once"
        assert (await lane.road.story(newer.first.id)).state == "batched"
        assert not await lane.commit(), "the turn does not forget it"
        assert await lane.commit(newer.batch_id)
        story, first = await lane.road.story(newer.first.id), await lane.road.story(lane.queued.first.id)
        assert (story.state, story.turn_id, story.replies) == ("done", lane.claimed.turn_id, first.replies)
        assert [reply.draft.text for reply in story.replies] == ["both"]
        turn = await store.turn(lane.claimed.turn_id)
        assert turn is not None
        assert [message.text for message in turn.messages] == ["first", "more"]
        assert [record.text for record in turn.records] == ["first", "more", "both"]
        assert (await store.context(lane_of(), 9)).recent.refs[1] == "message:77"
        works = await store.episode_work(9)
        assert [(work.batch_id, work.reply) for work in works] == [(lane.queued.batch_id, "both"), (newer.batch_id, "")]
        assert await lane.road.claim() == ()

    async def test_several_join_and_what_exceeds_the_window_waits(self, store: ContractStore) -> None:
        """In order, and nothing is overtaken."""
        lane = await busy(StoreDriver(store))
        rules = ("a", "b", "c", "d")
        waiting = [await lane.more(f"more {rule}", rule) for rule in rules]
        assert [one.batch_id for one in await lane.steer(1, replace(AT_ONCE, count_max=3))] == [
            queued.batch_id for queued in waiting[:2]
        ]
        assert await lane.steer(3, replace(AT_ONCE, count_max=3)) == ()
        assert await lane.steer(3, replace(AT_ONCE, chars_max=20)) == ()
        assert await lane.commit(*(queued.batch_id for queued in waiting[:2]))
        assert (await lane.road.claim_one()).batch.id == waiting[2].batch_id

    async def test_what_was_shown_is_not_extended(self, store: ContractStore) -> None:
        """Later messages are a batch of their own."""
        lane = await busy(StoreDriver(store))
        newer = await lane.more()
        await lane.steer(1)
        later = await lane.more("later")
        assert (await lane.road.batch(later)).id != newer.batch_id
        assert [one.batch_id for one in await lane.steer(3)] == [later.batch_id]

    async def test_a_retry_is_shown_what_its_steps_were_and_no_more(self, store: ContractStore) -> None:
        """What no finished step has seen is left to itself: should it be poison, the first is not charged for it."""
        lane = await busy(StoreDriver(store))
        seen = await lane.more("seen")
        await lane.steer(1)
        await lane.finished(1)
        unseen = await lane.more("unseen", "other")
        await lane.steer(2)
        assert await lane.started(2)
        await lane.road.crash()
        again = await lane.road.claim_one()
        assert again.batch.id == lane.queued.batch_id
        assert [(one.batch_id, one.n) for one in again.steered] == [(seen.batch_id, 1)]
        assert [message.text for message in again.all_messages] == ["first", "seen"]
        assert await lane.steer(2, of=again) == (), "a suspect is joined by nobody"
        assert await lane.commit(seen.batch_id, of=again)
        rest = await lane.road.claim_one()
        assert (rest.batch.id, rest.batch.crashes, rest.batch.attempts) == (unseen.batch_id, 0, 0)

    async def test_a_release_keeps_what_was_seen(self, store: ContractStore) -> None:
        """And the next attempt may be joined again."""
        lane = await busy(StoreDriver(store))
        await lane.more("seen")
        await lane.steer(1)
        await lane.finished(1)
        await store.apply(Release(lane.claimed.batch.id, lane.claimed.batch.fence, 0))
        later = await lane.more("later")
        again = await lane.road.claim_one()
        assert [one.batch_id for one in await lane.steer(2, of=again)] == [later.batch_id]

    async def test_when_the_turn_is_abandoned_it_waits_for_its_own(self, store: ContractStore) -> None:
        """Uncharged."""
        road = StoreDriver(store)
        for how in (Failure.BURY, Failure.PARK):
            lane = await busy(road)
            newer = await lane.more()
            await lane.steer(1)
            await lane.finished(1)
            await store.apply(Fail(lane.claimed.batch.id, lane.claimed.batch.fence, how, "it broke", 0))
            own = await lane.road.claim_one(50)
            assert (own.batch.id, own.batch.attempts, own.steps) == (newer.batch_id, 0, ())
            assert own.turn_id != lane.claimed.turn_id
            await lane.road.answer(own)
            assert (await lane.road.story(newer.first.id)).turn_id == own.turn_id

    async def test_only_the_holder_is_shown_anything(self, store: ContractStore) -> None:
        """An old fence sees nothing, and takes nothing."""
        lane = await busy(StoreDriver(store))
        await lane.more()
        await store.apply(Release(lane.claimed.batch.id, lane.claimed.batch.fence, 0))
        assert await lane.steer(1) == ()
        again = await lane.road.claim_one()
        assert await lane.steer(1) == ()
        assert len(await lane.steer(1, of=again)) == 1

    async def test_what_was_shown_cannot_be_dropped(self, store: ContractStore) -> None:
        """It is being answered."""
        lane = await busy(StoreDriver(store))
        newer = await lane.more()
        await lane.steer(1)
        assert not await store.apply(Drop(newer.batch_id, 5, "never mind"))
        assert await lane.commit(newer.batch_id)

    async def test_a_stranger_does_not_join_in_a_direct_chat(self, store: ContractStore) -> None:
        """The turn has the tools of the one person it began with."""
        mine = said("first")
        direct = replace(mine, origin=replace(mine.origin, direct=True))
        lane = await busy(StoreDriver(store), direct)
        await lane.road.queue(replace(said("more"), origin=replace(mine.origin, sender="eve", direct=True)))
        assert await lane.steer(1) == ()


class ParkedContract:
    """What had joined a turn before it began something that must not be repeated waits for a person."""

    async def test_what_a_broken_turn_may_have_done_for_it_is_not_done_again(self, store: ContractStore) -> None:
        """It is parked with the turn; a person queues it again, and it is nobody's then."""
        road = StoreDriver(store)
        for how in (Failure.BURY, Failure.PARK):
            lane = await busy(road)
            newer = await lane.more()
            await lane.steer(1)
            await lane.finished(1)
            late = await lane.more("late")
            await lane.finished(2, repeatable=False)
            await lane.steer(3)
            await lane.finished(3)
            await store.apply(Fail(lane.claimed.batch.id, lane.claimed.batch.fence, how, "it broke", 0))
            assert (await road.batch(newer)).state == "review"
            own = await road.claim_one(50)
            assert own.batch.id == late.batch_id, "what came after that call asked for nothing yet"
            await road.answer(own)
            assert await store.apply(Requeue(newer.batch_id, 60, "it was not done"))
            own = await road.claim_one(70)
            assert (own.batch.id, own.steps) == (newer.batch_id, ())
            await road.answer(own)
            assert (await road.story(newer.first.id)).turn_id == own.turn_id

    async def test_what_is_parked_with_a_turn_is_told_at_its_own_address(self, store: ContractStore) -> None:
        """Once at each; whoever is answered where the first one is hears of it there."""
        lane = await busy(StoreDriver(store), replace(said("first"), reply_url="https://a.test/"))
        urls = ("https://a.test/", "https://b.test/", "https://b.test/", None, "https://c.test/")
        joined = [await lane.more(rule=str(n), url=url) for n, url in enumerate(urls)]
        await lane.joined_in_doubt(*joined)
        assert await lane.fail(901, 902) == "review"
        told = [(await lane.road.story(one.first.id)).replies for one in (lane.queued, *joined)]
        first, _, second, _, pulled, _ = told
        assert [[reply.draft.url for reply in replies] for replies in told] == [
            ["https://a.test/"], [], ["https://b.test/"], [], [None], []
        ]  # fmt: skip
        assert [reply.id for reply in (*second, *pulled)] == [901, 902], "for the last one there is no id"
        drafts = {(reply.draft.text, reply.draft.notice) for reply in (*first, *second, *pulled)}
        assert drafts == {("I could not", True)}

    async def test_what_is_parked_with_a_turn_is_queued_again_with_it(self, store: ContractStore) -> None:
        """By one word of a person; each has a turn of its own then, in order."""
        lane = await busy(StoreDriver(store))
        joined = [await lane.more(rule=rule) for rule in ("a", "b")]
        await lane.joined_in_doubt(*joined)
        await lane.fail(how=Failure.BURY)
        assert [(await lane.road.batch(one)).state for one in (lane.queued, *joined)] == ["dead", "review", "review"]
        assert await store.apply(Requeue(lane.queued.batch_id, 60, "it was not done"))
        for one in (lane.queued, *joined):
            own = await lane.road.claim_one(70)
            assert (own.batch.id, own.steps) == (one.batch_id, ())
            await lane.road.answer(own)
