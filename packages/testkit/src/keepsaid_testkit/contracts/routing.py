"""The contract of routing: batches without gaps, drops with reasons, tasks that merge."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from keepsaid.domain.batch import Routed, TaskDraft, Window
from keepsaid.domain.commits import ClaimBatches, Dispatch, ExpireLeases, Fail, Failure, Release
from keepsaid.domain.message import EDITED, Inbound, ProviderMarks
from keepsaid.domain.route import Action
from keepsaid.domain.views import Spawned, Story
from keepsaid.testing.builders import AT_ONCE, lane_of, routed, said, verdict
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

DROP = verdict(Action.DROP, "noise")
SPAWN = verdict(Action.SPAWN, "review")
LISTEN = verdict(Action.LISTEN, "crowd")


class DispatchContract:
    """Routing is one commit, and covers a lane without gaps."""

    async def test_what_is_forwarded_is_queued(self, store: ContractStore) -> None:
        """The batch says what, by which rule, and why."""
        road = StoreDriver(store)
        first = await road.receive(said("one", priority=50), at=1)
        last = await road.receive(said("two"), at=2)
        batch_id = await road.route(lane_of(), at=3)
        story = await road.story(last.id)
        batch = story.batch
        assert batch is not None
        assert story == replace(await road.story(first.id), message=story.message)
        assert (batch.id, batch.lane, batch.first, batch.last) == (batch_id, lane_of(), 1, 2)
        assert (batch.state, batch.verdict, batch.priority, batch.created_at) == ("queued", verdict(), 10, 3)
        assert (batch.fence, batch.attempts, batch.crashes, batch.deferrals) == (0, 0, 0, 0)
        assert (story.state, story.turn_id, story.task) == ("batched", None, None)
        assert await store.next_due() is None
        assert await store.next_ready() == 0

    async def test_what_is_listened_to_waits_its_turn_and_joins_nothing(self, store: ContractStore) -> None:
        """It is claimed in the order of its lane; what is forwarded before and after it stays apart."""
        road = StoreDriver(store)
        verdicts = (verdict(), LISTEN, LISTEN, verdict())
        for text, by in zip(("one", "two", "three", "four"), verdicts, strict=True):
            await road.queue(said(text), by=by)
        for text, by in zip(("one", "two", "three", "four"), verdicts, strict=True):
            claimed = await road.claim_one()
            assert [message.text for message in claimed.messages] == [text]
            assert claimed.batch.verdict == by
            await road.answer(claimed)
        assert (await store.overview()).batches == {"done": 4}

    async def test_the_second_of_two_dispatches_is_refused(self, store: ContractStore) -> None:
        """And changes nothing."""
        road = StoreDriver(store)
        received = await road.receive(said())
        group = await road.group(lane_of())
        for batch_id, done in ((101, True), (102, False)):
            batch = routed(batch_id, group.messages, verdict())
            assert await store.apply(Dispatch(lane_of(), 0, (batch,), AT_ONCE, 0)) is done
        batch_now = (await road.story(received.id)).batch
        assert batch_now is not None
        assert batch_now.id == 101
        assert (await store.overview()).batches == {"queued": 1}

    async def test_lanes_are_routed_side_by_side(self, store: ContractStore) -> None:
        """Each by itself: a second dispatch of a lane finds what the first did, one with a gap is refused alone."""
        road = StoreDriver(store)
        for room in ("a", "b", "b", "c", "d"):
            await road.receive(said(f"{room} says", room=room))
        await road.route(lane_of("d"))
        await road.receive(said("more", room="d"))
        a, b, c, d = [(await road.group(lane_of(room))).messages for room in "abcd"]
        results = await asyncio.gather(
            store.apply(Dispatch(lane_of("a"), 0, (routed(101, a, verdict()),), AT_ONCE, 0)),
            store.apply(Dispatch(lane_of("b"), 0, (routed(102, b[:1], verdict()),), AT_ONCE, 0)),
            store.apply(Dispatch(lane_of("a"), 0, (routed(103, a, verdict()),), AT_ONCE, 0)),
            store.apply(Dispatch(lane_of("b"), 1, (routed(104, b[1:], verdict()),), AT_ONCE, 0)),
            store.apply(Dispatch(lane_of("c"), 0, (replace(routed(105, c, verdict()), first=2),), AT_ONCE, 0)),
            store.apply(Dispatch(lane_of("d"), 1, (routed(106, d, verdict()),), AT_ONCE, 0)),
            return_exceptions=True,
        )
        assert [result if isinstance(result, bool) else type(result) for result in results] == [
            *(True, True, False, True),
            *(ValueError, True),
        ]
        assert await store.next_due() == 0, "one lane still waits"
        batches = sorted((await road.claim()), key=lambda claimed: claimed.batch.lane)
        assert [[message.text for message in one.messages] for one in batches] == [
            ["a says"],
            ["b says", "b says"],
            ["d says", "more"],
        ]

    async def test_a_dispatch_beyond_the_last_message_is_refused(self, store: ContractStore) -> None:
        """Nobody routes what has not come."""
        road = StoreDriver(store)
        await road.receive(said())
        batch = Routed(101, 1, 2, 0, 0, 10, verdict(), 10)
        assert not await store.apply(Dispatch(lane_of(), 0, (batch,), AT_ONCE, 0))
        assert (await store.overview()).batches == {}

    async def test_one_dispatch_makes_batches_of_several_rules(self, store: ContractStore) -> None:
        """Each message is in exactly one of them."""
        road = StoreDriver(store)
        ids = [(await road.receive(said(f"no. {n}"))).id for n in range(4)]
        m = (await road.group(lane_of())).messages
        vip = verdict(rule="vip")
        batches = (routed(101, m[:1], verdict()), routed(102, m[1:2], DROP), routed(103, m[2:], vip))
        assert await store.apply(Dispatch(lane_of(), 0, batches, AT_ONCE, 0))
        stories = [await road.story(message_id) for message_id in ids]
        assert [story.batch and story.batch.id for story in stories] == [101, 102, 103, 103]
        assert [story.state for story in stories] == ["batched", "dropped", "batched", "batched"]

    async def test_what_came_meanwhile_waits_on_in_its_own_window(self, store: ContractStore) -> None:
        """Its own arrival, priority and characters count."""
        road, window = StoreDriver(store), Window(window_ms=500, chars_max=10)
        await road.receive(said("12345", priority=10), 0, window)
        group = await road.group(lane_of())
        await road.receive(said("1234", priority=50), 450, window)
        await road.receive(said(room="hook", priority=20), 460, Window(window_ms=400))
        assert await store.apply(Dispatch(lane_of(), 0, (routed(101, group.messages, verdict()),), window, 500))
        assert await store.next_due() == 860
        assert [group.lane for group in await store.due(950, 9)] == [lane_of("hook"), lane_of()]
        await road.receive(said("12345"), 600, window)
        assert [group.lane for group in await store.due(949, 9)] == [lane_of("hook")]
        group = await road.group(lane_of())
        assert (group.numbered_after, [message.number for message in group.messages]) == (1, [2, 3])

    async def test_what_came_meanwhile_is_due_at_once_when_it_fills_the_window(self, store: ContractStore) -> None:
        """Due at the time of the dispatch."""
        road, window = StoreDriver(store), Window(window_ms=500, count_max=2)
        for at in range(4):
            await road.receive(said(), at, window)
        messages = (await road.group(lane_of())).messages[:2]
        assert await store.apply(Dispatch(lane_of(), 0, (routed(101, messages, verdict()),), window, 44))
        assert await store.next_due() == 44

    async def test_what_is_dropped_keeps_its_reason(self, store: ContractStore) -> None:
        """Nobody works on it, nothing remembers it."""
        road = StoreDriver(store)
        queued = await road.queue(said(), by=DROP)
        batch = await road.batch(queued)
        assert (batch.state, batch.verdict) == ("dropped", DROP)
        assert (await road.story(queued.first.id)).state == "dropped"
        assert await road.claim() == ()
        assert await store.next_ready() is None
        assert await store.episode_work(10) == []

    async def test_a_dropped_batch_does_not_hold_up_its_lane(self, store: ContractStore) -> None:
        """The next one is claimed."""
        road = StoreDriver(store)
        await road.queue(said("noise"), by=DROP)
        await road.queue(said("word"))
        assert [message.text for message in (await road.claim_one()).messages] == ["word"]


def task_of(story: Story) -> int | None:
    """The task that was spawned for a message."""
    return story.task.id if story.task else None


def edit_of(provider_id: str, room: str = "room") -> Inbound:
    """An edit of a message."""
    edit = said("an edit", room, marks=ProviderMarks(f"{provider_id}:e", provider_id))
    return replace(edit, content=replace(edit.content, event=EDITED))


class LateEditContract:
    """Who routes an edit knows whether its original was settled before: answered or dropped, in that conversation."""

    async def test_what_was_settled_is_named(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        await road.settle(said("answered", marks=ProviderMarks("1", "m1")))
        await road.receive(said("dropped", marks=ProviderMarks("2", "m2")))
        await road.route(lane_of(), by=DROP)
        await road.queue(said("queued", marks=ProviderMarks("3", "m3")))
        await road.receive(said("waiting", marks=ProviderMarks("4", "m4")))
        for number in range(1, 6):
            await road.receive(edit_of(f"m{number}"))
        assert (await road.group(lane_of())).settled == {"m1", "m2"}

    async def test_other_conversations_do_not_count(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        await road.settle(said("answered", marks=ProviderMarks("1", "m1")))
        elsewhere = await road.receive(edit_of("m1", "hall"))
        assert (await road.group(elsewhere.lane)).settled == set()

    async def test_only_edits_are_asked_about(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        await road.settle(said("answered", marks=ProviderMarks("1", "m1")))
        await road.receive(said("again", marks=ProviderMarks("2", "m1")))
        assert (await road.group(lane_of())).settled == set()


class SpawnContract:
    """Spawned work is a task; its messages are done when its row commits."""

    async def test_what_is_spawned_is_a_task(self, store: ContractStore) -> None:
        """Done at once, to be remembered, never claimed."""
        road = StoreDriver(store)
        received = await road.receive(said(), at=1)
        task = TaskDraft(900, "pr-7", "look at it")
        batch_id = await road.route(lane_of(), 2, SPAWN, task=task)
        story = await road.story(received.id)
        assert story.batch is not None
        assert (story.state, story.task, story.batch.state) == ("done", Spawned(900, "pending", "look at it"), "done")
        assert (await store.overview()).tasks == {"pending": 1}
        assert await road.claim(9) == ()
        [work] = await store.episode_work(10)
        assert (work.batch_id, work.turn_id, work.reply) == (batch_id, None, "")
        assert [message.id for message in work.messages] == [received.id]

    async def test_a_pending_task_takes_in_more_of_its_key(self, store: ContractStore) -> None:
        """From any lane; another key is another task."""
        road = StoreDriver(store)
        tasks = []
        for n, (room, key) in enumerate((("a", "pr-7"), ("a", "pr-7"), ("b", "pr-7"), ("b", "pr-8"))):
            received = await road.receive(said(room=room))
            await road.route(lane_of(room), 0, SPAWN, task=TaskDraft(900 + n, key, "look at it"))
            tasks.append(task_of(await road.story(received.id)))
        assert tasks == [900, 900, 900, 903]
        assert (await store.overview()).tasks == {"pending": 2}
        assert (await store.overview()).batches == {"done": 4}
        assert len(await store.episode_work(10)) == 4

    async def test_spawned_batches_do_not_merge(self, store: ContractStore) -> None:
        """Their task does."""
        road = StoreDriver(store)
        numbers = []
        for n in range(2):
            received = await road.receive(said())
            await road.route(lane_of(), 0, SPAWN, task=TaskDraft(900 + n, "k", "do"))
            batch = (await road.story(received.id)).batch
            assert batch is not None
            numbers.append((batch.first, batch.last))
        assert numbers == [(1, 1), (2, 2)]


async def extended(road: StoreDriver, window: Window = AT_ONCE) -> bool:
    """Whether one more message joins the lane's last batch."""
    before = sum((await road.store.overview()).batches.values())
    await road.receive(said("more"))
    await road.route(lane_of(), 5, window=window)
    return sum((await road.store.overview()).batches.values()) == before


