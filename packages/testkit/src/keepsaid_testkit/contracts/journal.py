"""The contract of the journal: every subscriber hears of every event at least once, in order of what it is about."""

from __future__ import annotations

import json
from collections.abc import Sequence

from keepsaid.domain.commits import Prune, Tell
from keepsaid.domain.event import (
    RECEIVED,
    DecideDelivery,
    DeliveryResult,
    Distribute,
    EventDelivery,
    SettleDeliveries,
    Subscribe,
    TakeDeliveries,
    Unsubscribe,
)
from keepsaid.domain.retention import Stale
from keepsaid.testing.builders import said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

_LEASE_MS = 1_000
_ATTEMPTS_MAX = 3


class ManualSubscriber:
    """A subscriber by hand."""

    def __init__(self, store: ContractStore, name: str = "hearer") -> None:
        self.store = store
        self.name = name
        self.fence = 0

    async def subscribe(self, *topics: str, from_start: bool = False) -> None:
        """Begin to hear of these."""
        await self.store.apply(Subscribe(self.name, topics, 0, from_start))

    async def take(self, at: int = 0, limit: int = 128) -> tuple[EventDelivery, ...]:
        """Distribute all there is, and take what is due; wall and steady time are the same."""
        while await self.store.apply(Distribute(at)):
            pass
        self.fence += 1
        return await self.store.apply(TakeDeliveries(self.name, self.fence, at, at, _LEASE_MS, _ATTEMPTS_MAX, limit))

    async def settle(self, *settled: DeliveryResult, at: int = 0, fence: int | None = None) -> int:
        """Record the outcome of some."""
        return await self.store.apply(SettleDeliveries(self.name, fence or self.fence, settled, at))

    async def drain_topics(self, at: int = 0) -> list[str]:
        """Take all deliveries that are due and mark each as done; returns their topics in order."""
        topics: list[str] = []
        while taken := await self.take(at):
            topics += [one.event.topic for one in taken]
            await self.settle(*(DeliveryResult(one.id) for one in taken), at=at)
        return topics


async def tell(store: ContractStore, *topics: str, about: str = "", at: int = 0) -> None:
    """Let things happen."""
    for number, topic in enumerate(topics):
        await store.apply(Tell(topic, json.dumps({"number": number}), at, about))


def done(taken: Sequence[EventDelivery]) -> tuple[DeliveryResult, ...]:
    """All of them are done."""
    return tuple(DeliveryResult(one.id) for one in taken)


class SubscribeContract:
    """Who subscribes to what."""

    async def test_a_subscriber_hears_of_its_topics_from_then_on(self, store: ContractStore) -> None:
        """And of none twice."""
        hearer = ManualSubscriber(store)
        await tell(store, "deploy.completed")
        await hearer.subscribe("deploy.completed", "backup.*")
        await tell(store, "deploy.completed", "deploy.failed", "backup.saved", "backup.a.b", "backup")
        assert await hearer.drain_topics() == ["deploy.completed", "backup.saved"]
        assert await hearer.drain_topics() == []

    async def test_one_that_wants_the_past_too_hears_of_all_that_is_kept(self, store: ContractStore) -> None:
        """In the order in which it happened."""
        hearer = ManualSubscriber(store)
        await tell(store, "a.one", "a.two")
        await hearer.subscribe("a.*", from_start=True)
        await tell(store, "a.three")
        assert await hearer.drain_topics() == ["a.one", "a.two", "a.three"]

    async def test_subscribing_again_changes_the_topics_and_nothing_else(self, store: ContractStore) -> None:
        """What it has heard it does not hear again."""
        hearer = ManualSubscriber(store)
        await hearer.subscribe("a.one")
        await tell(store, "a.one", "a.two")
        assert await hearer.drain_topics() == ["a.one"]
        await hearer.subscribe("a.*", from_start=True)
        await tell(store, "a.two")
        assert await hearer.drain_topics() == ["a.two"]
        [line] = await store.journal.subscribers()
        assert (line.name, line.topics, line.behind, line.pending) == ("hearer", ("a.*",), 0, 0)

    async def test_what_it_was_at_work_on_is_taken_again_by_its_next_process(self, store: ContractStore) -> None:
        """Without waiting for the lease; the attempt counts."""
        hearer = ManualSubscriber(store)
        await hearer.subscribe("a.one")
        await tell(store, "a.one")
        [first] = await hearer.take()
        assert await hearer.take() == ()
        await hearer.subscribe("a.one")
        [second] = await hearer.take()
        assert (first.attempt, second.attempt, second.event) == (1, 2, first.event)

    async def test_its_next_process_waits_for_no_time_that_was_set(self, store: ContractStore) -> None:
        """Whoever set it may have had another clock."""
        hearer = ManualSubscriber(store)
        await hearer.subscribe("a.one")
        await tell(store, "a.one")
        [taken] = await hearer.take()
        await hearer.settle(DeliveryResult(taken.id, "no", again_at=10**12))
        assert await hearer.drain_topics() == []
        await hearer.subscribe("a.one")
        assert await hearer.drain_topics() == ["a.one"]

    async def test_each_subscriber_hears_by_itself(self, store: ContractStore) -> None:
        """What one does with an event is nothing to another."""
        one, other = ManualSubscriber(store, "one"), ManualSubscriber(store, "other")
        await one.subscribe("a.*")
        await other.subscribe("a.*")
        await tell(store, "a.one")
        [taken] = await one.take()
        await one.settle(DeliveryResult(taken.id, "no"))
        assert await other.drain_topics() == ["a.one"]
        assert await one.drain_topics() == []

    async def test_who_unsubscribes_hears_no_more_and_leaves_nothing(self, store: ContractStore) -> None:
        """Not even what was on its way."""
        hearer = ManualSubscriber(store)
        await hearer.subscribe("a.*")
        await tell(store, "a.one")
        assert len(await hearer.take()) == 1
        assert await store.apply(Unsubscribe("hearer"))
        assert not await store.apply(Unsubscribe("hearer"))
        assert await store.journal.subscribers() == []
        assert await store.journal.deliveries(("pending", "processing"), "", 10) == []

    async def test_messages_that_come_in_are_told_of(self, store: ContractStore) -> None:
        """Each by its id; a copy is not."""
        hearer, road = ManualSubscriber(store), StoreDriver(store)
        await hearer.subscribe(RECEIVED)
        first = await road.receive(said("one"))
        second = await road.receive(said("two", "elsewhere"))
        taken = await hearer.take()
        assert [one.event.correlation_id for one in taken] == [str(first.id), str(second.id)]
        assert [one.event.payload["message"] for one in taken] == [first.id, second.id]

    async def test_distributing_ends_however_much_there_is(self, store: ContractStore) -> None:
        """A few events at a time."""
        hearer = ManualSubscriber(store)
        await hearer.subscribe("a.*")
        await tell(store, *["a.one"] * 10)
        counts = [await store.apply(Distribute(0, 4)) for _ in range(4)]
        assert counts == [4, 4, 2, 0]
        assert len(await hearer.drain_topics()) == 10


