"""The contract of collection: marks, claims, findings, and what is left of a mark (seed 004)."""

from __future__ import annotations

from keepsaid.domain.learning import ExtractionResult, Statement
from keepsaid.domain.memory import Kind
from keepsaid.domain.process import VoidLeases
from keepsaid.domain.session import (
    ClaimCollection,
    Collected,
    CollectionFailed,
    ExtractionLease,
    Invalidate,
    KeepFinding,
    Left,
    MarkUnprocessed,
    RequeueCollection,
)
from keepsaid.domain.turn import Usage
from keepsaid.testing.builders import lane_of
from keepsaid_testkit.contracts.sessions import HOUR, MINUTE, answered, newest, resting
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

LEASE = 10 * MINUTE
STATES = ("marked", "claimed", "parked")


async def talked(road: StoreDriver, exchanges: int, at: int = 0, room: str = "room") -> int:
    """A number of messages with their replies, two records each; returns the session's id."""
    for _ in range(exchanges):
        await answered(road, at, room=room)
    return (await newest(road.store, room)).id


async def claimed(
    store: ContractStore, at: int = 0, *, thorough: bool = True, owner: str = "one"
) -> ExtractionLease | None:
    """The session that is due for longest."""
    return await store.apply(ClaimCollection(owner, at, at + LEASE, thorough))


async def claim(store: ContractStore, at: int = 0, *, thorough: bool = True) -> ExtractionLease:
    """The session that is due, and one is."""
    found = await claimed(store, at, thorough=thorough)
    assert found is not None
    return found


def finding(of: ExtractionLease, number: int = 900, last: int = 6) -> ExtractionResult:
    """What was found in all that was read."""
    statement = Statement(Kind.FACT, "Ann lives in Oslo", "Ann", "city", "Oslo", records=(of.after + 1,))
    return ExtractionResult(number, of.session_id, of.lane, of.after + 1, last, "test/1", (statement,), Usage(5, 2), 7)


async def ends(store: ContractStore, of: ExtractionLease, until: int, at: int = 0, *, thorough: bool = True) -> Left:
    """The end of a reading."""
    return await store.apply(Collected(of.session_id, of.fence, until, at, thorough))


class ClaimingContract:
    """Who is claimed, when, and for how long."""

    async def test_the_oldest_mark_is_claimed_first_and_each_once(self, store: ContractStore) -> None:
        """By when it was marked."""
        road = StoreDriver(store)
        for at, room in ((5, "b"), (3, "a"), (9, "c")):
            await talked(road, 3, at, room)
        found = [(await claim(store, 10)).lane for _ in range(3)]
        assert found == [lane_of("a"), lane_of("b"), lane_of("c")]
        assert await claimed(store, 10) is None

    async def test_a_claim_says_what_is_to_be_read(self, store: ContractStore) -> None:
        """After which record, up to which, and why."""
        session_id = await talked(StoreDriver(store), 3)
        assert await claim(store, 1) == ExtractionLease(session_id, lane_of(), 1, 0, 6, "records")

    async def test_nothing_is_claimed_before_it_is_marked(self, store: ContractStore) -> None:
        """The fifth record marks nothing."""
        await talked(StoreDriver(store), 2)
        assert await claimed(store, HOUR) is None

    async def test_a_soft_mark_of_fewer_than_six_records_waits(self, store: ContractStore) -> None:
        """Sleep marks what a model reads when there are six, or when the session ends."""
        road = StoreDriver(store)
        await talked(road, 2)
        await store.apply(resting(MINUTE))
        assert (await newest(store)).invalidated_reason == "sleep"
        assert await claimed(store, MINUTE) is None
        await talked(road, 1, 2 * MINUTE)
        assert (await claim(store, 2 * MINUTE)).marked == 6

    async def test_the_end_of_a_session_waits_for_nothing(self, store: ContractStore) -> None:
        """Two records are read then."""
        road = StoreDriver(store)
        await talked(road, 1)
        await store.apply(resting(MINUTE))
        assert await claimed(store, MINUTE) is None
        await store.apply(resting(HOUR))
        assert (await claim(store, HOUR)).marked == 2

    async def test_who_does_not_read_thoroughly_waits_for_nothing_and_reads_once(self, store: ContractStore) -> None:
        """The mark stays for one who does."""
        road = StoreDriver(store)
        await talked(road, 1)
        await store.apply(resting(MINUTE))
        one = await claim(store, MINUTE, thorough=False)
        assert await ends(store, one, 2, MINUTE, thorough=False) is Left.MARKED
        assert await claimed(store, HOUR, thorough=False) is None
        assert (await newest(store)).invalidated_at == 2
        assert (await newest(store)).processed_until is None
        await talked(road, 1, 2 * MINUTE)
        await store.apply(resting(3 * MINUTE))
        again = await claim(store, 3 * MINUTE, thorough=False)
        assert (again.after, again.marked, again.whole) == (2, 4, False)
        assert await ends(store, again, 4, 3 * MINUTE, thorough=False) is Left.MARKED
        await store.apply(MarkUnprocessed(HOUR, thorough=True))
        whole = await claim(store, HOUR)
        assert (whole.after, whole.whole) == (0, True)

    async def test_a_claim_that_ran_out_is_claimed_again(self, store: ContractStore) -> None:
        """And the one who had it is refused."""
        await talked(StoreDriver(store), 3)
        one = await claim(store, 0)
        assert await claimed(store, LEASE - 1) is None
        two = await claim(store, LEASE)
        assert two.fence == one.fence + 1
        assert await ends(store, one, 6) is Left.REFUSED
        assert not await store.apply(KeepFinding(finding(one), one.fence))
        assert not await store.apply(CollectionFailed(one.session_id, one.fence, "late", 0, 1))
        assert await ends(store, two, 6) is Left.CLEARED

    async def test_a_start_voids_what_others_had_claimed(self, store: ContractStore) -> None:
        """Their process is dead; what waits for a time is due at once."""
        road = StoreDriver(store)
        await talked(road, 3, 0, "a")
        await talked(road, 3, 1, "b")
        one = await claim(store, 2)
        await store.apply(CollectionFailed(one.session_id, one.fence, "no", 2, 9 * HOUR))
        two = await claim(store, 2)
        await store.apply(VoidLeases("one", 3, "", ()))
        assert [(await claim(store, 3)).session_id] == [one.session_id], "its time is forgotten, the claim is its own"
        assert await claimed(store, 3) is None
        await store.apply(VoidLeases("next", 4, "", ()))
        again = [await claimed(store, 4, owner="next") for _ in range(2)]
        assert {found.session_id for found in again if found} == {one.session_id, two.session_id}


