"""The contract of lists, counts, and kill points."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import Fail, Failure, Renew
from keepsaid.domain.route import Action
from keepsaid.domain.views import ChannelDepth, MessageFilter
from keepsaid.ports import runtime
from keepsaid.testing.builders import CHANNEL, lane_of, outcome, said, verdict
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver
from keepsaid_testkit.contracts.turns import committed, turn_of


class StoriesContract:
    """What a person sees of the inbox."""

    async def test_messages_newest_first(self, store: ContractStore) -> None:
        """As many as asked for."""
        road = StoreDriver(store)
        for at in (10, 20, 30):
            await road.receive(said(f"at {at}"), at)
        found = await store.find(MessageFilter())
        assert [story.message.text for story in found] == ["at 30", "at 20", "at 10"]
        assert list(await store.find(MessageFilter(limit=2))) == list(found[:2])
        assert found[0] == await road.story(found[0].message.id)

    async def test_messages_of_a_channel_or_conversation(self, store: ContractStore) -> None:
        """Both must fit."""
        road = StoreDriver(store)
        for room, channel in (("a", CHANNEL), ("b", CHANNEL), ("a", "other")):
            await road.receive(said(f"{channel}/{room}", room, channel=channel))
        wanted = (MessageFilter(channel="other"), MessageFilter(conversation="a"), MessageFilter(CHANNEL, None, "a"))
        found = [{story.message.text for story in await store.find(one)} for one in wanted]
        assert found == [{"other/a"}, {"test/a", "other/a"}, {"test/a"}]
        assert list(await store.find(MessageFilter(channel="none"))) == []

    async def test_messages_by_what_became_of_them(self, store: ContractStore) -> None:
        """Each has one state, read off its batch."""
        road = StoreDriver(store)
        await road.settle(said("done", "done"))
        for state, how in (("dead", Failure.BURY), ("review", Failure.PARK)):
            await road.queue(said(state, state))
            claimed = await road.claim_one()
            await store.apply(Fail(claimed.batch.id, claimed.batch.fence, how, "broken", 0))
        await road.queue(said("dropped", "dropped"), by=verdict(Action.DROP, "noise"))
        await road.queue(said("batched", "batched"))
        await road.claim()
        await road.queue(said("batched", "later"))
        await road.receive(said("received", "new"))
        for state in ("received", "batched", "done", "dropped", "review", "dead"):
            found = await store.find(MessageFilter(state=state))
            assert {(story.state, story.message.text) for story in found} == {(state, state)}
        assert len(await store.find(MessageFilter(state="batched"))) == 2

    async def test_a_silent_turn_keeps_its_reason(self, store: ContractStore) -> None:
        """With its batch done, what was said kept, and nothing to send; a turn with a reply has none."""
        road = StoreDriver(store)
        await road.queue(said("hello"))
        claimed = await road.claim_one()
        silent = replace(committed(claimed), outcome=replace(outcome(""), records=(), silent="nobody asked"))
        assert await store.apply(silent)
        turn, story = await turn_of(store, claimed), await road.story(claimed.messages[0].id)
        assert (turn.state, turn.reason, turn.replies) == ("committed", "silent: nobody asked", ())
        assert [record.text for record in turn.records] == ["hello"]
        assert (story.state, story.silent, story.replies) == ("done", "nobody asked", ())
        await road.queue(said("again"))
        answered = await road.claim_one()
        await road.answer(answered)
        assert (await turn_of(store, answered)).reason == ""

    async def test_counts(self, store: ContractStore) -> None:
        """What is where."""
        road = StoreDriver(store)
        await road.settle(said(room="a"))
        await road.settle(said(channel="other"))
        await road.queue(said(room="b"))
        await road.claim()
        await road.queue(said(room="c"))
        await road.receive(said(room="d"), at=70)
        await road.receive(said(room="e"), at=60)
        overview = await store.overview()
        here = ChannelDepth(CHANNEL, 2, 60, queued=1, leased=1, routed_at=0)
        assert overview.channels == (ChannelDepth("other", 0, None), here)
        assert overview.batches == {"done": 2, "leased": 1, "queued": 1}
        assert overview.replies == {"pending": 2}
        assert overview.turns == {"committed": 2, "open": 1}
        assert (overview.tasks, overview.episodes_due, overview.messages) == ({}, 2, 6)

    async def test_what_waits_in_each_channel(self, store: ContractStore) -> None:
        """In every state, with the oldest of what waits for the program and of what waits for a person."""
        road = StoreDriver(store)
        for room, at, how in (("a", 3, Failure.BURY), ("b", 4, Failure.PARK)):
            await road.queue(said(room=room), at)
            batch = (await road.claim_one(at)).batch
            await store.apply(Fail(batch.id, batch.fence, how, "it broke", at))
        for n in range(3):
            await road.receive(said(f"{n}", room="c"), 6 + n)
        await road.queue(said(channel="other"), 5)
        await road.claim_one(9)
        await road.route(lane_of("c"))
        await road.receive(said(channel="other"), 7)
        [here, other] = sorted((await store.overview()).channels, key=lambda one: one.channel != CHANNEL)
        assert here == ChannelDepth(CHANNEL, 0, None, queued=3, review=1, dead=1, routed_at=6, person_at=3)
        assert other == ChannelDepth("other", 1, 7, leased=1, routed_at=5)
        assert (here.waiting_since, here.for_person, other.waiting_since) == (6, 2, 5)

    async def test_the_oldest_that_waits(self, store: ContractStore) -> None:
        """Of each channel, and again after all that waited was routed."""
        road = StoreDriver(store)
        for at in (5, 7):
            await road.receive(said(), at=at)
        await road.receive(said(room="b"), at=6)
        assert [(one.unrouted, one.oldest_at) for one in (await store.overview()).channels] == [(3, 5)]
        await road.route(lane_of(), at=8)
        assert [(one.unrouted, one.oldest_at) for one in (await store.overview()).channels] == [(1, 6)]
        for at in (9, 11):
            await road.receive(said(), at=at)
        await road.route(lane_of("b"), at=12)
        assert [(one.unrouted, one.oldest_at) for one in (await store.overview()).channels] == [(2, 9)]
        await road.route(lane_of(), at=13)
        assert [(one.unrouted, one.oldest_at) for one in (await store.overview()).channels] == [(0, None)]

    async def test_messages_that_were_ever_stored(self, store: ContractStore) -> None:
        """By channel, in whatever state they are; none is lost while every one is in its lane."""
        road = StoreDriver(store)
        assert (await store.received(), await store.lost()) == ({}, 0)
        await road.settle(said("answered"))
        await road.queue(said("queued", "a"))
        await road.receive(said("new", "b", channel="other"))
        assert await store.received() == {CHANNEL: 2, "other": 1}
        assert await store.lost() == 0

    async def test_nothing_yet(self, store: ContractStore) -> None:
        """An empty store counts nothing."""
        overview = await store.overview()
        assert (overview.channels, overview.messages, overview.episodes_due) == ((), 0, 0)
        assert (overview.batches, overview.replies, overview.tasks, overview.turns) == ({}, {}, {}, {})
        assert list(await store.find(MessageFilter())) == []


class PointsContract:
    """Each commit passes a named point on either side, where a harness can kill the process."""

    async def test_before_and_after(self, store: ContractStore) -> None:
        """After it is kept, before it is answered; refused ones too."""
        road, passed = StoreDriver(store), list[str]()
        runtime.arm(passed.append)
        try:
            await road.settle(said())
            await store.apply(Renew(4_711, 1, 0))
        finally:
            runtime.arm(None)
        commits = ("Receive", "Dispatch", "ClaimBatches", "TurnCommit", "Renew")
        assert passed == [f"commit.{name}.{side}" for name in commits for side in ("before", "after")]
