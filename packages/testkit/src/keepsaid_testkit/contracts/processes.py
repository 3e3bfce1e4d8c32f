"""Contract of processes that share a store: who is alive, who leads, and whose work is taken over."""

from __future__ import annotations

from keepsaid.domain.batch import AWAY_MS, LIFE_MS, Sharing
from keepsaid.domain.commits import Doubt, Release, Renew
from keepsaid.domain.process import Beat, Pulse, Relinquish, VoidLeases
from keepsaid.testing.builders import said
from keepsaid_testkit.contracts.outbox import state_of, take
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver


async def begin(store: ContractStore, owner: str, at: int = 0, *, may_lead: bool = True) -> None:
    """Start a process beside others; those whose life was not kept until then are over."""
    await store.apply(VoidLeases(owner, at, "it died", (), sharing=Sharing(at, may_lead)))


async def pulse(store: ContractStore, owner: str, at: int = 0) -> Pulse:
    """A process says that it lives."""
    return await store.apply(Beat(owner, at, at + 1, Sharing(at)))


async def leaders(store: ContractStore) -> list[str]:
    """The running processes that lead."""
    return [one.owner for one in (await store.overview()).processes if one.leads]


class ProcessesContract:
    """A process is taken for alive as long as it says so, and keeps what it holds; the first that may leads."""

    async def test_a_process_that_lives_keeps_what_it_holds(self, store: ContractStore) -> None:
        """When another one starts, and when it looks for the dead."""
        road = StoreDriver(store)
        await begin(store, "one")
        await road.queue(said("hello"))
        claimed = await road.claim_one(owner="one")
        await pulse(store, "one", 5_000)
        await begin(store, "two", LIFE_MS + 1)
        assert await store.apply(Renew(claimed.batch.id, claimed.batch.fence, 99_000))
        assert await road.claim(owner="two") == ()
        assert [one.owner for one in (await store.overview()).processes] == ["one", "two"]

    async def test_what_one_held_that_fell_silent_is_taken_over(self, store: ContractStore) -> None:
        """It hears of no more than that its batch is another's."""
        road = StoreDriver(store)
        await begin(store, "one")
        await begin(store, "two")
        await road.queue(said("hello"))
        claimed = await road.claim_one(owner="one")
        await pulse(store, "two", 5_000)
        assert not (await pulse(store, "two", LIFE_MS)).lapsed
        assert (await pulse(store, "two", LIFE_MS + 1)).lapsed
        await begin(store, "two", LIFE_MS + 1)
        assert not await store.apply(Renew(claimed.batch.id, claimed.batch.fence, 99_000))
        [again] = await road.claim(owner="two")
        assert (again.batch.id, again.batch.crashes) == (claimed.batch.id, 1)
        assert not (await pulse(store, "two", LIFE_MS + 2)).lapsed
        await pulse(store, "one", LIFE_MS + 3)
        assert [one.owner for one in (await store.overview()).processes] == ["two"], "what is over is over"

    async def test_nobody_is_dead_because_another_reaches_a_database_that_was_away_first(
        self, store: ContractStore
    ) -> None:
        """Whoever spoke last before an outage still has a life then, where those of others would be over."""
        await begin(store, "one")
        await begin(store, "two")
        back_at = LIFE_MS + 1
        await pulse(store, "two", back_at - AWAY_MS - 1)
        assert not (await pulse(store, "two", back_at)).lapsed
        await begin(store, "two", back_at)
        assert [one.owner for one in (await store.overview()).processes] == ["one", "two"]
        assert not (await pulse(store, "two", back_at + 5_000)).lapsed
        assert (await pulse(store, "two", back_at + LIFE_MS + 1)).lapsed, "one that does not come back is found"

    async def test_who_holds_the_lock_of_a_home_ends_the_life_before(self, store: ContractStore) -> None:
        """At once: the former holder is dead, and that of another home is not."""
        for owner, home in (("one", "a"), ("two", "b"), ("three", "a")):
            await store.apply(VoidLeases(owner, 1, "it died", (), sharing=Sharing(1, home=home)))
        assert [one.owner for one in (await store.overview()).processes] == ["two", "three"]

    async def test_the_first_that_may_leads(self, store: ContractStore) -> None:
        """Until it stops or falls silent; then the next."""
        await begin(store, "door", may_lead=False)
        assert await leaders(store) == []
        for owner in ("one", "two", "three"):
            await begin(store, owner)
        assert await leaders(store) == ["one"]
        assert [(await pulse(store, owner)).leads for owner in ("door", "one", "two")] == [False, True, False]
        await store.apply(Relinquish("one", 1))
        assert await leaders(store) == ["two"]
        assert (await pulse(store, "two", 1)).leads
        await pulse(store, "three", 5_000)
        await begin(store, "three", LIFE_MS + 2)
        assert await leaders(store) == ["three"]

    async def test_one_that_is_alone_leads(self, store: ContractStore) -> None:
        """Every other life is over when it starts, whatever was kept."""
        await begin(store, "one")
        await store.apply(VoidLeases("alone", 1, "it died", ()))
        assert await leaders(store) == ["alone"]
        assert await store.apply(Beat("alone", 1, 2)) == Pulse(trial_waits=False)

    async def test_nothing_is_due_early_while_another_lives(self, store: ContractStore) -> None:
        """Whose clock set the time is known: it is that of the store."""
        road = StoreDriver(store)
        await begin(store, "one")
        await road.queue(said("hello"))
        claimed = await road.claim_one(owner="one")
        assert await store.apply(Release(claimed.batch.id, claimed.batch.fence, 8_000))
        await begin(store, "two", 1)
        assert await road.claim(1, owner="two") == ()
        assert len(await road.claim(8_000, owner="two")) == 1

    async def test_a_reply_is_in_doubt_only_where_its_sender_is_dead(self, store: ContractStore) -> None:
        """And what waits to be tried again waits on while another lives."""
        road = StoreDriver(store)
        await begin(store, "one")
        await begin(store, "two")
        for room in ("a", "b"):
            await road.settle(said(room=room))
        [reply] = await take(store, limit=1, owner="one")
        await road.settle(said(room="c"), at=3_600_000)
        assert await store.apply(Doubt("two", 5)) == 0
        assert len(await take(store, 9, owner="two")) == 1, "that of the other room, and not the one of later"
        await begin(store, "two", LIFE_MS + 1)
        assert await store.apply(Doubt("two", LIFE_MS + 1)) == 1
        assert await state_of(store, reply) == "unknown"
