"""The contract of crashes: what a death of the process is worth as evidence against a batch, and what follows."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from keepsaid.domain.batch import StoredBatch, TrialTerms
from keepsaid.domain.commits import Fail, Failure, Release, Requeue, StepEnd, StepStart
from keepsaid.domain.message import Inbound
from keepsaid.domain.process import Beat, Relinquish, RequeueCrashed, VoidLeases
from keepsaid.domain.turn import ClaimedBatch, Usage
from keepsaid.testing.builders import said, step
from keepsaid_testkit.contracts.busy import busy
from keepsaid_testkit.contracts.store_driver import ContractStore, Queued, StoreDriver

HOUR_MS = 3_600_000
_TERMS = TrialTerms()


class ProcessGenerations:
    """A sequence of processes over one store; each dies when the next starts."""

    def __init__(self, store: ContractStore) -> None:
        self.store = store
        self.road = StoreDriver(store)
        self._numbers = count(1)
        self.owner = ""

    async def start(self, at: int = 0) -> tuple[int, ...]:
        """Start a process; returns the batches that its start found dead."""
        self.owner = f"life {next(self._numbers)}"
        reply_ids = tuple(self.road.new_id() for _ in range(4))
        commit = VoidLeases(self.owner, at, "{batch} after {deaths}", reply_ids, split_id=self.road.new_id())
        commit = replace(commit, notice_again="{batch} again", notice_parked="{batch} parked")
        return await self.store.apply(commit)

    async def beat(self, lived_ms: int) -> bool:
        """The process says that it has lived so long; returns whether a batch waits for a trial."""
        return (await self.store.apply(Beat(self.owner, lived_ms, 2 * lived_ms))).trial_waits

    async def claim(self, lived_ms: int = 0, at: int = 0) -> tuple[ClaimedBatch, ...]:
        """Claim what a process may that has lived so long."""
        self.road.lived_ms = lived_ms
        return await self.road.claim(at, owner=self.owner)

    async def begin_trial(self, lived_ms: int = HOUR_MS, at: int = 9) -> ClaimedBatch:
        """Claim the held batch for a trial."""
        [claimed] = await self.claim(lived_ms, at)
        assert claimed.alone
        return claimed

    async def queue(self, *texts: str, room: str = "a") -> Queued:
        """Make a batch of some messages."""
        first, *_ = [await self.road.receive(one) for one in self._inbound(texts, room)]
        return Queued(await self.road.route(first.lane), first)

    def _inbound(self, texts: tuple[str, ...], room: str) -> list[Inbound]:
        return [said(text, room) for text in texts]

    async def hold(self, *texts: str, room: str = "a") -> Queued:
        """Make a batch that was in flight at two deaths in a row; the next process has started."""
        await self.start()
        queued = await self.queue(*texts or ("poison",), room=room)
        for _ in range(2):
            [claimed] = await self.claim()
            assert claimed.batch.id == queued.batch_id
            await self.start()
        return queued

    async def exhaust_trials(self, queued: Queued) -> None:
        """Let the process die in trials of a held batch of one message until the batch is dead."""
        for _ in range(2):
            assert (await self.begin_trial()).batch.id == queued.batch_id
            assert await self.start() == ()
        await self.begin_trial()
        assert await self.start() == (queued.batch_id,)

    async def batch(self, queued: Queued) -> StoredBatch:
        """A batch as it is now."""
        return await self.road.batch(queued)


class TrialContract:
    """What was in flight at two deaths in a row is tried alone, by a process that lives without it."""

    async def test_a_trial_waits_until_the_process_has_lived_without_it(self, store: ContractStore) -> None:
        """Others go on meanwhile."""
        lives = ProcessGenerations(store)
        queued = await lives.hold()
        await lives.queue("hello", room="b")
        [other] = await lives.claim(_TERMS.after_ms - 1)
        assert other.batch.id != queued.batch_id
        await lives.road.answer(other)
        assert await lives.claim(_TERMS.after_ms - 1) == ()
        assert await store.next_trial() == _TERMS.after_ms
        assert (await lives.begin_trial(_TERMS.after_ms)).batch.trial_after_ms == _TERMS.after_ms
        assert await store.next_trial() is None

    async def test_the_overview_counts_what_waits_for_a_trial(self, store: ContractStore) -> None:
        """And names the oldest."""
        lives = ProcessGenerations(store)
        queued = await lives.hold()
        await lives.queue("hello", room="b")
        seen = await store.overview()
        assert (seen.held, seen.held_first) == (1, queued.batch_id)
        await lives.road.answer(await lives.begin_trial())
        seen = await store.overview()
        assert (seen.held, seen.held_first) == (0, 0)

    async def test_no_death_outside_a_trial_is_charged(self, store: ContractStore) -> None:
        """However many there are."""
        lives = ProcessGenerations(store)
        queued = await lives.hold()
        for _ in range(20):
            assert await lives.claim(_TERMS.after_ms - 1) == ()
            assert await lives.start() == ()
        batch = await lives.batch(queued)
        assert (batch.state, batch.attempts, batch.crashes) == ("queued", 0, 2)

    async def test_three_deaths_in_quick_trials_bury_it(self, store: ContractStore) -> None:
        """Its turn is abandoned, the person reads how often the program was stopped, the lane continues."""
        lives = ProcessGenerations(store)
        queued = await lives.hold()
        later = await lives.queue("and then?")
        turn_id = (await lives.begin_trial()).turn_id
        assert await lives.start() == ()
        assert (await lives.batch(queued)).attempts == 1
        await lives.begin_trial()
        await lives.start()
        await lives.begin_trial()
        assert await lives.start(70) == (queued.batch_id,)
        story = await lives.road.story(queued.first.id)
        assert story.batch is not None
        assert (story.state, story.batch.attempts, story.batch.crashes) == ("dead", 3, 5)
        [notice] = story.replies
        assert (notice.draft.text.endswith("after 5"), notice.draft.notice) == (True, True)
        turn = await store.turn(turn_id)
        assert turn is not None
        assert (turn.state, turn.ended_at, bool(turn.reason)) == ("abandoned", 70, True)
        assert [one.batch.id for one in await lives.claim()] == [later.batch_id]

    async def test_deaths_that_are_as_frequent_without_it_are_not_charged(self, store: ContractStore) -> None:
        """The process dies every twenty seconds, whatever it does."""
        lives = ProcessGenerations(store)
        queued = await lives.hold()
        lived_ms = _TERMS.after_ms
        for _ in range(5):
            for _ in range(4):
                await lives.beat(20_000)
                await lives.start()
            await lives.begin_trial(lived_ms)
            await store.apply(Beat(lives.owner, lived_ms + 8_000, lived_ms + 16_000))
            assert await lives.start() == ()
            batch = await lives.batch(queued)
            assert batch.trial_after_ms == _TERMS.next_after_ms(16_000, lived_ms + 16_000) > lived_ms
            lived_ms = batch.trial_after_ms
            assert (batch.state, batch.attempts) == ("queued", 0)

    async def test_the_next_trial_waits_several_times_as_long_as_the_last_lasted(self, store: ContractStore) -> None:
        """And longer than the process had lived."""
        lives = ProcessGenerations(store)
        queued = await lives.hold()
        await lives.begin_trial(_TERMS.after_ms)
        await store.apply(Beat(lives.owner, 40_000, 70_000))
        await lives.start()
        assert (await lives.batch(queued)).trial_after_ms == 5 * 60_000
        assert await lives.claim(5 * 60_000 - 1) == ()
        assert (await lives.begin_trial(5 * 60_000)).batch.id == queued.batch_id

    async def test_nobody_is_told_without_an_id_for_it(self, store: ContractStore) -> None:
        """The batch is dead all the same."""
        lives = ProcessGenerations(store)
        queued = await lives.hold()
        for _ in range(2):
            await lives.begin_trial()
            await lives.start()
        await lives.begin_trial()
        assert await lives.road.crash(owner="last") == (queued.batch_id,)
        assert (await store.overview()).replies == {}

    async def test_a_trial_that_comes_to_its_limit_takes_back_what_was_charged(self, store: ContractStore) -> None:
        """The batch runs beside others again, alone among suspects; its next trial may take longer."""
        lives = ProcessGenerations(store)
        queued = await lives.hold()
        await lives.begin_trial()
        await lives.start()
        claimed = await lives.begin_trial()
        assert await store.apply(Release(queued.batch_id, claimed.batch.fence, 0, survived=True))
        batch = await lives.batch(queued)
        assert (batch.attempts, batch.crashes, batch.trial_after_ms, batch.survived) == (0, 1, 0, 1)
        other = await lives.queue("hello", room="b")
        assert [(one.batch.id, one.alone) for one in await lives.claim()] == [
            (queued.batch_id, False),
            (other.batch_id, False),
        ]

    async def test_a_stop_is_no_death(self, store: ContractStore) -> None:
        """What a stopped process held is released, and how it lived says nothing of how others die."""
        lives = ProcessGenerations(store)
        queued = await lives.hold()
        await lives.begin_trial()
        assert await store.apply(Relinquish(lives.owner, 5)) == 1
        await lives.start()
        batch = await lives.batch(queued)
        assert (batch.attempts, batch.crashes) == (0, 2)

    async def test_a_process_learns_that_something_waits_for_a_trial(self, store: ContractStore) -> None:
        """So that it loads first what might fail."""
        lives = ProcessGenerations(store)
        await lives.start()
        assert not await lives.beat(1_000)
        await lives.hold()
        assert await lives.beat(1_000)


class SplitContract:
    """Nothing dies together with what is innocent."""

    async def test_a_charged_batch_of_several_messages_is_halved(self, store: ContractStore) -> None:
        """In the order of the lane; each half is tried by itself, and only the poison dies."""
        lives = ProcessGenerations(store)
        queued = await lives.hold("one", "two", "poison", "four", "five")
        answered: list[str] = []
        dead: tuple[int, ...] = ()
        for _ in range(12):
            ready = await lives.claim(HOUR_MS)
            if not ready:
                break
            [claimed] = ready
            texts = [message.text for message in claimed.messages]
            if "poison" in texts:
                dead = (*dead, *await lives.start())
            else:
                answered += texts
                await lives.road.answer(claimed)
        assert answered == ["one", "two", "four", "five"]
        assert len(dead) == 1
        first = await lives.road.story(queued.first.id)
        assert first.state == "done"
        overview = await store.overview()
        assert (overview.batches["done"], overview.batches["dead"]) == (2, 1)

    async def test_a_split_tells_why_and_charges_nobody(self, store: ContractStore) -> None:
        """The turn of the whole is over; both halves wait for a trial."""
        lives = ProcessGenerations(store)
        queued = await lives.hold("one", "two", "three")
        turn_id = (await lives.begin_trial()).turn_id
        await lives.start(40)
        turn = await store.turn(turn_id)
        assert turn is not None
        assert (turn.state, turn.ended_at) == ("abandoned", 40)
        assert "split" in turn.reason
        first = await lives.batch(queued)
        assert ((first.first, first.last), first.attempts, first.crashes) == ((1, 2), 0, 3)
        one = await lives.begin_trial()
        assert [message.text for message in one.messages] == ["one", "two"]
        await lives.road.answer(one)
        two = await lives.begin_trial()
        assert [message.text for message in two.messages] == ["three"]
        assert (two.batch.attempts, two.batch.verdict.rule) == (0, first.verdict.rule)

    async def test_what_joined_a_turn_is_separated_from_it(self, store: ContractStore) -> None:
        """Whichever of them stops the program, the other is answered."""
        lives = ProcessGenerations(store)
        await lives.start()
        lane = await busy(lives.road)
        newer = await lane.more()
        assert [one.batch_id for one in await lane.steer(2)] == [newer.batch_id]
        held = lane.claimed
        assert await store.apply(StepStart(held.turn_id, held.batch.fence, step(1), 0))
        assert await store.apply(StepEnd(held.turn_id, held.batch.fence, 1, "x", Usage(), 0))
        assert await store.apply(StepStart(held.turn_id, held.batch.fence, step(2), 0))
        assert await store.apply(StepEnd(held.turn_id, held.batch.fence, 2, "x", Usage(), 0))
        await lives.start()
        await lives.claim()
        await lives.start()
        assert [one.batch_id for one in (await lives.begin_trial()).steered] == [newer.batch_id]
        await lives.start()
        alone = await lives.begin_trial()
        assert (alone.batch.id, alone.steered) == (lane.queued.batch_id, ())
        await lives.road.answer(alone)
        assert (await lives.begin_trial()).batch.id == newer.batch_id

    async def test_what_cannot_be_split_is_parked(self, store: ContractStore) -> None:
        """Its turn made a call that must not be made again; a person is notified, and decides."""
        lives = ProcessGenerations(store)
        queued = await lives.hold("one", "two")
        for n in range(3):
            claimed = await lives.begin_trial()
            if not n:
                call = replace(step(1), repeatable=False)
                assert await store.apply(StepStart(claimed.turn_id, claimed.batch.fence, call, 0))
                assert await store.apply(StepEnd(claimed.turn_id, claimed.batch.fence, 1, "done", Usage(), 0))
            assert await lives.start() == ()
        story = await lives.road.story(queued.first.id)
        assert story.state == "review"
        assert [reply.draft.text.endswith(" parked") for reply in story.replies] == [True]

    async def test_a_death_tells_those_who_joined_as_well(self, store: ContractStore) -> None:
        """A turn is shown something, makes a call that must not be repeated, and stops the program again and again."""
        lives = ProcessGenerations(store)
        await lives.start()
        lane = await busy(lives.road)
        newer = await lane.more(url="https://b.test/")
        await lane.joined_in_doubt(newer)
        await lives.start()
        await lives.claim()
        for _ in range(3):
            await lives.start()
            await lives.begin_trial()
        assert await lives.start() == ()
        stories = [await lives.road.story(one.first.id) for one in (lane.queued, newer)]
        assert [story.state for story in stories] == ["review", "review"]
        told = [reply for story in stories for reply in story.replies]
        assert [(reply.draft.url, reply.draft.notice) for reply in told] == [(None, True), ("https://b.test/", True)]


class SecondChanceContract:
    """What crashes alone buried comes back once, when the process is stable."""

    async def test_it_is_queued_again_once_and_runs_in_a_trial(self, store: ContractStore) -> None:
        """If it dies again it stays dead, and the person is notified."""
        lives = ProcessGenerations(store)
        queued = await lives.hold()
        await lives.exhaust_trials(queued)
        assert await store.apply(RequeueCrashed(5, "it ran for ten minutes")) == 1
        assert await store.apply(RequeueCrashed(5, "it ran for ten minutes")) == 0
        batch = await lives.batch(queued)
        assert (batch.state, batch.attempts, batch.verdict.reason) == ("queued", 0, "it ran for ten minutes")
        assert await lives.claim(_TERMS.after_ms - 1, at=9) == ()
        await lives.exhaust_trials(queued)
        assert await store.apply(RequeueCrashed(6, "again")) == 0
        story = await lives.road.story(queued.first.id)
        assert [reply.draft.text.rpartition(" ")[2] for reply in story.replies] == ["5", "again"]

    async def test_its_answer_ends_it(self, store: ContractStore) -> None:
        """It was not its fault after all."""
        lives = ProcessGenerations(store)
        queued = await lives.hold()
        await lives.exhaust_trials(queued)
        await store.apply(RequeueCrashed(5, "stable"))
        await lives.road.answer(await lives.begin_trial())
        assert (await lives.road.story(queued.first.id)).state == "done"

    async def test_what_failed_by_itself_stays_dead(self, store: ContractStore) -> None:
        """One own error is enough, and so is a person's word to leave it."""
        lives = ProcessGenerations(store)
        queued = await lives.hold()
        await lives.begin_trial()
        await lives.start()
        claimed = await lives.begin_trial()
        assert await store.apply(Fail(queued.batch_id, claimed.batch.fence, Failure.BURY, "no", 0)) == "dead"
        assert await store.apply(RequeueCrashed(5, "stable")) == 0

    async def test_a_suspect_that_found_no_trial_is_a_suspect_no_more(self, store: ContractStore) -> None:
        """What died in a trial still is."""
        lives = ProcessGenerations(store)
        tried = await lives.hold()
        await lives.begin_trial()
        await lives.start()
        untried = await lives.queue("slow", room="b")
        for _ in range(2):
            await lives.claim()
            await lives.start()
        assert [(await lives.batch(one)).crashes for one in (tried, untried)] == [3, 2]
        assert await store.apply(RequeueCrashed(5, "stable")) == 0
        assert [(await lives.batch(one)).crashes for one in (tried, untried)] == [3, 0]
        assert [(one.batch.id, one.alone) for one in await lives.claim()] == [(untried.batch_id, False)]

    async def test_a_persons_word_begins_anew(self, store: ContractStore) -> None:
        """Nothing speaks against it then."""
        lives = ProcessGenerations(store)
        queued = await lives.hold()
        await lives.exhaust_trials(queued)
        assert await store.apply(Requeue(queued.batch_id, 5, "by hand"))
        [claimed] = await lives.claim(at=9)
        assert (claimed.alone, claimed.batch.crashes, claimed.batch.attempts) == (False, 0, 0)
