"""The context of a lane under any order of turns, summaries, cuts and resets, true or late: nothing is lost or twice.

Both stores do the same, and every record of the transcript is in the tail, in a span that was summarised, or in one
that was cut, exactly once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.effort import examples

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.sqlite.stores import SqliteOperations, open_operations
from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.compaction import CompactionTerms, CutContext, CutReason, Summarise, SummaryFailed, due
from keepsaid.domain.context import LaneTail, Made
from keepsaid.domain.prompt import Role
from keepsaid.domain.turn import NO_MODEL
from keepsaid.testing.builders import consulted, lane_of, outcome, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

T = TypeVar("T")
POSITIONS = st.integers(0, 30)
SEEN = st.integers(-1, 1)


class Contexts(RuleBasedStateMachine):
    """One lane on two stores."""

    @initialize()
    def begin(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._folder = TemporaryDirectory()
        file: SqliteOperations = self._run(open_operations(Path(self._folder.name) / "buffer.db"))
        self._file = file
        self._stores: tuple[ContractStore, ...] = (InMemoryOperations(), file)
        self._roads = [StoreDriver(store) for store in self._stores]
        self._run(self._heard())

    async def _heard(self) -> None:
        for road in self._roads:
            await road.receive(said("first"))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    async def _tails(self) -> list[LaneTail]:
        return [await store.context(lane_of(), 1_000) for store in self._stores]

    @property
    def tail(self) -> LaneTail:
        """The lane as it stands."""
        return self._run(self._tails())[0]

    @rule(tools=st.booleans(), silent=st.booleans())
    def turn(self, tools: bool, silent: bool) -> None:
        """One more turn, with a tool's call or without a model."""

        async def walk(road: StoreDriver) -> None:
            await road.queue(said())
            claimed = await road.claim_one()
            end = replace(outcome(), records=consulted()) if tools else outcome()
            end = replace(end, model=NO_MODEL) if silent and not tools else end
            commit = TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence, end, None, 5)
            assert await road.store.apply(commit)

        for road in self._roads:
            self._run(walk(road))

    @rule(off=SEEN, last=POSITIONS)
    def summarise(self, off: int, last: int) -> None:
        """A summary of what was seen, or of what is no longer so."""
        tail = self.tail
        self._move(Summarise(lane_of(), tail.version + off, last, "so it was", Made.MODEL, "m", 6), tail, off, last)

    @rule(off=SEEN, last=POSITIONS, why=st.sampled_from(CutReason))
    def cut(self, off: int, last: int, why: CutReason) -> None:
        """A cut of what was seen, or of what is no longer so."""
        tail = self.tail
        self._move(CutContext(lane_of(), tail.version + off, last, why, 7), tail, off, last)

    @rule()
    def compact(self) -> None:
        """What the program itself would do."""
        tail = self.tail
        wanted = due(tail, CompactionTerms(messages=3, keep=2), 8)
        if wanted is not None:
            commit = Summarise(lane_of(), tail.version, wanted.last, "so it was", Made.EXTRACTIVE, "", 8)
            assert self._both(commit), "what is judged to be due is not refused"

    @rule(off=SEEN)
    def fail(self, off: int) -> None:
        """A summary that came to nothing."""
        assert self._both(SummaryFailed(lane_of(), self.tail.version + off, "away", 99, 9)) == (off == 0)

    def _move(self, commit: Summarise | CutContext, before: LaneTail, off: int, last: int) -> None:
        done = self._both(commit)
        after = self.tail
        if not done:
            assert after == before
            return
        assert (off, after.version, after.covered) == (0, before.version + 1, last)

    def _both(self, commit: Summarise | CutContext | SummaryFailed) -> bool:
        done = {self._run(store.apply(commit)) for store in self._stores}
        assert len(done) == 1
        return done.pop()

    @invariant()
    def the_stores_agree(self) -> None:
        """In memory as on disk."""
        one, other = self._run(self._tails())
        assert one == other
        assert self._run(self._stores[0].past(lane_of())) == self._run(self._stores[1].past(lane_of()))

    @invariant()
    def every_record_is_somewhere_once(self) -> None:
        """Spans follow one another from the first record to the tail, which goes on to the last."""
        tail, reached = self.tail, 0
        for number, stretch in enumerate(self._run(self._stores[0].past(lane_of())), 1):
            assert (stretch.version, stretch.first) == (number, reached + 1)
            assert stretch.last >= reached
            reached = stretch.last
        assert reached == tail.covered
        shown = self._run(self._stores[0].span(lane_of(), tail.covered, 1_000))
        assert shown.positions == tail.positions
        assert all(tail.covered < position <= tail.head for position in tail.positions)

    @invariant()
    def no_result_is_without_its_call(self) -> None:
        """In what a prompt shows."""
        records = self.tail.recent.records
        assert not records or records[0].role is not Role.TOOL
        calls = {call.id for record in records for call in record.calls}
        assert all(record.call_id in calls for record in records if record.role is Role.TOOL)

    @invariant()
    def a_summary_in_force_ends_before_the_tail(self) -> None:
        """And a reset leaves none."""
        tail = self.tail
        if tail.summary is not None:
            assert tail.summary.last == tail.summarised_until <= tail.covered

    def teardown(self) -> None:
        """Close what was opened."""
        self._run(self._file.close())
        self._loop.close()
        self._folder.cleanup()


TestContexts = Contexts.TestCase
TestContexts.settings = settings(max_examples=examples(20), stateful_step_count=25, deadline=None)
