"""Compaction: when a lane is due, what a summary takes in, and what failing costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.responsive.watched_loop import slowness
from tests.unit.loop_cast import holds

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.sqlite.stores import open_operations
from keepsaid.adapters.system.machine import TextThreads
from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.compaction import HOUR_MS, CompactionTerms, CutContext, CutReason, boundary, due, piece
from keepsaid.domain.context import EXTRACTED, LaneTail, Made, Sections, Summary, TranscriptSpan, read, written
from keepsaid.domain.prompt import Record, Role
from keepsaid.domain.turn import Recent
from keepsaid.errors import ModelMalformed, ModelUnavailable
from keepsaid.memory.summaries import Compaction, ExtractiveSummariser, Summaries
from keepsaid.ports.model import Summarised, ToSummarise
from keepsaid.testing.builders import consulted, lane_of, outcome, said
from keepsaid.testing.clock import VirtualClock
from keepsaid_testkit.contracts.store_driver import StoreDriver

TERMS = CompactionTerms(messages=6, tokens=2_500, keep=2)


class Scripted:
    """A summariser that counts, or does what it is told."""

    def __init__(self) -> None:
        self.asked: list[ToSummarise] = []
        self.failing: Exception | None = None
        self.meanwhile: Callable[[], object] = lambda: None

    async def summarise(self, given: ToSummarise) -> Summarised:
        self.asked.append(given)
        outcome = self.meanwhile()
        if hasattr(outcome, "__await__"):
            await outcome
        if self.failing is not None:
            raise self.failing
        heard = tuple(f"heard {record.text}" for record in given.records if record.role is Role.USER)
        before = tuple(line for text in given.earlier for line in read(text).facts)
        return Summarised(Sections(facts=(*before, *heard)), Made.MODEL, "scripted/one")


class Lane:
    """A lane over the store in memory, and what compacts it."""

    def __init__(self, terms: CompactionTerms = TERMS) -> None:
        self.store = InMemoryOperations()
        self.road = StoreDriver(self.store)
        self.clock = VirtualClock()
        self.summariser = Scripted()
        redacted = lambda text: text.replace("hunter2", "[secret]")  # noqa: E731
        self.compaction = Compaction(self.store, self.summariser, self.clock, redacted, terms, Summaries())

    async def talk(self, first: int, last: int) -> None:
        for n in range(first, last + 1):
            await self.road.settle(said(f"say {n}"), f"re {n}", at=n)

    async def compact(self, share: float = 0.0) -> int:
        return await self.compaction.compact(lane_of(), share)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.store.database.rows(sql)

    async def tail(self) -> LaneTail:
        return await self.store.context(lane_of(), 1_000)

    @property
    def topics(self) -> list[str]:
        return [topic for (topic,) in self.rows("SELECT topic FROM journal WHERE topic LIKE 'lane.%' ORDER BY id")]


@pytest.fixture
def lane() -> Lane:
    return Lane()


async def test_a_lane_is_due_with_the_message_after_the_limit(lane: Lane) -> None:
    await lane.talk(1, 3)
    assert await lane.compact() == 0
    await lane.talk(4, 4)
    assert await lane.compact() == 1
    tail = await lane.tail()
    assert [record.text for record in tail.recent.records] == ["say 4", "re 4"]
    assert tail.summary is not None
    assert read(tail.summary.text).facts == ("heard say 1", "heard say 2", "heard say 3")
    assert lane.topics == ["lane.compacted"]


async def test_the_next_one_takes_over_the_last_and_counts_from_there(lane: Lane) -> None:
    await lane.talk(1, 4)
    await lane.compact()
    await lane.talk(5, 6)
    assert await lane.compact() == 0
    await lane.talk(7, 7)
    assert await lane.compact() == 1
    tail = await lane.tail()
    assert tail.summary is not None
    assert (tail.summary.version, tail.summary.first, tail.summary.last) == (2, 7, 12)
    assert read(tail.summary.text).facts == tuple(f"heard say {n}" for n in range(1, 7))


async def test_many_tokens_or_a_day_make_it_due_too() -> None:
    lane = Lane(CompactionTerms(messages=100, tokens=300, keep=2))
    await lane.talk(1, 2)
    assert await lane.compact() == 0
    await lane.road.settle(said("word " * 400), "long")
    await lane.talk(3, 3)
    assert await lane.compact() == 1
    await lane.talk(4, 5)
    assert await lane.compact() == 0
    await lane.clock.advance(24 * HOUR_MS)
    assert await lane.compact() == 1
    await lane.clock.advance(24 * HOUR_MS)
    assert await lane.compact() == 0, "nothing is older than what is kept"


@pytest.mark.parametrize("error", [ModelMalformed("no JSON"), ModelUnavailable("away")])
async def test_what_fails_changes_nothing_is_on_record_and_not_tried_at_once(lane: Lane, error: Exception) -> None:
    await lane.talk(1, 4)
    before = await lane.tail()
    lane.summariser.failing = error
    for tries, waits_s in enumerate((60, 120), 1):
        assert await lane.compact() == 0
        tail = await lane.tail()
        assert tail == replace(before, attempts=tries, next_at=lane.clock.now_ms() + waits_s * 1000)
        await lane.clock.advance(waits_s * 1000 - 1)
        assert await lane.compact() == 0
        assert len(lane.summariser.asked) == tries
        await lane.clock.advance(1)
    assert lane.topics == ["lane.summary_failed"] * 2


async def test_after_three_failures_the_program_picks_it_word_for_word(lane: Lane) -> None:
    await lane.road.settle(said("We decided to use Postgres. My name is Ann"), "ok")
    await lane.talk(1, 3)
    lane.summariser.failing = ModelUnavailable("away")
    for _ in range(3):
        assert await lane.compact() == 0
        await lane.clock.advance(HOUR_MS)
    assert await lane.compact() == 1
    summary = (await lane.tail()).summary
    assert summary is not None
    assert (summary.made, summary.model) == (Made.EXTRACTIVE, "")
    assert summary.text.startswith(EXTRACTED)
    assert "Ann: We decided to use Postgres." in summary.text
    assert len(lane.summariser.asked) == 3


async def test_one_that_would_say_nothing_is_not_kept_and_the_messages_stay(lane: Lane) -> None:
    lane.compaction = Compaction(lane.store, ExtractiveSummariser(), lane.clock, str, TERMS, Summaries())
    await lane.talk(1, 4)
    assert await lane.compaction.compact(lane_of(), 1.0, at_once=True) == 0
    tail = await lane.tail()
    assert (tail.summary, len(tail.recent.records), tail.attempts) == (None, 8, 1)
    assert lane.topics == ["lane.summary_failed"]
    await lane.road.settle(said("we decided to sail at 6 o'clock"), "ok")
    await lane.talk(6, 7)
    assert await lane.compaction.compact(lane_of(), 1.0, at_once=True) == 1


@pytest.mark.parametrize("part", ["we decided that I live in Rome. ", "\n", "1.", "我。", "My name is X "])
async def test_long_records_do_not_hold_the_loop(tmp_path: Path, part: str) -> None:
    async with AsyncExitStack() as opened:
        store = await open_operations(tmp_path / "buffer.db")
        opened.push_async_callback(store.close)
        threads, road = opened.enter_context(closing(TextThreads())), StoreDriver(store)
        compaction = Compaction(store, ExtractiveSummariser(threads), VirtualClock(), str, TERMS, Summaries(), threads)
        for n in range(1, 9):
            await road.settle(said(part * (200_000 // len(part))), part * (400_000 // len(part)), at=n)
        with holds() as longest:
            await asyncio.wait_for(compaction.compact(lane_of(), 1.0), 60)
        assert longest.seconds <= 0.020 * slowness(), longest


async def test_where_nothing_can_be_picked_the_model_is_asked_again(lane: Lane) -> None:
    await lane.talk(1, 4)
    lane.summariser.failing = ModelUnavailable("away")
    for _ in range(4):
        assert await lane.compact() == 0
        await lane.clock.advance(HOUR_MS)
    lane.summariser.failing = None
    assert await lane.compact() == 1
    assert ((await lane.tail()).summary or Summary(0, 0, 0, "", Made.EXTRACTIVE)).made is Made.MODEL


async def test_one_that_comes_after_the_head_moved_is_thrown_away(lane: Lane) -> None:
    await lane.talk(1, 4)
    reset = CutContext(lane_of(), 0, 8, CutReason.RESET, 0)
    lane.summariser.meanwhile = lambda: lane.store.apply(reset)
    assert await lane.compact() == 0
    tail = await lane.tail()
    assert (tail.summary, tail.floor, tail.version) == (None, 8, 1)
    lane.summariser.meanwhile = lambda: lane.store.apply(replace(reset, seen=1))
    assert (await lane.compact(), len(lane.summariser.asked)) == (0, 1), "nothing is left to summarise"


async def test_secrets_do_not_get_into_a_summary(lane: Lane) -> None:
    await lane.road.settle(said("it is hunter2"), "noted")
    await lane.talk(1, 3)
    await lane.compact()
    summary = (await lane.tail()).summary
    assert summary is not None
    assert "hunter2" not in summary.text
    assert "[secret]" in summary.text


async def test_a_long_past_is_taken_in_piece_by_piece_and_whole(lane: Lane) -> None:
    for n in range(12):
        await lane.road.settle(said(f"{n} " + "word " * 1_500), "ok")
    made = await lane.compact()
    assert made > 1
    summaries = lane.rows("SELECT first, last FROM lane_summary ORDER BY version")
    assert [first for first, _ in summaries] == [1, *(last + 1 for _, last in summaries[:-1])]
    assert summaries[-1][1] == 22
    told = [record.text for given in lane.summariser.asked for record in given.records]
    assert told == [record.text for record in (await lane.store.span(lane_of(), 0, 22)).records]


async def test_a_share_gives_way_though_nothing_is_due() -> None:
    lane = Lane(CompactionTerms())
    await lane.talk(1, 10)
    assert await lane.compact() == 0
    assert await lane.compact(0.3) == 1
    assert (await lane.tail()).covered == 6


async def test_a_result_stays_with_its_call(lane: Lane) -> None:
    for _ in range(4):
        await lane.road.queue(said())
        claimed = await lane.road.claim_one()
        end = replace(outcome(), records=consulted())
        batch = claimed.batch
        assert await lane.store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, 0))
    assert await lane.compact(0.99) == 1
    tail = await lane.tail()
    assert tail.recent.records[0].role is Role.USER


def tail_of(*records: Record) -> LaneTail:
    return LaneTail(Recent(records, ("",) * len(records)), tuple(range(1, len(records) + 1)), head=len(records))


USER, ASSISTANT, RESULT = (Record(role, "word") for role in (Role.USER, Role.ASSISTANT, Role.TOOL))


def test_what_stays_begins_with_a_persons_words_if_it_can() -> None:
    assert boundary(tail_of(USER, ASSISTANT, USER, ASSISTANT), 1) == 2
    assert boundary(tail_of(USER, ASSISTANT, RESULT, ASSISTANT), 1) == 3
    assert boundary(tail_of(USER, ASSISTANT, RESULT, RESULT), 1) == 1
    assert boundary(tail_of(USER, RESULT, RESULT), 1) is None
    assert boundary(tail_of(USER, ASSISTANT), 2) is None
    assert boundary(LaneTail(), 1) is None


def test_few_long_messages_that_are_kept_do_not_start_one_each() -> None:
    long = Record(Role.USER, "word " * 400)
    terms = CompactionTerms(messages=100, tokens=1_000, keep=4)
    assert due(tail_of(*[long] * 5), terms, 0) is None
    assert due(tail_of(*[long] * 6), terms, 0) is not None


def test_a_day_counts_from_the_last_summary() -> None:
    tail = tail_of(USER, ASSISTANT, USER, ASSISTANT)
    assert due(tail, TERMS, 99 * HOUR_MS) is None
    old = replace(tail, summary=Summary(1, 1, 2, "what was said", Made.MODEL, "", HOUR_MS))
    assert due(old, TERMS, 25 * HOUR_MS - 1) is None
    assert due(old, TERMS, 25 * HOUR_MS) is not None


def test_a_piece_never_ends_before_a_result_or_where_nobody_knows_what_follows() -> None:
    span = TranscriptSpan((USER, ASSISTANT, RESULT, ASSISTANT, USER), (1, 2, 3, 4, 5))
    assert piece(span, 4, 10_000) == 4
    assert piece(span, 9, 10_000) == 4
    assert [piece(span, 4, tokens) for tokens in (1, 2, 3)] == [1, 1, 3]
    assert piece(TranscriptSpan((ASSISTANT, RESULT), (1, 2)), 9, 1) is None


def test_a_summary_reads_back_and_keeps_to_its_budget() -> None:
    told = Sections(("why?",), ("use Postgres",), tuple(f"fact {n} is known" for n in range(60)), (), ("ship it",))
    assert read(written(told, Made.MODEL, 5_000)) == told
    short = read(written(told, Made.EXTRACTIVE, 300))
    assert (short.goals, short.decisions, short.pending) == (told.goals, told.decisions, told.pending)
    assert short.facts == told.facts[-len(short.facts) :]
    assert 0 < len(short.facts) < 60
