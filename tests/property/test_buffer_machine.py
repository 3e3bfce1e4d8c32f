"""Buffer, dispatch, leases, busy lanes, outbox and pruning against plain lists, on both stores, over crashes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import invariant, run_state_machine_as_test
from tests.effort import examples
from tests.property.buffer_model import Work
from tests.property.buffer_rules import Walk
from tests.property.busy_rules import Pruning

from keepsaid.adapters.sqlite.inline import InMemoryDatabase, InMemoryOperations
from keepsaid.adapters.sqlite.stores import SqliteOperations, open_operations
from keepsaid.domain.states import message_state
from keepsaid.domain.views import MessageFilter, Story
from keepsaid_testkit.contracts.store_driver import ContractStore


class BufferMachine(Pruning):
    """One store, walked at random; after every step it must be what the lists say."""

    @invariant()
    def every_message_is_in_its_place(self) -> None:
        """In the tail of its lane or in exactly one batch, in the state its batch gives it."""
        stories = {story.message.id: story for story in self.run(self.store.find(MessageFilter(limit=1_000)))}
        there = [message for message in self.plan.messages if message.id not in self.plan.gone]
        assert sorted(stories) == sorted(message.id for message in there)
        works = {message.id: work for work in self.plan.batches for message in work.messages}
        for message in there:
            story = stories[message.id]
            assert story.message == message
            if message.id in works:
                self.check_work(story, works[message.id])
            else:
                assert (story.batch, story.state) == (None, "received")

    def check_work(self, story: Story, work: Work) -> None:
        """A message and its batch are as the lists have them."""
        batch = story.batch
        assert batch is not None
        assert (batch.id, batch.lane, batch.state, story.state) == (
            work.id,
            work.lane,
            work.state,
            message_state(work.state),
        )
        assert (batch.first, batch.last) == (work.messages[0].number, work.messages[-1].number)
        assert (batch.priority, batch.fence, batch.attempts) == (work.priority, work.fence, work.attempts)
        assert (batch.crashes, batch.deferrals) == (work.crashes, work.deferrals)
        replies = [(reply.id, reply.state, reply.fence, reply.possible_duplicate) for reply in story.replies]
        assert replies == [(one.id, one.state, one.fence, one.possible_duplicate) for one in self.plan.told(work)]

    @invariant()
    def lanes_are_in_order(self) -> None:
        """Batches without gaps, one in flight, a transcript that follows them."""
        for lane in self.plan.lanes:
            work = self.plan.work_of(lane)
            held = [message.number for one in work for message in one.messages]
            gone = [one.number for one in self.plan.messages if one.lane == lane and one.id in self.plan.gone]
            assert len(held) == len(set(held)), "in exactly one batch"
            assert sorted({*held, *gone}) == list(range(1, len({*held, *gone}) + 1))
            assert sum(one.state == "leased" for one in work) <= 1
            recent = self.run(self.store.context(lane, 1_000)).recent
            assert [record.text for record in recent.records] == self.plan.spoken.get(lane, [])

    @invariant()
    def clocks_agree(self) -> None:
        """What waits is waited for."""
        closing = [at for at in map(self.plan.closes_at, self.plan.lanes) if at is not None]
        next_due = self.run(self.store.next_due())
        assert (next_due is None) == (not closing)
        if next_due is not None:
            assert next_due <= self.now if -1 in closing else next_due == min(closing)
        ready = [work.ready_at if work.later else 0 for work in self.plan.ready()]
        assert self.run(self.store.next_ready()) == min(ready, default=None)
        work = self.run(self.store.episode_work(1_000))
        assert {one.batch_id for one in work} == self.plan.episodes_due

    @invariant()
    def replies_depart_in_order(self) -> None:
        """Each conversation's by their ids."""
        for earlier, later in pairwise(sorted(self.plan.departed, key=lambda letter: letter.room)):
            assert earlier.room != later.room or earlier.id < later.id


class MemoryMachine(BufferMachine):
    """In memory: what is stored outlives the object that stores it."""

    def __init__(self) -> None:
        self.database = InMemoryDatabase()
        super().__init__()

    def open(self) -> ContractStore:
        return InMemoryOperations(self.database)


class FileMachine(BufferMachine):
    """On SQLite: the file outlives the connection."""

    def __init__(self) -> None:
        self.home = TemporaryDirectory()
        super().__init__()

    def open(self) -> SqliteOperations:
        return self.run(open_operations(Path(self.home.name) / "buffer.db"))

    def shut(self) -> None:
        assert isinstance(self.store, SqliteOperations)
        self.run(self.store.close())

    def teardown(self) -> None:
        super().teardown()
        self.home.cleanup()


def often(examples: int, steps: int) -> settings:
    """The same examples in every run."""
    phases = (Phase.explicit, Phase.generate, Phase.shrink)
    return settings(max_examples=examples, stateful_step_count=steps, derandomize=True, deadline=None, phases=phases)


SELDOM = {
    "joined",
    "settled together",
    "parked with it",
    "doubt",
    "begun anew",
    "pruned",
    "split",
    "buried",
    "second chance",
}
"""What a walk must meet to have been one."""


@pytest.mark.parametrize(("machine", "examples"), [(MemoryMachine, examples(60)), (FileMachine, examples(6))])
def test_a_store_is_what_the_lists_say(machine: type[BufferMachine], examples: int) -> None:
    Walk.met.clear()
    run_state_machine_as_test(machine, settings=often(examples, 40))
    assert {what for what in SELDOM if not Walk.met[what]} == set()
