"""The contract of the outbox: replies leave in order, under a fence, and doubt is said aloud."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import Decide, Doubt, MarkReplyShown, Resend, Settle, TakeReplies
from keepsaid.domain.message import Inbound
from keepsaid.domain.reply import Delivered, ReplyDraft, StoredReply
from keepsaid.domain.retention import Backlog
from keepsaid.domain.views import MessageFilter
from keepsaid.testing.builders import CHANNEL, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver
from keepsaid_testkit.contracts.turns import committed


async def take(store: ContractStore, at: int = 0, limit: int = 10, owner: str = "one") -> list[StoredReply]:
    """Take what may be pushed now."""
    return list(await store.apply(TakeReplies((CHANNEL,), owner, limit, at)))


def settled(reply: StoredReply, what: Delivered, at: int = 0, retry_at: int = 0) -> Settle:
    """Its outcome."""
    return Settle(reply.id, reply.fence, what, at, retry_at=retry_at)


async def state_of(store: ContractStore, reply: StoredReply) -> str:
    """Its state now."""
    assert reply.turn_id is not None
    turn = await store.turn(reply.turn_id)
    assert turn is not None
    return next(one.state for one in turn.replies if one.id == reply.id)


async def answered_at(road: StoreDriver, inbound: Inbound, url: str | None) -> int:
    """A reply that is to be pushed to a URL, or pulled; its id."""
    await road.queue(inbound)
    claimed = await road.claim_one()
    draft = ReplyDraft(road.new_id(), "yes", url=url)
    assert await road.store.apply(committed(claimed, reply=draft))
    return draft.id


class TakingContract:
    """Of each conversation the first reply that is not settled."""

    async def test_a_reply_is_taken_once(self, store: ContractStore) -> None:
        """With a fence and a key of its own."""
        road = StoreDriver(store)
        reply_id = await road.settle(said(), "answer", at=5)
        assert await take(store, 4) == []
        [reply] = await take(store, 5)
        assert (reply.id, reply.state, reply.fence, reply.attempts) == (reply_id, "sending", 1, 1)
        assert (reply.draft.text, reply.possible_duplicate, reply.created_at) == ("answer", False, 5)
        assert await take(store, 99) == []

    async def test_a_conversation_is_first_in_first_out(self, store: ContractStore) -> None:
        """Others do not wait for it."""
        road = StoreDriver(store)
        first, second = [await road.settle(said(), text) for text in ("one", "two")]
        other = await road.settle(said(room="den"))
        taken = await take(store)
        assert [reply.id for reply in taken] == [first, other]
        assert await store.apply(settled(taken[0], Delivered.CONFIRMED))
        assert [reply.id for reply in await take(store)] == [second]

    async def test_lanes_of_one_conversation_share_its_order(self, store: ContractStore) -> None:
        """A topic does not overtake the room."""
        road = StoreDriver(store)
        first = await road.settle(said())
        topic = await road.settle(replace(said(), topic="t1"))
        [reply] = await take(store)
        assert reply.id == first
        assert await store.apply(settled(reply, Delivered.CONFIRMED))
        assert [reply.id for reply in await take(store)] == [topic]

    async def test_accounts_do_not_share_an_order(self, store: ContractStore) -> None:
        """A conversation belongs to its account."""
        road = StoreDriver(store)
        mine = said()
        ids = [await road.settle(mine), await road.settle(replace(mine, origin=replace(mine.origin, account="you")))]
        assert [reply.id for reply in await take(store)] == ids

    async def test_a_retry_holds_back_what_follows(self, store: ContractStore) -> None:
        """Until its time; then it goes first, under a new fence."""
        road = StoreDriver(store)
        first = await road.settle(said())
        await road.settle(said())
        [reply] = await take(store)
        assert await store.apply(settled(reply, Delivered.RETRY, 1, retry_at=60))
        assert await take(store, 59) == []
        assert await store.next_send((CHANNEL,)) == 60
        [again] = await take(store, 60)
        assert (again.id, again.fence, again.attempts, again.key) == (first, 2, 2, reply.key)

    async def test_no_more_than_asked_for(self, store: ContractStore) -> None:
        """The limit counts replies."""
        road = StoreDriver(store)
        for room in ("a", "b", "c"):
            await road.settle(said(room=room))
        assert [len(await take(store, limit=limit)) for limit in (0, 2, 2)] == [0, 2, 1]

    async def test_only_channels_that_push(self, store: ContractStore) -> None:
        """Others wait to be pulled."""
        road = StoreDriver(store)
        await road.settle(said(channel="pulled"))
        assert await take(store) == []
        assert await store.next_send((CHANNEL,)) is None

    async def test_a_reply_with_a_url_is_pushed_on_any_channel(self, store: ContractStore) -> None:
        """What waits to be pulled in the same conversation does not hold it back."""
        road = StoreDriver(store)
        pulled = await answered_at(road, said(channel="pulled"), None)
        pushed = await answered_at(road, said(channel="pulled"), "https://example.org/in")
        assert [reply.id for reply in await store.unseen("pulled", "room")] == [pulled]
        assert await store.next_send(()) == 0
        assert [reply.id for reply in await take(store)] == [pushed]

    async def test_what_is_being_sent_cannot_be_tried(self, store: ContractStore) -> None:
        """Nor can what waits behind it: there is nothing to wake for."""
        road = StoreDriver(store)
        await road.settle(said())
        await road.settle(said())
        assert await store.next_send((CHANNEL,)) == 0
        [reply] = await take(store)
        assert await store.next_send((CHANNEL,)) is None
        await store.apply(settled(reply, Delivered.CONFIRMED))
        assert await store.next_send((CHANNEL,)) == 0

    async def test_the_next_is_the_earliest_of_all_conversations(self, store: ContractStore) -> None:
        """Each says when its first may be tried."""
        road = StoreDriver(store)
        for room, at in (("a", 30), ("b", 20), ("c", 40)):
            await road.settle(said(room=room), at=at)
        assert await store.next_send((CHANNEL,)) == 20


class SettlingContract:
    """The result of an attempt is recorded by the worker that made it."""

    async def test_each_outcome_has_its_state(self, store: ContractStore) -> None:
        """And the next one is sent only after it is settled."""
        road = StoreDriver(store)
        expected = {
            Delivered.CONFIRMED: "sent",
            Delivered.RETRY: "pending",
            Delivered.DOUBT: "unknown",
            Delivered.DEAD: "dead",
            Delivered.REFUSED: "not_deliverable",
        }
        for what in expected:
            await road.settle(said(room=str(what)))
            await road.settle(said(room=str(what)))
        for reply in await take(store):
            what = Delivered(reply.lane.conversation)
            assert await store.apply(settled(reply, what, 1, retry_at=50))
            assert await state_of(store, reply) == expected[what]
        following = {reply.lane.conversation for reply in await take(store, 9)}
        assert following == {Delivered.CONFIRMED, Delivered.DEAD, Delivered.REFUSED}

    async def test_an_old_fence_is_refused(self, store: ContractStore) -> None:
        """Whatever it says; so is what was settled, and what nobody sends."""
        road = StoreDriver(store)
        waiting = await road.settle(said())
        for what in Delivered:
            assert not await store.apply(Settle(waiting, 0, what, 1))
        [first] = await take(store)
        assert await store.apply(settled(first, Delivered.RETRY))
        [again] = await take(store)
        for what in Delivered:
            assert not await store.apply(settled(first, what, 1))
        assert await state_of(store, again) == "sending"
        assert await store.apply(settled(again, Delivered.CONFIRMED))
        for what in Delivered:
            assert not await store.apply(settled(again, what, 1))
        assert await state_of(store, again) == "sent"
        assert not await store.apply(Settle(4_711, 1, Delivered.CONFIRMED, 1))

    async def test_the_death_of_the_sender_leaves_doubt(self, store: ContractStore) -> None:
        """About its own replies only; they hold back what follows."""
        road = StoreDriver(store)
        for room in ("a", "b", "a"):
            await road.settle(said(room=room))
        [lost] = await take(store, limit=1, owner="dead")
        [mine] = await take(store, limit=1, owner="one")
        assert await store.apply(Doubt("one", 7)) == 1
        assert [await state_of(store, reply) for reply in (lost, mine)] == ["unknown", "sending"]
        assert await take(store, 9) == []
        assert not await store.apply(settled(lost, Delivered.CONFIRMED))
        assert await store.apply(Doubt("one", 8)) == 0

    async def test_a_start_waits_for_no_time_that_was_set_before(self, store: ContractStore) -> None:
        """The clock may have been set back since."""
        road = StoreDriver(store)
        reply_id = await road.settle(said(), at=3_600_000)
        assert await take(store, 5) == []
        assert await store.last_id() == reply_id
        later = await road.receive(said("and later"))
        assert await store.last_id() == later.id > reply_id
        await store.apply(Doubt("new", 5))
        assert [reply.id for reply in await take(store, 5)] == [reply_id]

    async def test_doubtful_replies_go_again_and_say_so(self, store: ContractStore) -> None:
        """With the same key, before what follows."""
        road = StoreDriver(store)
        first = await road.settle(said())
        await road.settle(said())
        [reply] = await take(store, owner="dead")
        await store.apply(Doubt("one", 7))
        assert await store.apply(Resend(frozenset(), 8)) == 1
        assert await store.next_send((CHANNEL,)) == 8
        [again] = await take(store, 8)
        assert (again.id, again.possible_duplicate, again.key) == (first, True, reply.key)
        assert (again.fence, again.attempts) == (2, 1)
        assert await store.apply(settled(again, Delivered.RETRY))
        assert (await take(store, 9))[0].possible_duplicate

    async def test_deaths_of_the_sender_are_not_charged(self, store: ContractStore) -> None:
        """However many there are: only tries that came to an end count towards the last."""
        road = StoreDriver(store)
        await road.settle(said())
        for life in range(30):
            [reply] = await take(store, 8, owner=f"life {life}")
            assert reply.attempts == 1
            await store.apply(Doubt(f"life {life + 1}", 7))
            assert await store.apply(Resend(frozenset(), 8)) == 1
        [reply] = await take(store, 8, owner="life 30")
        assert (reply.fence, reply.attempts) == (31, 1)

    async def test_doubt_is_resolved_when_its_time_has_come(self, store: ContractStore) -> None:
        """Not at once, when the sender said when."""
        road = StoreDriver(store)
        await road.settle(said())
        [reply] = await take(store)
        await store.apply(settled(reply, Delivered.DOUBT, 1, retry_at=40))
        assert await store.next_send((CHANNEL,)) == 40
        assert await store.apply(Resend(frozenset(), 39)) == 0
        assert await state_of(store, reply) == "unknown"
        assert await store.apply(Resend(frozenset(), 40)) == 1
        assert await state_of(store, reply) == "pending"

    async def test_a_channel_may_bury_what_it_doubts(self, store: ContractStore) -> None:
        """Rather silent than twice; the next one goes."""
        road = StoreDriver(store)
        await road.settle(said())
        following = await road.settle(said())
        [reply] = await take(store)
        await store.apply(settled(reply, Delivered.DOUBT))
        assert await store.apply(Resend(frozenset((CHANNEL,)), 8)) == 1
        assert await state_of(store, reply) == "dead"
        assert [one.id for one in await take(store, 8)] == [following]


async def died(road: StoreDriver, room: str = "room") -> StoredReply:
    """A reply that was given up, as it was when it was last taken."""
    await road.settle(said(room=room))
    [reply] = await take(road.store)
    assert await road.store.apply(replace(settled(reply, Delivered.DEAD, 1), detail="HTTP 410"))
    return reply


class DeadContract:
    """A dead reply waits for a person, and says why."""

    async def test_it_says_what_came_of_the_last_try(self, store: ContractStore) -> None:
        """In its turn and in the story of its message, which is listed among those whose reply is dead."""
        road = StoreDriver(store)
        reply = await died(road)
        await road.settle(said("other", room="den"))
        [story] = await store.find(MessageFilter(reply="dead"))
        assert [(one.id, one.state, one.detail) for one in story.replies] == [(reply.id, "dead", "HTTP 410")]
        [other] = await store.find(MessageFilter(reply="pending"))
        assert other.message.text == "other"
        assert list(await store.find(MessageFilter(reply="sending"))) == []

    async def test_it_goes_again_with_its_tries_counted_anew(self, store: ContractStore) -> None:
        """Under the same key, marked, before what follows it."""
        road = StoreDriver(store)
        reply = await died(road)
        await road.settle(said())
        assert await store.apply(Decide(reply.id, 9, again=True))
        assert not await store.apply(Decide(reply.id, 9, again=True))
        assert await take(store, 8) == []
        [again] = await take(store, 9)
        assert (again.id, again.key, again.attempts, again.possible_duplicate) == (reply.id, reply.key, 1, True)
        assert (again.fence, again.detail) == (reply.fence + 1, "")
        assert await store.apply(settled(again, Delivered.CONFIRMED, 10))
        assert (await store.overview()).replies == {"sent": 1, "pending": 1}

    async def test_it_can_be_given_up_for_good(self, store: ContractStore) -> None:
        """With what was wrong kept; then no word changes it."""
        road = StoreDriver(store)
        reply = await died(road)
        assert await store.apply(Decide(reply.id, 9, again=False))
        [story] = await store.find(MessageFilter())
        assert [(one.state, one.detail) for one in story.replies] == [
            ("not_deliverable", "HTTP 410; accepted by a person")
        ]
        assert not await store.apply(Decide(reply.id, 9, again=True))
        assert await take(store, 99) == []

    async def test_what_nobody_fetches_can_be_given_up(self, store: ContractStore) -> None:
        """It is never sent, and what follows it is."""
        road = StoreDriver(store)
        waiting, following = await road.settle(said()), await road.settle(said())
        assert await store.apply(Decide(waiting, 9, again=False))
        assert not await store.apply(Decide(waiting, 9, again=False))
        assert [one.id for one in await take(store, 99)] == [following]
        assert (await store.overview()).replies == {"not_deliverable": 1, "sending": 1}

    async def test_what_is_not_dead_stays(self, store: ContractStore) -> None:
        """Waiting, on its way, sent, or unknown to the store."""
        road = StoreDriver(store)
        waiting = await road.settle(said())
        assert not await store.apply(Decide(waiting, 9, again=True))
        assert not await store.apply(Decide(4_711, 9, again=True))
        assert not await store.apply(Decide(4_711, 9, again=False))
        [reply] = await take(store)
        assert not await store.apply(Decide(reply.id, 9, again=False))
        assert not await store.apply(Decide(reply.id, 9, again=True))
        assert await store.apply(settled(reply, Delivered.CONFIRMED))
        assert not await store.apply(Decide(reply.id, 9, again=False))


class PullingContract:
    """Replies that wait until somebody looks."""

    async def test_what_nobody_has_seen_in_order(self, store: ContractStore) -> None:
        """Of this conversation."""
        road = StoreDriver(store)
        ids = [await road.settle(said(channel="pulled")) for _ in range(3)]
        await road.settle(said(room="den", channel="pulled"))
        assert [reply.id for reply in await store.unseen("pulled", "room")] == ids
        assert await store.apply(MarkReplyShown(ids[0], 5))
        assert [reply.id for reply in await store.unseen("pulled", "room")] == ids[1:]
        assert (await store.overview()).replies == {"pending": 3, "sent": 1}

    async def test_those_that_wait_since_before_a_time_are_counted(self, store: ContractStore) -> None:
        """Of every channel and conversation."""
        road = StoreDriver(store)
        ids = [await road.settle(said(room=room, channel="pulled")) for room in ("room", "den")]
        await road.settle(said())
        made = [story.replies[0].created_at for story in await store.find(MessageFilter())]
        assert await store.unfetched(max(made) + 1) == Backlog(3, min(made))
        assert await store.unfetched(min(made)) == Backlog(0)
        assert await store.apply(MarkReplyShown(ids[0], 5))
        assert (await store.unfetched(max(made) + 1)).waiting == 2

    async def test_it_is_shown_once(self, store: ContractStore) -> None:
        """False when it was settled before, is being sent, or never was."""
        road = StoreDriver(store)
        pulled = await road.settle(said(channel="pulled"))
        assert await store.apply(MarkReplyShown(pulled, 5))
        assert not await store.apply(MarkReplyShown(pulled, 6))
        await road.settle(said())
        [reply] = await take(store)
        assert not await store.apply(MarkReplyShown(reply.id, 5))
        assert await state_of(store, reply) == "sending"
        assert not await store.apply(MarkReplyShown(4_711, 5))