class MergingContract:
    """A queued batch of the lane and rule takes in what follows, while nobody has touched it."""

    async def test_it_takes_in_what_follows(self, store: ContractStore) -> None:
        """One turn answers both, at the better priority."""
        road = StoreDriver(store)
        first = await road.queue(said("one", priority=50), 1)
        second = await road.queue(said("two", priority=10), 2)
        batch = await road.batch(first)
        assert batch == await road.batch(second)
        assert (batch.id, batch.first, batch.last, batch.priority) == (first.batch_id, 1, 2, 10)
        [claimed] = await road.claim(9)
        assert [message.text for message in claimed.messages] == ["one", "two"]

    async def test_a_worse_priority_does_not_lower_it(self, store: ContractStore) -> None:
        """The minimum of both."""
        road = StoreDriver(store)
        first = await road.queue(said(priority=10))
        await road.queue(said(priority=50))
        assert (await road.batch(first)).priority == 10

    async def test_another_rule_is_another_batch(self, store: ContractStore) -> None:
        """So is another version of the rules."""
        road = StoreDriver(store)
        verdicts = (verdict(), verdict(rule="vip"), verdict(rule="vip", version="v2"))
        ids = [(await road.batch(await road.queue(said(), by=by))).id for by in verdicts]
        assert len(set(ids)) == 3

    async def test_the_window_bounds_the_count(self, store: ContractStore) -> None:
        """Two are enough."""
        road, window = StoreDriver(store), Window(window_ms=0, count_max=2)
        await road.queue(said())
        assert await extended(road, window)
        assert not await extended(road, window)

    async def test_the_window_bounds_the_characters(self, store: ContractStore) -> None:
        """Nine and twice four is within 17, thrice is not."""
        road, window = StoreDriver(store), Window(window_ms=0, chars_max=17)
        await road.queue(said("nine char"))
        assert await extended(road, window)
        assert await extended(road, window)
        assert not await extended(road, window)

    async def test_not_over_a_gap(self, store: ContractStore) -> None:
        """A dropped message lies between."""
        road = StoreDriver(store)
        await road.queue(said())
        await road.queue(said(), by=DROP)
        assert not await extended(road)

    async def test_not_while_leased_nor_after(self, store: ContractStore) -> None:
        """A batch in hand is what it is; so is a settled one."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        assert not await extended(road)
        await road.answer(claimed)
        assert await extended(road)

    async def test_not_while_its_turn_is_open(self, store: ContractStore) -> None:
        """The turn would replay steps made for fewer messages."""
        road = StoreDriver(store)
        await road.queue(said())
        await road.claim_one(at=0)
        assert await store.apply(ExpireLeases(1_000)) == 1
        assert not await extended(road)

    async def test_not_after_it_was_charged(self, store: ContractStore) -> None:
        """Failed, deferred, or in flight at a crash: innocent messages stay apart from it."""
        road = StoreDriver(store)
        for n, name in enumerate(("failed", "deferred", "crashed")):
            queued = await road.queue(said(room=name))
            [claimed] = await store.apply(ClaimBatches("one", 1, (500 + n,), 0, 1_000))
            assert claimed.batch.lane == lane_of(name)
            fence = claimed.batch.fence
            if name == "failed":
                await store.apply(Fail(queued.batch_id, fence, Failure.RETRY, "it broke", 0, not_before=99_999))
            elif name == "deferred":
                await store.apply(Release(queued.batch_id, fence, 99_999, deferred=True))
            else:
                await road.crash()
            later = await road.queue(said(room=name), at=1)
            assert (await road.batch(later)).id != queued.batch_id, name
