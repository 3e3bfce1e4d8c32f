"""The contract of intake: numbers, duplicates, lanes of replies, and windows."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from keepsaid.domain.batch import Window
from keepsaid.domain.commits import Dispatch, IntakeResult, Receive, Settle, TakeReplies
from keepsaid.domain.message import Content, Inbound, Lane, Origin, ProviderMarks, Trust
from keepsaid.domain.reply import Delivered
from keepsaid.testing.builders import ACCOUNT, AT_ONCE, CHANNEL, arrival, lane_of, routed, said, verdict
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver


def named(external_id: str, text: str = "hello") -> Inbound:
    """A message that its provider gave an id."""
    return said(text, marks=ProviderMarks(external_id=external_id))


class IntakeContract:
    """Every message is kept once, whole, at its place."""

    async def test_numbers_count_up_in_each_lane(self, store: ContractStore) -> None:
        """Each lane counts for itself, from 1."""
        road = StoreDriver(store)
        numbers = [(await road.receive(said(room=room))).number for room in ("a", "a", "b", "a", "b")]
        assert numbers == [1, 2, 1, 3, 2]

    async def test_messages_that_come_together_get_numbers_without_gaps(self, store: ContractStore) -> None:
        """Fifty at once are fifty numbers."""
        road = StoreDriver(store)
        receipts = await asyncio.gather(*(road.receive(said(f"no. {n}")) for n in range(50)))
        assert sorted(receipt.number for receipt in receipts) == list(range(1, 51))
        assert {receipt.intake for receipt in receipts} == {IntakeResult.STORED}

    async def test_a_message_is_kept_whole(self, store: ContractStore) -> None:
        """Everything a channel said of it comes back."""
        origin = Origin("hook", "bot", "acme/api#7", "u1", "Una", direct=True, trust=Trust.EXTERNAL)
        content = Content(b'\x00\xff{"a": 1}', "searchable – text 👋", "issues.opened")
        marks = ProviderMarks("delivery-1", "comment-1", "comment-0")
        inbound = Inbound(origin, content, marks, 50, topic="t9", reply_url="https://example.org/in")
        road = StoreDriver(store)
        received = await road.receive(inbound, at=1_234)
        story = await road.story(received.id)
        assert story.message.inbound == inbound
        assert (story.message.id, story.message.lane, story.message.number) == (received.id, inbound.lane, 1)
        assert story.message.received_at == 1_234
        assert (story.state, story.batch, story.turn_id, story.replies) == ("received", None, None, ())

    async def test_the_order_is_that_of_numbers_not_of_ids(self, store: ContractStore) -> None:
        """A message whose id was made earlier, or by a clock that is off, keeps the place at which it came."""
        road, ids = StoreDriver(store), (9 << 37, 2 << 37, (2 << 37) + 1, 5 << 37)
        for message_id in ids:
            await store.apply(Receive(arrival(message_id, said(f"id {message_id}")), AT_ONCE))
        group = await road.group(lane_of())
        assert [(message.number, message.id) for message in group.messages] == list(enumerate(ids, 1))
        parts = (group.messages[:2], group.messages[2:])
        batches = tuple(routed(road.new_id(), part, verdict(rule=f"r{len(part[0].text)}")) for part in parts)
        for part, batch in zip(parts, batches, strict=True):
            assert await store.apply(Dispatch(lane_of(), part[0].number - 1, (batch,), AT_ONCE, 0))
            claimed = await road.claim_one()
            assert claimed.messages == part
            await road.answer(claimed)
            assert [(await road.story(message.id)).turn_id for message in part] == [claimed.turn_id] * 2
        assert [one.messages for one in await store.episode_work(10)] == list(parts)
        spoken = [record.text for record in (await store.context(lane_of(), 99)).recent.records if record.speaker]
        assert spoken == [f"id {message_id}" for message_id in ids]

    async def test_an_unknown_message_has_no_story(self, store: ContractStore) -> None:
        """None for what was never stored."""
        assert await store.story(4_711) is None

    async def test_the_same_again_is_a_duplicate(self, store: ContractStore) -> None:
        """The receipt names the message that came first, and nothing is stored."""
        road = StoreDriver(store)
        await road.receive(said())
        first = await road.receive(named("x"))
        again = await road.receive(named("x"))
        assert (first.intake, first.number) == (IntakeResult.STORED, 2)
        assert again == first._replace(intake=IntakeResult.DUPLICATE)
        assert (await store.overview()).messages == 2
        assert (await road.receive(said())).number == 3

    async def test_the_same_key_with_other_content_is_a_conflict(self, store: ContractStore) -> None:
        """The first is kept as it was."""
        road = StoreDriver(store)
        first = await road.receive(named("x", "one"))
        other = await road.receive(named("x", "two"))
        assert other == first._replace(intake=IntakeResult.CONFLICT)
        assert (await road.receive(named("x", "one"))).intake is IntakeResult.DUPLICATE
        assert (await road.story(first.id)).message.text == "one"
        assert (await store.overview()).messages == 1

    async def test_a_settled_message_is_still_a_duplicate(self, store: ContractStore) -> None:
        """Keys do not end with the work."""
        road = StoreDriver(store)
        await road.settle(named("x"))
        assert (await road.receive(named("x"))).intake is IntakeResult.DUPLICATE

    async def test_of_five_at_once_one_is_stored(self, store: ContractStore) -> None:
        """A webhook that is sent several times at once is one message."""
        road = StoreDriver(store)
        receipts = await asyncio.gather(*(road.receive(named("x")) for _ in range(5)))
        assert sorted(receipt.intake for receipt in receipts) == [IntakeResult.DUPLICATE] * 4 + [IntakeResult.STORED]
        assert {(receipt.lane, receipt.number) for receipt in receipts} == {(lane_of(), 1)}
        assert len({receipt.id for receipt in receipts}) == 1
        assert (await store.overview()).messages == 1

    async def test_duplicates_in_a_crowd(self, store: ContractStore) -> None:
        """Each returns the place of the message that arrived first, in whatever lane that is."""
        road = StoreDriver(store)
        topic = replace(named("x"), topic="t1")
        crowd = [said(), topic, said("re", marks=ProviderMarks("y", reply_to="p0")), topic, named("z"), topic]
        receipts = await asyncio.gather(*(road.receive(inbound) for inbound in crowd))
        assert [receipt.number for receipt in receipts] == [1, 1, 1, 1, 2, 1]
        assert {receipts[n].lane for n in (1, 3, 5)} == {topic.lane}
        assert receipts[3] == receipts[5] == receipts[1]._replace(intake=IntakeResult.DUPLICATE)

    async def test_without_an_id_nothing_is_a_duplicate(self, store: ContractStore) -> None:
        """Saying the same twice is two messages."""
        road = StoreDriver(store)
        receipts = [await road.receive(said("ok")) for _ in range(2)]
        assert [(receipt.intake, receipt.number) for receipt in receipts] == [
            (IntakeResult.STORED, 1),
            (IntakeResult.STORED, 2),
        ]

    async def test_keys_belong_to_a_channel_and_account(self, store: ContractStore) -> None:
        """The same id elsewhere is another message."""
        road = StoreDriver(store)
        here = named("x")
        other_account = replace(here, origin=replace(here.origin, account="you"))
        other_channel = replace(here, origin=replace(here.origin, channel="other"))
        receipts = [await road.receive(inbound) for inbound in (here, other_account, other_channel)]
        assert [receipt.intake for receipt in receipts] == [IntakeResult.STORED] * 3


def reply_to(provider_id: str, room: str = "room") -> Inbound:
    """A message that answers another."""
    return said("re", room, marks=ProviderMarks(reply_to=provider_id))


class ReplyLaneContract:
    """A reply to something that has a lane joins that lane (seed 003, literal mode off)."""

    async def test_a_reply_joins_the_lane_of_its_target(self, store: ContractStore) -> None:
        """Even without saying the topic again."""
        road = StoreDriver(store)
        target = replace(said(marks=ProviderMarks(provider_id="p1")), topic="t1")
        first = await road.receive(target)
        joined = await road.receive(reply_to("p1"))
        assert joined.lane == first.lane == target.lane
        assert joined.number == 2
        assert (await road.story(joined.id)).message.lane == target.lane

    async def test_a_reply_to_a_reply_stays_in_the_lane(self, store: ContractStore) -> None:
        """A chain has one lane."""
        road = StoreDriver(store)
        await road.receive(said(marks=ProviderMarks(provider_id="p1")))
        await road.receive(said(marks=ProviderMarks(provider_id="p2", reply_to="p1")))
        third = await road.receive(said(marks=ProviderMarks(provider_id="p3", reply_to="p2")))
        assert (third.lane, third.number) == (lane_of(), 3)

    async def test_a_reply_to_the_unknown_opens_its_own_lane(self, store: ContractStore) -> None:
        """The key is that of the target."""
        received = await StoreDriver(store).receive(reply_to("elsewhere"))
        assert received.lane == Lane(CHANNEL, ACCOUNT, "room", "reply:room:elsewhere")

    async def test_of_two_targets_the_first_counts(self, store: ContractStore) -> None:
        """An edit has the provider id of what it edits."""
        road = StoreDriver(store)
        original = replace(said(marks=ProviderMarks("new", "p1")), topic="t1")
        await road.receive(original)
        await road.receive(said(marks=ProviderMarks("edit", "p1")))
        assert (await road.receive(reply_to("p1"))).lane == original.lane

    async def test_a_stored_target_goes_before_one_that_comes_along(self, store: ContractStore) -> None:
        """However the two and the reply are written together."""
        road = StoreDriver(store)
        original = replace(said(marks=ProviderMarks("new", "p1")), topic="t1")
        await road.receive(original)
        edit = replace(said(marks=ProviderMarks("edit", "p1")), topic="t2")
        _, joined = await asyncio.gather(road.receive(edit), road.receive(reply_to("p1")))
        assert joined.lane == original.lane

    async def test_a_target_in_another_conversation_does_not_count(self, store: ContractStore) -> None:
        """Provider ids are looked up in the conversation alone."""
        road = StoreDriver(store)
        await road.receive(said(room="den", marks=ProviderMarks(provider_id="p1")))
        elsewhere = said(marks=ProviderMarks(provider_id="p1"))
        await road.receive(replace(elsewhere, origin=replace(elsewhere.origin, account="you")))
        assert (await road.receive(reply_to("p1"))).lane == reply_to("p1").lane

    async def test_a_reply_to_what_we_sent_joins_the_lane_we_sent_it_from(self, store: ContractStore) -> None:
        """The receipt's provider id is a target too."""
        road = StoreDriver(store)
        topic = replace(said(), topic="t1")
        reply_id = await road.settle(topic)
        [reply] = await store.apply(TakeReplies((CHANNEL,), "one", 10, 0))
        sent = Settle(reply_id, reply.fence, Delivered.CONFIRMED, 1, provider_id="ours-1")
        assert await store.apply(sent)
        assert (await road.receive(reply_to("ours-1"))).lane == topic.lane

    async def test_a_reply_that_comes_with_its_target_joins_it(self, store: ContractStore) -> None:
        """Whether or not the store writes both in one go."""
        road = StoreDriver(store)
        target = replace(said(marks=ProviderMarks(provider_id="p1")), topic="t1")
        receipts = await asyncio.gather(road.receive(target), road.receive(reply_to("p1")))
        assert [receipt.lane for receipt in receipts] == [target.lane, target.lane]