class CollectedContract:
    """A mark is cleared up to the last record that was loaded, and no further."""

    async def test_it_is_cleared_when_nothing_is_left(self, store: ContractStore) -> None:
        """And marked again by the sixth record after it."""
        road = StoreDriver(store)
        await talked(road, 3)
        assert await ends(store, await claim(store), 6) is Left.CLEARED
        session = await newest(store)
        assert (session.invalidated_at, session.invalidated_reason, session.processed_until) == (None, "", 6)
        assert await store.collections(STATES, 9) == []
        await talked(road, 2)
        assert (await newest(store)).invalidated_at is None
        await talked(road, 1)
        assert (await newest(store)).invalidated_at == 12
        assert (await claim(store)).after == 6

    async def test_a_message_that_came_meanwhile_stays_marked(self, store: ContractStore) -> None:
        """It was not loaded."""
        road = StoreDriver(store)
        await talked(road, 3)
        one = await claim(store)
        await talked(road, 1)
        assert await ends(store, one, 6) is Left.MARKED
        session = await newest(store)
        assert (session.invalidated_at, session.processed_until) == (8, 6)
        assert await claimed(store, MINUTE) is None, "two records wait"
        await store.apply(resting(HOUR))
        assert [one.invalidated_at for one in await store.sessions(lane_of(), 9)] == [8]

    async def test_one_that_came_without_a_mark_stays_marked_too(self, store: ContractStore) -> None:
        """Where the mark was set by sleep, and fewer than six came since."""
        road = StoreDriver(store)
        await talked(road, 1)
        await store.apply(Invalidate((await newest(store)).id, 2, "asked", 0))
        one = await claim(store)
        await talked(road, 1)
        assert (await newest(store)).invalidated_at == 2
        assert await ends(store, one, 2) is Left.MARKED
        assert (await newest(store)).invalidated_at == 4

    async def test_a_span_is_read_in_pieces(self, store: ContractStore) -> None:
        """The rest is due at once, or waits as any."""
        road = StoreDriver(store)
        await talked(road, 7)
        one = await claim(store)
        assert await ends(store, one, 8) is Left.MARKED
        two = await claim(store)
        assert (two.after, two.marked) == (8, 14)
        assert await ends(store, two, 12) is Left.MARKED
        assert await claimed(store) is None

    async def test_reading_again_what_was_read_changes_nothing(self, store: ContractStore) -> None:
        """The same end twice is refused the second time."""
        await talked(StoreDriver(store), 3)
        one = await claim(store)
        assert await ends(store, one, 6) is Left.CLEARED
        assert await ends(store, one, 6) is Left.REFUSED

    async def test_what_a_hasty_reader_found_empty_is_done_with(self, store: ContractStore) -> None:
        """There was nothing for anybody to read."""
        await talked(StoreDriver(store), 3)
        one = await claim(store, thorough=False)
        assert one.whole
        assert await ends(store, one, 6, thorough=True) is Left.CLEARED


