"""The contract of schedules: every time has one run, nothing of it goes elsewhere, and what fails too often stops."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import Prune, Settle, TakeReplies, TurnCommit
from keepsaid.domain.effects import EndSchedule, KeepTime
from keepsaid.domain.message import Lane
from keepsaid.domain.reply import Delivered, ReplyDraft
from keepsaid.domain.retention import Stale
from keepsaid.domain.schedule import Fire, NewSchedule, ScheduleRun, Target, What
from keepsaid.domain.scheduling import (
    AddSchedule,
    BeginRun,
    EndRun,
    FireSchedules,
    MoveSchedule,
    Notice,
    RecoverRuns,
    ReplaceSchedules,
    RunKey,
    RunNow,
    SettleRun,
)
from keepsaid.domain.timing import Cron, Every, Once
from keepsaid.events.catalog import CORE
from keepsaid.testing.builders import CHANNEL, lane_of, outcome, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

HOURLY = Every(3_600_000)
LIVE = ("active", "paused", "disabled")
OWNER = Lane("terminal", "default", "me", "root:me")


def new(number: int = 1, what: What = What.SAY, **given: object) -> NewSchedule:
    """Something that is said every hour in the room."""
    said_there = NewSchedule(number, "command", "", HOURLY, what, "drink water", Target(lane_of()))
    return replace(said_there, **given)  # type: ignore[arg-type]


async def add(
    store: ContractStore, *, next_at: int = 100, number: int = 1, what: What = What.SAY, text: str = "drink"
) -> None:
    """One that comes."""
    assert await store.apply(AddSchedule(new(number, what, text=text), next_at, 0))


async def come(store: ContractStore, due_at: int = 100, number: int = 1, next_at: int | None = 200) -> RunKey:
    """Its time comes, and it is run for."""
    assert await store.apply(FireSchedules((Fire(number, due_at, next_at, due_at),), due_at)) == 1
    return RunKey(number, due_at)


async def run_of(store: ContractStore, key: RunKey) -> ScheduleRun:
    """A run as it stands."""
    return next(run for run in await store.schedules.runs(key.schedule_id, 100) if run.due_at == key.due_at)


async def state_of(store: ContractStore, number: int = 1) -> str:
    """A schedule's state."""
    schedule = await store.schedules.schedule(number)
    assert schedule is not None
    return schedule.state


async def list_topics(store: ContractStore) -> list[str]:
    """The topics of all schedule events in the journal, in order; asserts that each event is valid."""
    events = await store.journal.events(0, 1_000)
    mine = [one for one in events if one.topic.startswith("schedule.")]
    assert not [amiss for one in mine for amiss in CORE[one.topic].amiss(one.payload)]
    assert all(one.correlation_id == str(one.payload["schedule"]) for one in mine)
    return [one.topic.removeprefix("schedule.") for one in mine]