class WindowContract:
    """A lane collects from its first message, longer while more come, never beyond its limits."""

    async def test_it_closes_after_its_time(self, store: ContractStore) -> None:
        """Due at the millisecond, not before; nothing waits at first."""
        road = StoreDriver(store)
        assert await store.next_due() is None
        await road.receive(said(), at=100, window=Window(window_ms=500))
        assert await store.next_due() == 600
        assert await store.due(599, 10) == ()
        [lane] = await store.due(600, 10)
        assert (lane.lane, lane.numbered_after, lane.head) == (lane_of(), 0, 1)

    async def test_it_grows_while_more_come(self, store: ContractStore) -> None:
        """By the quiet time after the newest, up to the longest wait after the oldest."""
        road, window = StoreDriver(store), Window(window_ms=500, quiet_ms=3_000, wait_ms_max=5_000)
        closes = []
        for at in (0, 1_000, 2_500):
            await road.receive(said(), at, window)
            closes.append(await store.next_due())
        assert closes == [3_000, 4_000, 5_000]

    async def test_it_does_not_grow_without_quiet(self, store: ContractStore) -> None:
        """The first message decides."""
        road, window = StoreDriver(store), Window(window_ms=500)
        await road.receive(said(), 0, window)
        await road.receive(said(), 400, window)
        assert await store.next_due() == 500

    async def test_a_full_count_closes_it(self, store: ContractStore) -> None:
        """At once, with the message that filled it."""
        road, window = StoreDriver(store), Window(window_ms=500, count_max=2)
        await road.receive(said(), 0, window)
        await road.receive(said(), 7, window)
        assert await store.next_due() == 7

    async def test_enough_characters_close_it(self, store: ContractStore) -> None:
        """At once, with the message that filled it."""
        road, window = StoreDriver(store), Window(window_ms=500, chars_max=10)
        await road.receive(said("123456"), 0, window)
        assert await store.next_due() == 500
        await road.receive(said("7890"), 9, window)
        assert await store.next_due() == 9

    async def test_a_clock_that_goes_back_still_closes_it(self, store: ContractStore) -> None:
        """The oldest and newest arrival count, in whatever order they came."""
        road, window = StoreDriver(store), Window(window_ms=500, quiet_ms=200)
        await road.receive(said(), 1_000, window)
        await road.receive(said(), 100, window)
        assert await store.next_due() == 1_200

    async def test_a_window_outlives_the_process(self, store: ContractStore) -> None:
        """Messages before and after a start are one group; the window closes when it would have closed anyway."""
        road, window = StoreDriver(store), Window(window_ms=500, quiet_ms=3_000, wait_ms_max=5_000)
        closes = []
        for at in (0, 1_000):
            await road.receive(said(), at, window)
        await road.crash(at=2_000)
        closes.append(await store.next_due())
        for at in (2_500, 4_000):
            await road.receive(said(), at, window)
            closes.append(await store.next_due())
        assert closes == [4_000, 5_000, 5_000]
        assert [one.number for one in (await road.group(lane_of())).messages] == [1, 2, 3, 4]

    async def test_a_window_that_ended_while_the_process_was_down_is_due(self, store: ContractStore) -> None:
        """Also if the clock was set forward meanwhile."""
        road = StoreDriver(store)
        await road.receive(said(), 0, Window(window_ms=500))
        await road.crash(at=9_000)
        assert [one.lane for one in await store.due(9_000, 10)] == [lane_of()]

    async def test_a_clock_set_back_before_a_start_keeps_the_window_short(self, store: ContractStore) -> None:
        """The window closes after what was left of it when its newest message came, whatever comes then."""
        road, window = StoreDriver(store), Window(window_ms=500, quiet_ms=3_000, wait_ms_max=5_000)
        for at in (900_000, 901_000):
            await road.receive(said(), at, window)
        await road.crash(at=100_000)
        assert await store.next_due() == 103_000
        closes = []
        for at in (102_000, 103_500):
            await road.receive(said(), at, window)
            closes.append(await store.next_due())
        assert closes == [104_000, 104_000], "five seconds after the first message came"

    async def test_a_window_counts_only_what_waits(self, store: ContractStore) -> None:
        """After a dispatch the next message opens a new window."""
        road, window = StoreDriver(store), Window(window_ms=500, count_max=2)
        await road.receive(said(), 0, window)
        await road.route(lane_of(), at=500, window=window)
        assert await store.next_due() is None
        await road.receive(said(), 900, window)
        assert await store.next_due() == 1_400


