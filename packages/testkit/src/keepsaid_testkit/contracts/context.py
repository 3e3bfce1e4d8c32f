"""The contract of a lane's context: the summary of its past, and the records that follow."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.compaction import CutContext, CutReason, SummariesCopied, Summarise, SummaryFailed
from keepsaid.domain.context import DroppedSpan, LaneTail, Made, Summary, TranscriptSpan
from keepsaid.domain.message import Lane, Trust
from keepsaid.testing.builders import consulted, lane_of, outcome, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver


def summarised(seen: int, last: int, text: str = "what was said", at: int = 70) -> Summarise:
    """A model's words for what a lane said up to a position."""
    return Summarise(lane_of(), seen, last, text, Made.MODEL, "test/model", at)


def cut(seen: int, last: int, why: CutReason = CutReason.GUARD) -> CutContext:
    """A lane without what it said up to a position."""
    return CutContext(lane_of(), seen, last, why, 80)


async def talked(store: ContractStore, *texts: str) -> StoreDriver:
    """A lane in which these were said, and each was answered."""
    road = StoreDriver(store)
    for text in texts:
        await road.settle(said(text), f"re {text}")
    return road


async def consulting(store: ContractStore) -> StoreDriver:
    """A lane with a question, a tool's call, its result at position 3, and the answer."""
    road = StoreDriver(store)
    await road.queue(said())
    claimed = await road.claim_one()
    end = replace(outcome(), records=consulted())
    assert await store.apply(TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence, end, None, 0))
    return road


class TailContract:
    """What a turn is shown of its lane."""

    async def test_all_that_was_said_before_anything_was_summarised(self, store: ContractStore) -> None:
        """Records with their places in the transcript, and no version yet."""
        road = StoreDriver(store)
        for text in ("one", "two"):
            await road.settle(said(text), f"re {text}")
        tail = await store.context(lane_of(), 10)
        assert [record.text for record in tail.recent.records] == ["one", "re one", "two", "re two"]
        assert (tail.positions, tail.head, tail.covered) == ((1, 2, 3, 4), 4, 0)
        assert (tail.summary, tail.version, tail.left_out) == (None, 0, 0)

    async def test_the_newest_where_not_all_are_wanted(self, store: ContractStore) -> None:
        """And the places say how many are older."""
        road = StoreDriver(store)
        for text in ("one", "two"):
            await road.settle(said(text), f"re {text}")
        tail = await store.context(lane_of(), 3)
        assert tail.positions == (2, 3, 4)
        assert len(tail.recent.refs) == 3
        assert (await store.context(lane_of(), 0)).positions == ()

    async def test_a_lane_nobody_spoke_in_has_none(self, store: ContractStore) -> None:
        """Known or not."""
        await StoreDriver(store).queue(said())
        assert await store.context(lane_of(), 10) == LaneTail()
        assert await store.context(Lane("no", "such", "lane", "here"), 10) == LaneTail()

    async def test_a_span_is_read_from_its_old_end(self, store: ContractStore) -> None:
        """As many records as wanted, after a position."""
        await talked(store, "one", "two")
        assert await store.span(lane_of(), 1, 2) == TranscriptSpan(
            (await store.context(lane_of(), 9)).recent.records[1:3], positions=(2, 3)
        )
        assert (await store.span(lane_of(), 3, 9)).positions == (4,)
        assert await store.span(lane_of(), 4, 9) == TranscriptSpan()
        assert await store.span(Lane("no", "such", "lane", "here"), 0, 9) == TranscriptSpan()