class ScheduleContract:
    """What is kept of schedules, and how they move."""

    async def test_what_is_added_is_kept_as_it_is(self, store: ContractStore) -> None:
        """With where its output goes, and with every timing."""
        timings = Cron("0 9 * * 1-5", "Europe/Berlin"), HOURLY, Once(500)
        target = Target(lane_of("élan"), "https://example.org/x", direct=True)
        asked = [new(n, timing=one, target=target, urgent=n == 1) for n, one in enumerate(timings, 1)]
        asked.append(new(4, What.RUN, target=None, text="maintain", whenever=True))
        for one in asked:
            assert await store.apply(AddSchedule(one, 100 + one.id, 7))
        kept = await store.schedules.schedules(LIVE, 0, 10)
        assert [one.new for one in kept] == asked
        assert [(one.state, one.next_at, one.created_at) for one in kept] == [
            ("active", 100 + n, 7) for n in range(1, 5)
        ]
        assert await list_topics(store) == ["added"] * 4

    async def test_an_id_and_a_name_are_given_once(self, store: ContractStore) -> None:
        """A name of each source, and as long as its schedule lives."""
        named = new(1, name="water")
        assert await store.apply(AddSchedule(named, 100, 0))
        assert not await store.apply(AddSchedule(new(1), 100, 0))
        assert not await store.apply(AddSchedule(replace(named, id=2), 100, 0))
        assert await store.apply(AddSchedule(replace(named, id=3, source="agent"), 100, 0))
        assert await store.apply(AddSchedule(new(4), 100, 0))
        assert await store.apply(AddSchedule(new(5), 100, 0))
        assert await store.apply(MoveSchedule(1, "cancel", 0))
        assert await store.apply(AddSchedule(replace(named, id=6), 100, 0))

    async def test_what_is_due_is_told_the_longest_due_first(self, store: ContractStore) -> None:
        """And when the next one comes."""
        for number, at in ((1, 300), (2, 100), (3, 200)):
            await add(store, number=number, next_at=at)
        assert await store.schedules.next_due() == 100
        assert [one.id for one in await store.schedules.due(250, 10)] == [2, 3]
        assert [one.id for one in await store.schedules.due(250, 1)] == [2]
        assert await store.apply(MoveSchedule(2, "pause", 0))
        assert [one.id for one in await store.schedules.due(250, 10)] == [3]
        assert await store.schedules.next_due() == 200

    async def test_a_source_says_which_it_has(self, store: ContractStore) -> None:
        """What is the same goes on, what differs is added, what is gone is cancelled; others are left alone."""
        names = [new(n, source="config", name=name) for n, name in ((1, "one"), (2, "two"), (3, "three"))]
        assert await store.apply(ReplaceSchedules("config", tuple((one, 100) for one in names), 0)) == 3
        await add(store, number=9)
        assert await store.apply(MoveSchedule(1, "pause", 0))
        same, other = replace(names[0], id=11), replace(names[1], id=12, text="stretch")
        assert await store.apply(ReplaceSchedules("config", ((same, 500), (other, 600)), 5)) == 2
        kept = await store.schedules.schedules(("active", "paused", "cancelled"), 0, 10)
        assert [(one.id, one.state, one.next_at, one.new.text) for one in kept] == [
            (1, "paused", 100, "drink water"),
            (2, "active", 600, "stretch"),
            (3, "cancelled", 100, "drink water"),
            (9, "active", 100, "drink"),
        ]
        assert await store.apply(ReplaceSchedules("config", ((same, 500), (other, 600)), 5)) == 0

    async def test_what_was_to_come_once_and_is_over_is_not_added_again(self, store: ContractStore) -> None:
        """A source that still names it has nothing new."""
        gone = new(1, source="config", name="one", timing=Once(5))
        assert await store.apply(ReplaceSchedules("config", ((gone, None),), 10)) == 0
        assert await store.schedules.schedules(LIVE, 0, 10) == []

    async def test_what_a_turn_asks_for_comes_with_its_commit(self, store: ContractStore) -> None:
        """Or not at all; what it cancels ends with it."""
        road = StoreDriver(store, 1_000)
        await add(store)
        await road.queue(said("remind me"))
        claimed = await road.claim_one()
        effects = KeepTime(new(7, source="agent"), 500), EndSchedule(1), EndSchedule(99)
        end = replace(outcome(), effects=effects)
        late = TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence + 1, end, None, 5)
        assert not await store.apply(late)
        assert [one.id for one in await store.schedules.schedules(LIVE, 0, 10)] == [1]
        assert await store.apply(replace(late, fence=claimed.batch.fence))
        [kept] = await store.schedules.schedules(LIVE, 0, 10)
        assert (kept.new, kept.next_at, kept.created_at) == (effects[0].new, 500, 5)
        assert await state_of(store) == "cancelled"

    async def test_a_person_pauses_resumes_and_cancels(self, store: ContractStore) -> None:
        """As the table of its states allows."""
        await add(store)
        for verb, next_at, done in (
            ("resume", 300, False),
            ("pause", None, True),
            ("resume", None, False),
            ("resume", 300, True),
            ("cancel", None, True),
            ("cancel", None, False),
            ("resume", 300, False),
        ):
            assert await store.apply(MoveSchedule(1, verb, 0, next_at)) is done
        assert not await store.apply(MoveSchedule(2, "pause", 0))
        assert await list_topics(store) == ["added", "paused", "resumed", "cancelled"]