class DeliveryContract:
    """The outcomes of deliveries."""

    async def test_what_is_about_the_same_is_taken_one_at_a_time_in_order(self, store: ContractStore) -> None:
        """What is about something else goes on beside it."""
        hearer = ManualSubscriber(store)
        await hearer.subscribe("a.*")
        await tell(store, "a.one", "a.two", about="x")
        await tell(store, "a.three", about="y")
        first = await hearer.take()
        assert [one.event.topic for one in first] == ["a.one", "a.three"]
        assert await hearer.take() == ()
        await hearer.settle(*done(first), fence=first[0].fence)
        assert [one.event.topic for one in await hearer.take()] == ["a.two"]

    async def test_what_is_about_nothing_waits_for_nothing(self, store: ContractStore) -> None:
        """All of it is taken at once, up to the limit."""
        hearer = ManualSubscriber(store)
        await hearer.subscribe("a.*")
        await tell(store, "a.one", "a.two", "a.three")
        assert [one.event.topic for one in await hearer.take(limit=2)] == ["a.one", "a.two"]
        assert [one.event.topic for one in await hearer.take(limit=2)] == ["a.three"]

    async def test_what_failed_is_tried_again_when_it_is_due(self, store: ContractStore) -> None:
        """And holds up what is about the same, and nothing else."""
        hearer = ManualSubscriber(store)
        await hearer.subscribe("a.*")
        await tell(store, "a.one", "a.two", about="x")
        [first] = await hearer.take()
        assert await hearer.settle(DeliveryResult(first.id, "no luck", 50)) == 1
        assert await hearer.take(49) == ()
        assert await store.journal.next_delivery("hearer") in (0, 50)
        [again] = await hearer.take(50)
        assert (again.event, again.attempt) == (first.event, 2)
        await hearer.settle(DeliveryResult(again.id), at=50)
        assert await hearer.drain_topics(50) == ["a.two"]

    async def test_what_is_given_up_lies_there_and_holds_up_nothing(self, store: ContractStore) -> None:
        """A person has it tried again, or dismisses it."""
        hearer = ManualSubscriber(store)
        await hearer.subscribe("a.*")
        await tell(store, "a.one", "a.two", about="x")
        [first] = await hearer.take()
        await hearer.settle(DeliveryResult(first.id, "no luck"))
        assert await hearer.drain_topics() == ["a.two"]
        [dead] = await store.journal.deliveries(("dead",), "", 10)
        assert (dead.topic, dead.correlation_id, dead.error, dead.attempts) == ("a.one", "x", "no luck", 1)
        assert await store.apply(DecideDelivery(dead.id, 5, again=True))
        assert not await store.apply(DecideDelivery(dead.id, 5, again=False))
        [again] = await hearer.take(5)
        assert again.attempt == 1
        await hearer.settle(DeliveryResult(again.id, "never"), at=5)
        assert await store.apply(DecideDelivery(dead.id, 6, again=False))
        assert await store.journal.deliveries(("dead",), "", 10) == []
        assert not await store.apply(DecideDelivery(12_345, 6, again=True))

    async def test_a_fence_that_is_not_held_settles_nothing(self, store: ContractStore) -> None:
        """What was not settled within its lease is taken again, by a new fence."""
        hearer = ManualSubscriber(store)
        await hearer.subscribe("a.*")
        await tell(store, "a.one")
        [late] = await hearer.take()
        [taken] = await hearer.take(_LEASE_MS)
        assert await hearer.settle(DeliveryResult(late.id), fence=late.fence) == 0
        assert await hearer.settle(DeliveryResult(taken.id)) == 1
        assert await hearer.settle(DeliveryResult(taken.id)) == 0

    async def test_what_never_comes_to_an_end_is_given_up(self, store: ContractStore) -> None:
        """A process may die of it every time."""
        hearer = ManualSubscriber(store)
        await hearer.subscribe("a.*")
        await tell(store, "a.one", about="x")
        for _ in range(_ATTEMPTS_MAX):
            assert len(await hearer.take()) == 1
            await hearer.subscribe("a.*")
        assert await hearer.take() == ()
        [dead] = await store.journal.deliveries(("dead",), "hearer", 10)
        assert "no" in dead.error

    async def test_what_was_attempted_before_is_taken_alone(self, store: ContractStore) -> None:
        """It may be what ended the process: the others are charged for that at most once."""
        hearer = ManualSubscriber(store)
        await hearer.subscribe("a.*")
        await tell(store, "a.one", "a.two")
        assert len(await hearer.take()) == 2
        await tell(store, "a.three")
        await hearer.subscribe("a.*")
        assert [(one.event.topic, one.attempt) for one in await hearer.take()] == [("a.one", 2)]
        assert [(one.event.topic, one.attempt) for one in await hearer.take()] == [("a.two", 2)]
        assert [(one.event.topic, one.attempt) for one in await hearer.take()] == [("a.three", 1)]

    async def test_what_was_not_tried_is_not_charged(self, store: ContractStore) -> None:
        """It is taken again as if for the first time."""
        hearer = ManualSubscriber(store)
        await hearer.subscribe("a.*")
        await tell(store, "a.one", "a.two")
        first, second = await hearer.take()
        assert await hearer.settle(DeliveryResult(first.id), DeliveryResult(second.id, tried=False)) == 2
        [again] = await hearer.take()
        assert (again.event, again.attempt) == (second.event, 1)


