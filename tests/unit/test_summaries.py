"""Summaries in memory: copies of the operational store's, made once each, and never shown twice."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories
from keepsaid.domain.compaction import Summarise
from keepsaid.domain.context import LaneSummary, Made, Sections, Summary, read, written
from keepsaid.domain.memory import Kind, Listener, Memory, summary_key
from keepsaid.domain.message import Trust
from keepsaid.memory.gates import PromptShown, Visible
from keepsaid.memory.summaries import SummaryCopier, WholeTerms, session_summary, thread_summary
from keepsaid.testing.builders import lane_of, said
from keepsaid.testing.clock import CountingIds, VirtualClock
from keepsaid_testkit.contracts.store_driver import StoreDriver

AUDIT = Listener(None, everything=True)


class Copying:
    """A lane that is summarised, and the copies of it."""

    def __init__(self, memories: SqliteMemories) -> None:
        self.store = InMemoryOperations()
        self.road = StoreDriver(self.store)
        self.memories = memories
        self.copier = SummaryCopier(self.store, memories, VirtualClock(), WholeTerms(messages=4, keep=2))

    async def summarise(self, seen: int, last: int, *facts: str) -> None:
        text = written(Sections(facts=facts), Made.MODEL, 1_000)
        assert await self.store.apply(Summarise(lane_of(), seen, last, text, Made.MODEL, "m/1", 40 + seen))

    async def found(self, kind: Kind) -> list[Memory]:
        return list(await self.memories.find(AUDIT, (kind,), 9))


@pytest.fixture
async def copying(tmp_path: Path) -> AsyncIterator[Copying]:
    memories = await open_memories(tmp_path / "memory.db", CountingIds())
    yield Copying(memories)
    await memories.close()


async def test_the_copy_says_what_it_is_of_and_redo_is_a_no_op(copying: Copying) -> None:
    for n in range(4):
        await copying.road.settle(said(f"say {n}"))
    await copying.summarise(0, 2, "one fact", "another")
    assert await copying.copier.catch_up() == 1
    [copy] = await copying.found(Kind.THREAD_SUMMARY)
    assert copy.new.key == summary_key(lane_of())
    assert json.loads(copy.new.metadata) == {
        "threadKey": lane_of().key,
        "summaryVersion": 1,
        "updatedAtMs": 40,
        "messageRange": {"from": 1, "to": 2},
        "made": "model",
        "model": "m/1",
    }
    assert (copy.new.derived, copy.new.trust, copy.new.lane) == (True, Trust.KNOWN, lane_of())
    assert await copying.copier.catch_up() == 0
    copying.store.database.rows("INSERT INTO summary_due (lane_id, version) SELECT id, 1 FROM lane")
    assert await copying.copier.catch_up() == 1
    assert await copying.found(Kind.THREAD_SUMMARY) == [copy], "a crash before the copy was noted changes nothing"


async def test_a_newer_summary_takes_the_place_of_the_copy(copying: Copying) -> None:
    for n in range(4):
        await copying.road.settle(said(f"say {n}"))
    for seen, last in ((0, 2), (1, 4)):
        await copying.summarise(seen, last, f"up to {last}")
        await copying.copier.catch_up()
    [copy] = await copying.found(Kind.THREAD_SUMMARY)
    assert read(copy.text).facts == ("up to 4",)
    assert json.loads(copy.new.metadata)["summaryVersion"] == 2


async def test_a_conversation_has_one_summary_without_its_newest_words(copying: Copying) -> None:
    for n in range(4):
        await copying.road.settle(said(f"say {n}"))
    await copying.summarise(0, 4, "first")
    await copying.copier.catch_up()
    [whole] = await copying.found(Kind.SESSION_SUMMARY)
    await copying.summarise(1, 7, "second")
    await copying.copier.catch_up()
    assert await copying.found(Kind.SESSION_SUMMARY) == [whole], "it reaches into the newest two records"
    for n in range(4, 6):
        await copying.road.settle(said(f"say {n}"))
    await copying.summarise(2, 10, "third")
    await copying.copier.catch_up()
    [newer] = await copying.found(Kind.SESSION_SUMMARY)
    assert (newer.id, read(newer.text).facts, read(whole.text).facts) == (whole.id, ("third",), ("first",))
    assert json.loads(newer.new.metadata)["messageRange"] == {lane_of().key: {"from": 1, "to": 10}}


def of_lane(key: str, messages: int, fact: str, *, external: bool = False, at: int = 1) -> LaneSummary:
    text = written(Sections(facts=(fact,)), Made.MODEL, 500)
    return LaneSummary(lane_of()._replace(key=key), Summary(1, 1, 9, text, Made.MODEL, "m", at), messages, 0, external)


def test_lanes_are_merged_in_the_order_of_time_and_external_ones_left_out() -> None:
    lanes = [of_lane("b", 20, "later", at=2), of_lane("a", 20, "earlier"), of_lane("c", 90, "outside", external=True)]
    whole = session_summary(lanes, WholeTerms())
    assert whole is not None
    assert (whole.version, read(whole.text).facts) == (1, ("earlier", "later"))
    assert session_summary(lanes[:1], WholeTerms()) is None
    assert session_summary([replace(lanes[0], messages=0, chars=12_000)], WholeTerms()) is not None


def test_a_lanes_own_summary_is_not_injected_beside_the_one_in_its_prompt() -> None:
    copy = Memory(7, thread_summary(of_lane("a", 9, "one fact")), "active", 0)
    assert copy.new.lane is not None
    shown = Visible(PromptShown(own=frozenset({summary_key(copy.new.lane)})), (), "facts?")
    assert shown.overlap(copy, "one fact")
    assert not Visible(PromptShown(), (), "facts?").overlap(copy, "one fact")