class SummaryContract:
    """A summary takes the place of a span, or nothing changes."""

    async def test_it_stands_for_what_it_took_in(self, store: ContractStore) -> None:
        """The tail goes on behind it."""
        await talked(store, "one", "two", "three")
        assert await store.apply(summarised(0, 2, "one was said"))
        tail = await store.context(lane_of(), 10)
        assert tail.summary == Summary(1, 1, 2, "one was said", Made.MODEL, "test/model", 70)
        assert (tail.positions, tail.version, tail.covered, tail.head) == ((3, 4, 5, 6), 1, 2, 6)

    async def test_versions_follow_one_another_without_a_gap(self, store: ContractStore) -> None:
        """Each takes in what came after the one before."""
        road = await talked(store, "one", "two")
        assert await store.apply(summarised(0, 2))
        await road.settle(said("three"))
        assert await store.apply(summarised(1, 5, "more was said", 71))
        tail = await store.context(lane_of(), 10)
        assert tail.summary == Summary(2, 3, 5, "more was said", Made.MODEL, "test/model", 71)
        assert tail.positions == (6,)

    async def test_one_that_comes_late_changes_nothing(self, store: ContractStore) -> None:
        """The context is no longer what it saw."""
        await talked(store, "one", "two")
        assert await store.apply(summarised(0, 1))
        before = await store.context(lane_of(), 10)
        for seen in (0, 2):
            assert await store.apply(summarised(seen, 3)) is False
            assert await store.apply(cut(seen, 3)) is False
            assert await store.apply(SummaryFailed(lane_of(), seen, "late", 9, 8)) is False
        assert await store.context(lane_of(), 10) == before

    async def test_one_for_nothing_new_or_for_what_was_never_said_is_refused(self, store: ContractStore) -> None:
        """Spans hold records, and only what is there."""
        await talked(store, "one", "two")
        assert await store.apply(summarised(0, 5)) is False
        assert await store.apply(summarised(0, 0)) is False
        assert await store.apply(summarised(0, 4))
        assert await store.apply(summarised(1, 4)) is False
        nowhere = replace(summarised(0, 1), lane=Lane("no", "such", "lane", "here"))
        assert await store.apply(nowhere) is False

    async def test_a_result_is_never_left_without_its_call(self, store: ContractStore) -> None:
        """Not by a summary, and not by a cut."""
        await consulting(store)
        for commit in (summarised(0, 2), cut(0, 2)):
            assert await store.apply(commit) is False
        assert (await store.context(lane_of(), 10)).positions == (1, 2, 3, 4)
        assert await store.apply(summarised(0, 3))
        assert (await store.context(lane_of(), 10)).positions == (4,)

    async def test_an_attempt_that_failed_is_on_record(self, store: ContractStore) -> None:
        """With when the next may be made; a summary that came to be clears it."""
        await talked(store, "one", "two")
        before = await store.context(lane_of(), 10)
        for tries, next_at in enumerate((500, 900), 1):
            assert await store.apply(SummaryFailed(lane_of(), 0, "the model is away", next_at, 60))
            assert await store.context(lane_of(), 10) == replace(before, attempts=tries, next_at=next_at)
        assert await store.apply(summarised(0, 2))
        tail = await store.context(lane_of(), 10)
        assert (tail.attempts, tail.next_at) == (0, 0)


class CopyContract:
    """What memory is to have a copy of."""

    async def test_the_newest_summary_is_due_until_it_is_copied(self, store: ContractStore) -> None:
        """A copy of an older one is not enough."""
        road = await talked(store, "one", "two")
        assert await store.summaries_due(9) == []
        assert await store.apply(summarised(0, 1))
        assert [(one.lane, one.summary.version) for one in await store.summaries_due(9)] == [(lane_of(), 1)]
        assert await store.apply(summarised(1, 3, "more was said"))
        assert await store.apply(SummariesCopied(((lane_of(), 1),))) == 0
        [due] = await store.summaries_due(9)
        assert (due.summary.text, due.external) == ("more was said", False)
        assert await store.apply(SummariesCopied(((lane_of(), 2),))) == 1
        assert await store.summaries_due(9) == []
        await road.settle(said("three"))
        assert await store.apply(cut(2, 4))
        assert await store.summaries_due(9) == [], "a cut is nothing to copy"

    async def test_what_a_tool_brought_from_outside_is_told(self, store: ContractStore) -> None:
        """As what an outsider wrote; what our own tools give is our own."""
        road = StoreDriver(store)
        for version, (tool, external) in enumerate((("memory_search", False), ("web", True))):
            await road.queue(said())
            one, (asked, found, answered) = await road.claim_one(), consulted()
            end = replace(outcome(), records=(asked, replace(found, speaker=tool), answered))
            assert await store.apply(TurnCommit(one.turn_id, one.batch.id, one.batch.fence, end, None, 0))
            assert await store.apply(summarised(version, 4 * version + 4))
            assert [one.external for one in await store.summaries_due(9)] == [external]
            assert [one.external for one in await store.summaries_of(lane_of(), 0)] == [external]

    async def test_what_was_said_outside_is_told(self, store: ContractStore) -> None:
        """A lane that held it once holds it in its summary."""
        road = StoreDriver(store)
        inbound = said()
        outside = replace(inbound, origin=replace(inbound.origin, trust=Trust.EXTERNAL))
        await road.settle(outside)
        assert await store.apply(summarised(0, 1))
        [due] = await store.summaries_due(9)
        assert due.external

    async def test_a_conversation_is_made_of_summaries_that_are_old_enough(self, store: ContractStore) -> None:
        """Of each lane the newest that leaves the given number of records out, and the sum of what they took in."""
        await talked(store, "one", "two", "three")
        assert await store.summaries_of(lane_of(), 0) == []
        assert await store.apply(summarised(0, 2))
        assert await store.apply(summarised(1, 4, "more was said"))
        sizes = [(keep, await store.summaries_of(lane_of(), keep)) for keep in (2, 3, 5)]
        found = [(keep, [(s.summary.version, s.messages, s.chars) for s in some]) for keep, some in sizes]
        assert found == [(2, [(2, 4, 18)]), (3, [(1, 2, 9)]), (5, [])]
        assert await store.summaries_of(lane_of("elsewhere"), 0) == []

    async def test_a_summary_says_whether_its_lane_began_anew_since(self, store: ContractStore) -> None:
        """A guard's cut is not a beginning, and the next summary covers what was said after it."""
        road = await talked(store, "one", "two", "three")
        assert await store.apply(summarised(0, 2))
        left = []
        for commit in (cut(1, 4), cut(2, 6, CutReason.RESET), None):
            if commit is not None:
                assert await store.apply(commit)
            else:
                await road.settle(said("four"))
                assert await store.apply(summarised(3, 8))
            left += [(one.summary.version, one.left) for one in await store.summaries_of(lane_of(), 0)]
        assert left == [(1, False), (1, True), (4, False)]