class FindingContract:
    """What was found is kept before it is applied, and given to whoever claims next."""

    async def test_a_finding_waits_until_it_is_applied(self, store: ContractStore) -> None:
        """Word for word; then it is not given again."""
        road = StoreDriver(store)
        await talked(road, 3)
        one = await claim(store)
        found = finding(one)
        assert await store.apply(KeepFinding(found, one.fence))
        two = await claim(store, LEASE)
        assert two.finding == found
        assert await store.apply(Collected(two.session_id, two.fence, 6, 0, finding_id=found.id)) is Left.CLEARED
        await talked(road, 3)
        three = await claim(store, LEASE)
        assert (three.finding, three.after) == (None, 6)

    async def test_there_is_one_at_a_time(self, store: ContractStore) -> None:
        """A second is refused."""
        await talked(StoreDriver(store), 3)
        one = await claim(store)
        assert await store.apply(KeepFinding(finding(one), one.fence))
        assert not await store.apply(KeepFinding(finding(one, 901), one.fence))

    async def test_it_is_claimed_whatever_else_waits(self, store: ContractStore) -> None:
        """What was paid for is applied, with two records or sixty."""
        road = StoreDriver(store)
        await talked(road, 1)
        session_id = (await newest(store)).id
        await store.apply(Invalidate(session_id, 2, "asked", 0))
        one = await claim(store)
        assert await store.apply(KeepFinding(finding(one, last=2), one.fence))
        two = await claim(store, LEASE, thorough=False)
        assert two.finding is not None
        lines = await store.collections(STATES, 9)
        assert [(line.session_id, line.state, line.findings) for line in lines] == [(session_id, "claimed", 1)]


class FailingContract:
    """What fails waits, is parked, and can be asked for again; it holds up nobody else."""

    async def test_it_waits_and_the_others_go_on(self, store: ContractStore) -> None:
        """Its attempts count; new messages do not shorten its time."""
        road = StoreDriver(store)
        await talked(road, 3, 0, "a")
        await talked(road, 3, 1, "b")
        one = await claim(store, 1)
        assert await store.apply(CollectionFailed(one.session_id, one.fence, "cannot be read", 1, 1 + HOUR))
        two = await claim(store, 1)
        assert two.lane == lane_of("b")
        assert await ends(store, two, 6, 1) is Left.CLEARED
        await talked(road, 1, 2, "a")
        assert await claimed(store, HOUR) is None
        [line] = await store.collections(STATES, 9)
        assert (line.state, line.attempts, line.error, line.due_at) == ("marked", 1, "cannot be read", 1 + HOUR)
        again = await claim(store, 1 + HOUR)
        assert (again.attempts, again.marked) == (1, 8)

    async def test_an_outage_is_not_charged(self, store: ContractStore) -> None:
        """It is nobody's fault."""
        await talked(StoreDriver(store), 3)
        one = await claim(store)
        await store.apply(CollectionFailed(one.session_id, one.fence, "away", 0, 5, charged=False))
        assert (await claim(store, 5)).attempts == 0

    async def test_one_that_is_parked_waits_for_a_person(self, store: ContractStore) -> None:
        """Its mark still grows."""
        road = StoreDriver(store)
        await talked(road, 3)
        one = await claim(store)
        assert not await store.apply(RequeueCollection(one.session_id, 0))
        assert await store.apply(CollectionFailed(one.session_id, one.fence, "again and again", 0, None))
        await talked(road, 1)
        await store.apply(resting(HOUR))
        assert await claimed(store, 9 * HOUR) is None
        assert (await newest(store)).invalidated_at == 8
        [line] = await store.collections(("parked",), 9)
        assert (line.error, line.due_at) == ("again and again", None)
        assert await store.apply(RequeueCollection(one.session_id, HOUR))
        assert not await store.apply(RequeueCollection(one.session_id, HOUR))
        again = await claim(store, HOUR)
        assert (again.attempts, again.after, again.marked) == (0, 0, 8)

    async def test_success_forgets_the_attempts(self, store: ContractStore) -> None:
        """The next failure is a first one."""
        road = StoreDriver(store)
        await talked(road, 6)
        one = await claim(store)
        await store.apply(CollectionFailed(one.session_id, one.fence, "no", 0, 1))
        assert await ends(store, await claim(store, 1), 6, 1) is Left.MARKED
        assert (await claim(store, 1)).attempts == 0
