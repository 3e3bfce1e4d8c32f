"""A process says how long it has lived, loads what a turn needs before a trial, and gives second chances."""

from __future__ import annotations

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.batch import LIFE_MS, PULSE_MS, TrialTerms
from keepsaid.domain.process import VoidLeases
from keepsaid.engine.caretakers import CrashNotices, Rescuer
from keepsaid.engine.workers import Attempt, RetryPolicy
from keepsaid.errors import ModelAuth
from keepsaid.pipeline.leasing import Leases, LeaseTerms, LifeTerms, ProcessAge
from keepsaid.pipeline.turn.commands import BURIED, BURIED_AGAIN, PARKED
from keepsaid.services.inbox import ProgressHub
from keepsaid.testing.builders import said
from keepsaid.testing.clock import CountingIds, VirtualClock
from keepsaid_testkit.contracts.crashes import ProcessGenerations

_TERMS = LifeTerms(TrialTerms(after_ms=10_000), stable_ms=600_000)


class Loading:
    """Counts how often a model is loaded; it may be one without a key."""

    def __init__(self, *, fails: bool = False) -> None:
        self.times = 0
        self._fails = fails

    async def load(self) -> None:
        """Load it."""
        self.times += 1
        if self._fails:
            raise ModelAuth("no key")


async def aged(clock: VirtualClock, life: ProcessAge, until_ms: int) -> None:
    """Let a process live until an age, and work when it wants to."""
    while life.lived_ms < until_ms:
        due = await life.work()
        assert due is not None
        await clock.advance(min(max(1, due - clock.due_ms()), until_ms - life.lived_ms))
    await life.work()


async def test_a_process_is_on_record_with_its_age() -> None:
    store, clock = InMemoryOperations(), VirtualClock()
    await store.apply(VoidLeases("one", 0, "", ()))
    await aged(clock, ProcessAge(store, clock, "one", _TERMS), 86_400_000)
    [(lived_ms, due_ms)] = store.database.rows("SELECT lived_ms, due_ms FROM life")
    assert lived_ms > 40_000_000
    assert due_ms > lived_ms


async def test_the_model_is_loaded_before_a_trial_and_only_then() -> None:
    store, clock, loading = InMemoryOperations(), VirtualClock(), Loading()
    lives = ProcessGenerations(store)
    await lives.start()
    life = ProcessAge(store, clock, lives.owner, _TERMS, loading.load)
    await aged(clock, life, 60_000)
    assert (loading.times, life.trial_age_ms) == (0, 0)
    await lives.hold()
    life = ProcessAge(store, clock, lives.owner, _TERMS, loading.load)
    await aged(clock, life, 60_000)
    assert (loading.times, life.trial_age_ms) == (1, 60_000)


async def test_a_model_that_cannot_be_loaded_holds_back_no_trial() -> None:
    store, clock = InMemoryOperations(), VirtualClock()
    lives = ProcessGenerations(store)
    await lives.hold()
    life = ProcessAge(store, clock, lives.owner, _TERMS, Loading(fails=True).load)
    await aged(clock, life, 2_000)
    assert life.trial_age_ms == 2_000, "the turn says itself what is wrong"


async def test_what_crashes_buried_comes_back_after_ten_minutes_without_one() -> None:
    store, clock = InMemoryOperations(), VirtualClock()
    lives = ProcessGenerations(store)
    queued = await lives.hold()
    await lives.exhaust_trials(queued)
    life = ProcessAge(store, clock, lives.owner, _TERMS)
    await aged(clock, life, 599_000)
    assert (await lives.batch(queued)).state == "dead"
    await aged(clock, life, 600_000)
    batch = await lives.batch(queued)
    assert (batch.state, batch.verdict.reason) == ("queued", "the program had run without a crash for 10 minutes")


async def test_a_trial_that_comes_to_its_limit_is_charged_to_nobody() -> None:
    store, clock, ids = InMemoryOperations(), VirtualClock(), CountingIds(900)
    lives = ProcessGenerations(store)
    queued = await lives.hold()
    life = ProcessAge(store, clock, lives.owner, _TERMS)
    await aged(clock, life, 10_000)
    leases = Leases(store, clock, ids, lives.owner, LeaseTerms(alone_ms=1), life=life)
    attempt = Attempt(store, ProgressHub(), clock, ids, RetryPolicy())
    [lease] = await leases.claim(4)
    claimed = await store.claimed(lease)
    assert claimed is not None
    assert leases.limit_s(claimed) == 0.001

    async def too_long() -> None:
        async with leases.kept(claimed):
            raise TimeoutError

    assert await attempt.at(claimed, too_long) == "waiting"
    batch = await lives.batch(queued)
    assert (batch.state, batch.attempts, batch.crashes, batch.survived) == ("queued", 0, 1, 1)


async def test_a_notice_says_how_often_the_program_was_stopped_and_what_follows() -> None:
    store, clock, ids = InMemoryOperations(), VirtualClock(), CountingIds(900)
    lives = ProcessGenerations(store)
    await lives.start()
    queued = await lives.queue(*[said("poison").content.text])
    for n in range(6):
        await lives.claim(3_600_000, at=clock.due_ms())
        lives.owner = f"next {n}"
        notices = CrashNotices(BURIED, BURIED_AGAIN, PARKED)
        await Rescuer(store, clock, ids, lives.owner, notices).recover()
    [notice] = (await lives.road.story(queued.first.id)).replies
    assert "was stopped 5 times" in notice.draft.text
    assert "tried once more, by itself" in notice.draft.text
    assert "{" not in notice.draft.text


async def test_one_that_falls_silent_is_found_within_fifteen_seconds_and_the_next_leads() -> None:
    """Where processes share a store; the first leads until its life is over."""
    store, clock = InMemoryOperations(), VirtualClock()
    one, two = (ProcessAge(store, clock, name, LifeTerms(shares=True)) for name in ("one", "two"))
    for name, life in (("one", one), ("two", two)):
        await store.apply(VoidLeases(name, 0, "", (), sharing=life.sharing()))
        await life.work()
    assert (one.leads, two.leads, two.lapsed.is_set()) == (True, False, False)
    silent_at = clock.steady_ms()
    while (due := await two.work()) and not two.lapsed.is_set():
        await clock.advance(max(1, due - clock.due_ms()))
    assert clock.steady_ms() - silent_at <= 15_000
    assert (two.take_lapsed(), two.take_lapsed(), two.chosen.is_set()) == (True, False, False)
    await store.apply(VoidLeases("two", clock.now_ms(), "", (), sharing=two.sharing()))
    await two.work()
    assert (two.leads, two.chosen.is_set()) == (True, True)


async def test_when_the_database_was_away_for_all_nobody_is_taken_for_dead_at_once() -> None:
    """The first one that reaches it again gives the others as long as a life to say that they live."""
    store, clock = InMemoryOperations(), VirtualClock()
    one, two, dead = (ProcessAge(store, clock, name, LifeTerms(shares=True)) for name in ("one", "two", "dead"))
    for name, life in (("one", one), ("two", two), ("dead", dead)):
        await store.apply(VoidLeases(name, 0, "", (), sharing=life.sharing()))
        await life.work()
    await clock.advance(40_000)
    back_at = clock.steady_ms()
    await two.work()
    assert not two.lapsed.is_set()
    await clock.advance(9_000)
    await one.work()
    assert (one.leads, one.lapsed.is_set()) == (True, False)
    while not two.lapsed.is_set():
        await clock.advance(PULSE_MS)
        await one.work()
        await two.work()
    assert LIFE_MS < clock.steady_ms() - back_at <= 15_000, "who was killed meanwhile is still found"
