"""The contract of sessions: epochs of a lane that follow one another, and their marks for collection."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.prompt import Role
from keepsaid.domain.session import FIRST, QuietSince, Rest, Rested, Session
from keepsaid.testing.builders import consulted, lane_of, outcome, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

MINUTE = 60_000
HOUR = 60 * MINUTE


async def newest(store: ContractStore, room: str = "room") -> Session:
    """The newest session of a room."""
    return (await store.sessions(lane_of(room), 1))[0]


async def answered(road: StoreDriver, at: int, heard_at: int | None = None, room: str = "room") -> None:
    """One message and its reply, two records."""
    await road.queue(said(room=room), at if heard_at is None else heard_at)
    await road.answer(await road.claim_one(at), at=at)


def resting(at: int, limit: int = 100) -> Rest:
    """What is quiet for a minute sleeps, for an hour ends."""
    return Rest(at - MINUTE, at - HOUR, at, at, limit)


class SessionContract:
    """A session begins with a turn, and covers the records from there to where it ends."""

    async def test_the_first_turn_starts_one_and_later_ones_belong_to_it(self, store: ContractStore) -> None:
        """It grows with its lane; other lanes have their own."""
        road = StoreDriver(store)
        assert list(await store.sessions(lane_of(), 9)) == []
        await answered(road, 5)
        first = await newest(store)
        assert first == Session(first.id, "active", 1, 2, 5, 5, FIRST)
        await answered(road, 9)
        await answered(road, 9, room="den")
        assert await newest(store) == replace(first, last=4, active_at=9)
        assert (await newest(store, "den")).first == 1

    async def test_a_message_after_a_long_silence_starts_another(self, store: ContractStore) -> None:
        """Longer than the time given, by when the message came and not by when it was answered."""
        road = StoreDriver(store)
        await answered(road, 0)
        await answered(road, 5 * HOUR, heard_at=30 * MINUTE)
        assert len(await store.sessions(lane_of(), 9)) == 1
        await answered(road, 5 * HOUR + 30 * MINUTE + 1)
        new, old = await store.sessions(lane_of(), 9)
        assert (old.state, old.first, old.last, old.ended_reason) == ("ended", 1, 4, "inactivity")
        assert (new.state, new.first, new.last, new.started_reason) == ("active", 5, 6, "inactivity")
        assert (old.invalidated_at, old.invalidated_reason, new.invalidated_at) == (4, "switch", None)

    async def test_how_long_is_the_turns_to_say(self, store: ContractStore) -> None:
        """Times come in the commit."""
        road = StoreDriver(store)
        await answered(road, 0)
        await road.queue(said(), 11)
        claimed = await road.claim_one(11)
        batch = claimed.batch
        assert await store.apply(
            TurnCommit(claimed.turn_id, batch.id, batch.fence, outcome(), None, 11, inactive_ms=10)
        )
        assert [one.started_reason for one in await store.sessions(lane_of(), 9)] == ["inactivity", FIRST]

    async def test_a_clock_set_back_changes_no_session(self, store: ContractStore) -> None:
        """The next turn counts from the new time."""
        road = StoreDriver(store)
        await answered(road, 9 * HOUR)
        await answered(road, HOUR)
        assert len(await store.sessions(lane_of(), 9)) == 1
        await answered(road, HOUR + 31 * MINUTE)
        assert [(one.first, one.last) for one in await store.sessions(lane_of(), 9)] == [(5, 6), (1, 4)]

    async def test_as_many_as_asked_for(self, store: ContractStore) -> None:
        """The newest first."""
        road = StoreDriver(store)
        for at in range(3):
            await answered(road, at * HOUR)
        assert [one.first for one in await store.sessions(lane_of(), 2)] == [5, 3]


class RestContract:
    """Sessions of quiet lanes sleep, and end."""

    async def test_they_sleep_after_a_minute_and_end_after_an_hour(self, store: ContractStore) -> None:
        """Each once, and marked for collection."""
        road = StoreDriver(store)
        await answered(road, 0)
        assert await store.quiet_since() == QuietSince(0, None)
        assert await store.apply(resting(MINUTE - 1)) == Rested(0, 0, 0)
        assert await store.apply(resting(MINUTE)) == Rested(1, 0, 1)
        session = await newest(store)
        assert (session.state, session.invalidated_at, session.invalidated_reason) == ("sleeping", 2, "sleep")
        assert await store.quiet_since() == QuietSince(None, 0)
        assert await store.apply(resting(HOUR - 1)) == Rested(0, 0, 0)
        assert await store.apply(resting(HOUR)) == Rested(0, 1, 1)
        session = await newest(store)
        assert (session.state, session.last, session.ended_at, session.ended_reason) == ("ended", 2, HOUR, "idle")
        assert (session.invalidated_at, session.invalidated_reason) == (2, "sleep")
        assert await store.quiet_since() == QuietSince(None, None)
        assert await store.apply(resting(9 * HOUR)) == Rested(0, 0, 0)

    async def test_a_message_wakes_it_and_after_its_end_starts_another(self, store: ContractStore) -> None:
        """Where the last one ended."""
        road = StoreDriver(store)
        await answered(road, 0)
        await store.apply(resting(MINUTE))
        await answered(road, 2 * MINUTE)
        assert [(one.state, one.last) for one in await store.sessions(lane_of(), 9)] == [("active", 4)]
        await store.apply(resting(2 * HOUR))
        await answered(road, 2 * HOUR)
        new, old = await store.sessions(lane_of(), 9)
        assert (old.state, old.last, new.state, new.first, new.started_reason) == ("ended", 4, "active", 5, "idle")

    async def test_a_lane_at_work_is_not_quiet(self, store: ContractStore) -> None:
        """What waits there or is answered there will wake it; it counts from zero from then on."""
        road = StoreDriver(store)
        await answered(road, 0)
        await road.receive(said(), 59_000)
        assert await store.apply(resting(MINUTE)) == Rested(0, 0, 1)
        await road.route(lane_of(), MINUTE)
        assert await store.quiet_since() == QuietSince(MINUTE, None)
        claimed = await road.claim_one(MINUTE)
        assert await store.apply(resting(2 * MINUTE)) == Rested(0, 0, 1)
        await road.answer(claimed, at=2 * MINUTE)
        assert await store.apply(resting(3 * MINUTE)) == Rested(1, 0, 1)

    async def test_only_so_many_at_once_the_longest_quiet_first(self, store: ContractStore) -> None:
        """The rest is for the next."""
        road = StoreDriver(store)
        for n in range(3):
            await answered(road, 3 - n, room=f"r{n}")
        assert await store.apply(resting(MINUTE + 3, limit=2)) == Rested(2, 0, 2)
        assert [(await newest(store, f"r{n}")).state for n in range(3)] == ["active", "sleeping", "sleeping"]
        assert await store.apply(resting(MINUTE + 3, limit=2)) == Rested(1, 0, 1)

    async def test_one_that_is_quiet_since_tomorrow_counts_from_now(self, store: ContractStore) -> None:
        """A clock was wrong when it was written."""
        road = StoreDriver(store)
        await answered(road, 24 * HOUR)
        assert await store.apply(resting(HOUR)) == Rested(0, 0, 0)
        assert await store.quiet_since() == QuietSince(HOUR, None)
        assert await store.apply(resting(HOUR + MINUTE)) == Rested(1, 0, 1)

    async def test_silence_is_measured_by_the_steady_clock(self, store: ContractStore) -> None:
        """A turn says what that told."""
        road = StoreDriver(store)
        await road.queue(said(), 0)
        claimed = await road.claim_one(0)
        batch = claimed.batch
        assert await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, outcome(), None, 9, steady=7))
        assert await store.quiet_since() == QuietSince(7, None)


class MarkContract:
    """Sessions are marked for collection up to a record (seed 004)."""

    async def test_the_sixth_record_marks_and_the_fifth_does_not(self, store: ContractStore) -> None:
        """And every later one, further on."""
        road = StoreDriver(store)
        await road.receive(said())
        marks = []
        for at in range(4):
            await answered(road, at)
            session = await newest(store)
            marks.append((session.last, session.invalidated_at, session.invalidated_reason))
        assert marks == [(3, None, ""), (5, None, ""), (7, 7, "records"), (9, 9, "records")]

    async def test_results_of_tools_do_not_count(self, store: ContractStore) -> None:
        """Only what people and agent said."""
        road = StoreDriver(store)
        marks = []
        for _ in range(2):
            await road.queue(said())
            claimed = await road.claim_one()
            end = replace(outcome(), records=consulted())
            assert any(record.role is Role.TOOL for record in end.records)
            assert await store.apply(TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence, end, None, 0))
            marks.append((await newest(store)).invalidated_at)
        assert marks == [None, 8]

    async def test_the_larger_mark_wins(self, store: ContractStore) -> None:
        """Sleep after the sixth record changes nothing; records after sleep do."""
        road = StoreDriver(store)
        for at in range(3):
            await answered(road, at)
        await store.apply(resting(2 * MINUTE))
        session = await newest(store)
        assert (session.state, session.invalidated_at, session.invalidated_reason) == ("sleeping", 6, "records")
        await answered(road, 3 * MINUTE)
        session = await newest(store)
        assert (session.invalidated_at, session.invalidated_reason) == (8, "records")

    async def test_a_new_session_counts_its_own(self, store: ContractStore) -> None:
        """What was said before it is not new."""
        road = StoreDriver(store)
        for at in range(4):
            await answered(road, at)
        for n in range(3):
            await answered(road, HOUR + n)
            session = await newest(store)
            assert session.invalidated_at == (None if n < 2 else 14)