class RunContract:
    """Each time has one run."""

    async def test_a_time_that_comes_is_run_for_once(self, store: ContractStore) -> None:
        """Whoever says so again, and whatever the clock says."""
        await add(store)
        key = await come(store)
        assert await store.apply(FireSchedules((Fire(1, 100, 200, 100),), 100)) == 0
        assert await store.apply(EndRun(key, "execute", 110)) == "active"
        assert await store.apply(FireSchedules((Fire(1, 200, 100),), 50)) == 0
        assert await store.apply(FireSchedules((Fire(1, 100, 200, 100),), 101)) == 0
        assert [(run.due_at, run.state) for run in await store.schedules.runs(1, 10)] == [(100, "executed")]
        assert await store.schedules.next_due() == 200
        assert await list_topics(store) == ["added", "fired", "executed"]

    async def test_a_run_knows_where_it_is_heard_though_the_schedule_changes(self, store: ContractStore) -> None:
        """What is due goes where it was to go when its time came."""
        mine = new(1, source="config", name="one")
        assert await store.apply(ReplaceSchedules("config", ((mine, 100),), 0)) == 1
        key = await come(store)
        other = replace(mine, target=Target(lane_of("elsewhere")))
        assert await store.apply(ReplaceSchedules("config", ((other, 200),), 0)) == 1
        run = await run_of(store, key)
        assert run.target == mine.target
        assert await store.apply(EndRun(key, "execute", 100, reply=ReplyDraft(70, "drink"))) == "active"
        [reply] = await store.unseen(CHANNEL, "room")
        assert (reply.lane, reply.draft.text) == (lane_of(), "drink")
        assert await store.unseen(CHANNEL, "elsewhere") == []

    async def test_what_is_missed_or_comes_too_soon_is_skipped_and_says_why(self, store: ContractStore) -> None:
        """In the ledger and in the journal."""
        await add(store)
        assert await store.apply(FireSchedules((Fire(1, 100, 300, missed="too late"),), 250)) == 0
        await come(store, 300, next_at=400)
        assert await store.apply(FireSchedules((Fire(1, 400, 500, 400),), 400)) == 0
        runs = await store.schedules.runs(1, 10)
        assert [(run.due_at, run.state, run.reason) for run in runs] == [
            (400, "skipped", "an earlier run is under way"),
            (300, "due", ""),
            (100, "skipped", "too late"),
        ]
        assert await list_topics(store) == ["added", "skipped", "fired", "skipped"]

    async def test_what_was_missed_can_be_caught_up_with(self, store: ContractStore) -> None:
        """By a run for the last of the times that were."""
        await add(store)
        fire = Fire(1, 100, 500, 400, missed="a later time is caught up with")
        assert await store.apply(FireSchedules((fire,), 450)) == 1
        assert [(run.due_at, run.state) for run in await store.schedules.runs(1, 10)] == [
            (400, "due"),
            (100, "skipped"),
        ]

    async def test_what_comes_once_is_done(self, store: ContractStore) -> None:
        """Its run goes on."""
        await add(store)
        key = await come(store, next_at=None)
        assert await state_of(store) == "done"
        assert await store.schedules.due(1_000, 10) == []
        assert await store.apply(EndRun(key, "execute", 100)) == "done"
        assert await list_topics(store) == ["added", "fired", "done", "executed"]

    async def test_a_run_waits_until_it_may_begin(self, store: ContractStore) -> None:
        """As in quiet hours."""
        await add(store)
        assert await store.apply(FireSchedules((Fire(1, 100, 900, 100, ready_at=500),), 100)) == 1
        assert await store.schedules.ready(499, 10, 10) == []
        assert await store.schedules.next_due() == 500
        [(run, schedule)] = await store.schedules.ready(500, 10, 10)
        assert (run.due_at, run.ready_at, schedule.new.text) == (100, 500, "drink")
        assert await store.schedules.latest() == 100

    async def test_what_is_due_goes_with_its_schedule(self, store: ContractStore) -> None:
        """Nothing is said of what was cancelled or paused."""
        for number, verb in ((1, "cancel"), (2, "pause")):
            await add(store, number=number)
            key = await come(store, number=number)
            assert await store.apply(MoveSchedule(number, verb, 150))
            assert (await run_of(store, key)).state == "skipped"
            assert await store.apply(EndRun(key, "execute", 160)) == ""
        assert await store.schedules.ready(1_000, 10, 10) == []

    async def test_a_run_is_begun_once_and_ends_once(self, store: ContractStore) -> None:
        """By whoever comes first."""
        await add(store, what=What.RUN)
        key = await come(store)
        assert await store.apply(BeginRun(key, 100))
        assert not await store.apply(BeginRun(key, 100))
        assert await store.apply(EndRun(key, "execute", 120)) == "active"
        assert await store.apply(EndRun(key, "fail", 130)) == ""
        run = await run_of(store, key)
        assert (run.state, run.output, run.ended_at) == ("executed", "none", 120)

    async def test_what_a_dead_process_ran_begins_again_where_it_may(self, store: ContractStore) -> None:
        """Else it is interrupted, and charged to nobody."""
        await add(store, what=What.RUN, text="again")
        await add(store, what=What.RUN, text="never again", number=2)
        keys = [await come(store, number=n) for n in (1, 2)]
        for key in keys:
            assert await store.apply(BeginRun(key, 100))
        assert await store.apply(RecoverRuns(("again",), 150)) == 2
        assert [(await run_of(store, key)).state for key in keys] == ["due", "interrupted"]
        assert await store.apply(RecoverRuns(("again",), 150)) == 0
        stands = await store.schedules.schedules(LIVE, 0, 10)
        assert [one.failures for one in stands] == [0, 0]

    async def test_a_person_runs_one_now(self, store: ContractStore) -> None:
        """Beside its times; not while a run is under way, nor when it is over."""
        await add(store)
        assert await store.apply(RunNow(1, 50))
        assert not await store.apply(RunNow(1, 51))
        assert await store.apply(EndRun(RunKey(1, 50), "execute", 60)) == "active"
        assert await store.apply(MoveSchedule(1, "pause", 60))
        assert await store.apply(RunNow(1, 61))
        assert await store.apply(MoveSchedule(1, "cancel", 62))
        assert not await store.apply(RunNow(1, 63))
        assert not await store.apply(RunNow(2, 63))

    async def test_the_third_failure_in_a_row_disables_and_is_said(self, store: ContractStore) -> None:
        """To the owner, once; a run that is executed ends the count."""
        await add(store, what=What.RUN)
        for n, verb in enumerate(("fail", "fail", "execute", "fail", "fail", "fail")):
            at = 100 + 100 * n
            key = await come(store, at, next_at=at + 100)
            notice = Notice(OWNER, ReplyDraft(900 + n, "it was disabled")) if verb == "fail" else None
            last = n == 5
            expected = "disabled" if last else "active"
            assert await store.apply(EndRun(key, verb, at, f"no {n}", notice=notice)) == expected
            assert len(await store.unseen("terminal", "me")) == last
        schedule = await store.schedules.schedule(1)
        assert schedule is not None
        assert (schedule.failures, schedule.reason) == (3, "no 5")
        assert await store.schedules.due(9_999, 10) == []
        assert (await list_topics(store))[-2:] == ["failed", "disabled"]
        assert await store.apply(MoveSchedule(1, "resume", 700, 800))
        schedule = await store.schedules.schedule(1)
        assert schedule is not None
        assert (schedule.state, schedule.failures, schedule.reason, schedule.next_at) == ("active", 0, "", 800)

    async def test_old_runs_go_and_what_comes_no_more_with_them(self, store: ContractStore) -> None:
        """What is under way stays, and what can still come."""
        await add(store)
        await add(store, number=2)
        await add(store, number=3)
        key = await come(store)
        await store.apply(EndRun(key, "execute", 100, reply=ReplyDraft(70, "drink")))
        await store.apply(EndRun(await come(store, number=2), "execute", 100))
        await come(store, number=3)
        assert await store.apply(MoveSchedule(2, "cancel", 0))
        await store.apply(Prune(Stale.RUNS, 1_000, 1_000))
        left = [one.id for one in await store.schedules.schedules((*LIVE, "cancelled"), 0, 10)]
        assert left == [1, 3]
        assert [len(await store.schedules.runs(n, 10)) for n in (1, 2, 3)] == [1, 0, 1]
        [reply] = await store.unseen(CHANNEL, "room")
        [taken] = await store.apply(TakeReplies((CHANNEL,), "one", 9, 2_000))
        assert taken.id == reply.id
        await store.apply(Settle(reply.id, taken.fence, Delivered.CONFIRMED, 2_000))
        assert await store.apply(SettleRun(key, "deliver", 2_000)) == "active"
        await store.apply(Prune(Stale.RUNS, 1_000, 2_000))
        assert await store.schedules.runs(1, 10) == []