class DueContract:
    """What the router is given."""

    async def test_best_priority_first_then_oldest(self, store: ContractStore) -> None:
        """Lanes whose windows have closed, in the order they should be routed."""
        road = StoreDriver(store)
        for room, priority, at in (("late", 10, 9), ("hook", 50, 0), ("early", 10, 3), ("cron", 100, 0)):
            await road.receive(said(room=room, priority=priority), at)
        assert [group.lane for group in await store.due(10, 10)] == [
            lane_of(r) for r in ("early", "late", "hook", "cron")
        ]
        assert [group.lane for group in await store.due(8, 10)] == [lane_of(r) for r in ("early", "hook", "cron")]

    async def test_equals_in_the_order_of_their_lanes(self, store: ContractStore) -> None:
        """The lane that is older goes first."""
        road = StoreDriver(store)
        for room in ("c", "a", "b"):
            await road.receive(said(room=room))
        assert [group.lane for group in await store.due(0, 10)] == [lane_of("c"), lane_of("a"), lane_of("b")]

    async def test_a_lane_has_the_best_priority_of_its_messages(self, store: ContractStore) -> None:
        """One person in a noisy lane lifts it, until that message is routed."""
        road = StoreDriver(store)
        await road.receive(said(room="hook", priority=50), 0)
        await road.receive(said(room="mixed", priority=100), 1)
        await road.receive(said(room="mixed", priority=10), 2)
        assert [group.lane for group in await store.due(9, 10)] == [lane_of("mixed"), lane_of("hook")]
        await road.route(lane_of("mixed"))
        await road.receive(said(room="mixed", priority=100), 3)
        assert [group.lane for group in await store.due(9, 10)] == [lane_of("hook"), lane_of("mixed")]

    async def test_a_lane_tells_what_waits_in_it(self, store: ContractStore) -> None:
        """As much as reading the messages would, whatever was routed of it before."""
        road = StoreDriver(store)
        for n in range(5):
            await road.receive(said("x" * (n + 1), priority=50 - n), at=n)
        messages = (await road.group(lane_of())).messages
        for taken in (0, 2):
            if taken:
                batch = routed(101, messages[:taken], verdict())
                assert await store.apply(Dispatch(lane_of(), 0, (batch,), AT_ONCE, 20))
            rest = messages[taken:]
            [lane] = await store.due(99, 9)
            assert (lane.numbered_after, lane.head, lane.last_id) == (taken, 5, rest[-1].id)
            assert lane.oldest_at == min(message.received_at for message in rest)
            assert lane.priority == min(message.inbound.priority for message in rest)
            assert lane.chars == sum(len(message.text) for message in rest)

    async def test_no_more_lanes_than_asked_for(self, store: ContractStore) -> None:
        """The limit counts lanes."""
        road = StoreDriver(store)
        for room in ("a", "b", "c"):
            await road.receive(said(room=room))
        assert len(await store.due(0, 2)) == 2

    async def test_a_group_holds_what_waits_in_order(self, store: ContractStore) -> None:
        """From the first number that no batch has; a hundred at most."""
        road = StoreDriver(store)
        await road.queue(said("before"))
        for n in range(120):
            await road.receive(said(f"no. {n}"))
        [group] = await store.waiting([lane_of("other"), lane_of()])
        assert (group.lane, group.numbered_after) == (lane_of(), 1)
        assert [message.number for message in group.messages] == list(range(2, 102))
        assert group.messages[0].text == "no. 0"

    async def test_a_lane_that_is_not_due_is_not_given(self, store: ContractStore) -> None:
        """Others do not wait for it."""
        road = StoreDriver(store)
        await road.receive(said(room="slow"), 0, Window(window_ms=500))
        await road.receive(said(room="fast"), 0)
        assert [group.lane for group in await store.due(0, 10)] == [lane_of("fast")]
        assert await store.next_due() == 0