class JournalViewContract:
    """What happened, read and pruned."""

    async def test_events_are_read_on_from_any_of_them(self, store: ContractStore) -> None:
        """None twice, none left out."""
        await tell(store, "a.one", "a.two", "a.three", at=7)
        first, *rest = await store.journal.events(0, 10)
        assert (first.topic, first.payload, first.at) == ("a.one", {"number": 0}, 7)
        assert await store.journal.events(first.id, 10) == rest
        assert await store.journal.events(first.id, 1) == rest[:1]
        assert await store.journal.latest(2) == rest
        assert await store.journal.events(rest[-1].id, 10) == []

    async def test_what_happened_to_something_is_found(self, store: ContractStore) -> None:
        """The first time after an event."""
        await tell(store, "a.one", "a.two", "a.one", about="x")
        first = await store.journal.happened("a.one", "x", 0)
        assert first is not None
        second = await store.journal.happened("a.one", "x", first.id)
        assert second is not None
        assert second.payload == {"number": 2}
        assert await store.journal.happened("a.one", "x", second.id) is None
        assert await store.journal.happened("a.one", "y", 0) is None

    async def test_what_everybody_has_heard_of_is_pruned(self, store: ContractStore) -> None:
        """What is on its way or was given up stays, and so does the last line."""
        hearer = ManualSubscriber(store)
        await hearer.subscribe("a.*")
        await tell(store, "a.one", "b.one", "a.two", "a.three")
        taken = await hearer.take()
        await hearer.settle(DeliveryResult(taken[0].id), DeliveryResult(taken[1].id, "given up"))
        pruned = await store.apply(Prune(Stale.EVENTS, 10, 10))
        assert pruned.events == 2
        assert [one.topic for one in await store.journal.latest(10)] == ["a.two", "a.three"]

    async def test_what_is_young_or_not_looked_through_is_not_pruned(self, store: ContractStore) -> None:
        """However old."""
        hearer = ManualSubscriber(store)
        await tell(store, "a.one", at=20)
        assert (await store.apply(Prune(Stale.EVENTS, 10, 10))).events == 0
        await hearer.subscribe("a.*", from_start=True)
        await tell(store, "a.two")
        assert (await store.apply(Prune(Stale.EVENTS, 30, 30))).events == 0
        assert await hearer.drain_topics() == ["a.one", "a.two"]

    async def test_numbers_do_not_begin_anew_after_pruning(self, store: ContractStore) -> None:
        """A reader that goes on where it was misses nothing."""
        await tell(store, "a.one", "a.two")
        last = (await store.journal.latest(1))[0]
        await store.apply(Prune(Stale.EVENTS, 10, 10))
        await tell(store, "a.three")
        assert [one.topic for one in await store.journal.events(last.id, 10)] == ["a.three"]