class CutContract:
    """A cut takes a span out of the context, and keeps it in the transcript."""

    async def test_the_guard_leaves_a_count_and_the_summary(self, store: ContractStore) -> None:
        """The count grows with the next cut; results of tools are not messages."""
        road = await consulting(store)
        await road.settle(said("one"))
        await road.settle(said("two"))
        assert await store.apply(summarised(0, 1))
        summary = (await store.context(lane_of(), 10)).summary
        for seen, last, left_out in ((1, 3, 1), (2, 6, 4)):
            assert await store.apply(cut(seen, last))
            tail = await store.context(lane_of(), 10)
            assert (tail.left_out, tail.floor, tail.summarised_until) == (left_out, last, 1)
            assert (tail.summary, tail.version) == (summary, seen + 1)
            assert tail.positions == tuple(range(last + 1, 9))

    async def test_a_summary_after_a_cut_takes_in_what_follows_it(self, store: ContractStore) -> None:
        """What was cut stays left out."""
        await talked(store, "one", "two", "three")
        assert await store.apply(cut(0, 2))
        assert await store.apply(summarised(1, 4))
        tail = await store.context(lane_of(), 10)
        assert tail.summary == Summary(2, 3, 4, "what was said", Made.MODEL, "test/model", 70)
        assert (tail.positions, tail.left_out, tail.covered) == ((5, 6), 2, 4)

    async def test_a_reset_begins_anew(self, store: ContractStore) -> None:
        """Without summary and count, also where nothing was said since."""
        road = await talked(store, "one", "two")
        assert await store.apply(cut(0, 2))
        assert await store.apply(summarised(1, 3))
        assert await store.apply(cut(2, 4, CutReason.RESET))
        fresh = await store.context(lane_of(), 10)
        assert fresh == LaneTail(summarised_until=3, floor=4, version=3, head=4)
        assert await store.apply(cut(3, 4, CutReason.RESET))
        await road.settle(said("three"))
        assert (await store.context(lane_of(), 10)).positions == (5, 6)
        assert await store.apply(cut(4, 4)) is False
        assert (await store.span(lane_of(), 0, 9)).positions == (1, 2, 3, 4, 5, 6)

    async def test_what_left_is_listed_without_a_gap(self, store: ContractStore) -> None:
        """Each span with the version that took it, and how."""
        await talked(store, "one", "two")
        assert await store.past(lane_of()) == ()
        for commit in (cut(0, 1), summarised(1, 3), cut(2, 4, CutReason.RESET), cut(3, 4, CutReason.RESET)):
            assert await store.apply(commit)
        assert await store.past(lane_of()) == (
            DroppedSpan(1, 1, 1, "guard", 80),
            DroppedSpan(2, 2, 3, "model", 70),
            DroppedSpan(3, 4, 4, "reset", 80),
            DroppedSpan(4, 5, 4, "reset", 80),
        )
        assert await store.past(Lane("no", "such", "lane", "here")) == ()
