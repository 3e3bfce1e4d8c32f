"""Ahead: recall that is begun before it is asked for answers what it would have answered then, or is asked anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from tests.unit.memory_cast import LANE, OWNER_ORIGIN

from keepsaid.adapters.redaction.redactor import PatternRedactor
from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories
from keepsaid.adapters.system.machine import SystemIds
from keepsaid.app.agent import IntakePrefetcher
from keepsaid.app.stores import PATIENT_MS, recollection
from keepsaid.config import Config
from keepsaid.domain.commits import IntakeResult, Received
from keepsaid.domain.memory import Kind, Listener, NewMemory, Recalled, episode_scope
from keepsaid.domain.message import SYSTEM, Content, Inbound, ProviderMarks, Trust
from keepsaid.memory.injection import listening
from keepsaid.memory.recall.recollection import RecallPrefetch
from keepsaid.memory.recording import Recorder, StagedRequestExecutor
from keepsaid.testing.clock import VirtualClock, settle

HEARD = Listener(LANE)
WORDS = "where did I leave my bicycle"


class Slowly:
    """Recalls when it is let, and notes what was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.broken_off = 0
        self.let = asyncio.Event()

    async def recall(self, listener: Listener, query: str, limit: int, as_of: int | None = None) -> Recalled:
        self.asked.append(query)
        try:
            await self.let.wait()
        except asyncio.CancelledError:
            self.broken_off += 1
            raise
        return Recalled((), (f"answer {len(self.asked)}",))


class Stand:
    """One recall ahead of its question, and a memory that changes when it is told."""

    def __init__(self) -> None:
        self.slowly, self.clock, self.changes = Slowly(), VirtualClock(), 0
        self.ahead = RecallPrefetch(self.slowly, lambda: self.changes, self.clock)

    async def begun(self, query: str = WORDS) -> None:
        self.ahead.begin(HEARD, query, 20)
        await settle()

    async def answer(self, query: str = WORDS, as_of: int | None = None) -> str:
        self.slowly.let.set()
        (told,) = (await self.ahead.recall(HEARD, query, 20, as_of)).missing
        return told


async def test_what_was_begun_is_the_answer_once() -> None:
    stand = Stand()
    await stand.begun()
    assert stand.slowly.asked == [WORDS], "before anybody asks"
    assert await stand.answer() == "answer 1"
    assert stand.slowly.asked == [WORDS]
    assert await stand.answer() == "answer 2"


async def test_it_is_asked_anew_when_memory_has_changed() -> None:
    stand = Stand()
    await stand.begun()
    stand.changes += 1
    assert await stand.answer() == "answer 2"
    await settle()
    assert stand.slowly.broken_off == 1


@pytest.mark.parametrize(("query", "as_of"), [("what is the time", None), (WORDS, 1_000)])
async def test_what_is_not_the_same_question_is_asked_by_itself(query: str, as_of: int | None) -> None:
    stand = Stand()
    await stand.begun()
    await stand.answer(query, as_of)
    assert stand.slowly.asked == [WORDS, query]


async def test_nobody_is_answered_as_of_long_ago() -> None:
    stand = Stand()
    await stand.begun()
    stand.slowly.let.set()
    await settle()
    await stand.clock.advance(2_000)
    assert await stand.answer() == "answer 2"


async def test_one_at_a_time_is_begun_and_none_soon_after_one_in_vain() -> None:
    stand = Stand()
    await stand.begun()
    await stand.begun("and another")
    assert stand.slowly.asked == [WORDS]
    stand.changes += 1
    await stand.answer()
    await stand.begun("a third")
    assert stand.slowly.asked == [WORDS, WORDS], "the last was of no use"
    await stand.clock.advance(2_000)
    await stand.begun("a fourth")
    assert await stand.answer("a fourth") == "answer 3"
    await stand.begun("a fifth")
    assert stand.slowly.asked[-1] == "a fifth", "the last was of use"


async def test_what_nobody_asked_for_makes_room_and_ends() -> None:
    stand = Stand()
    await stand.begun()
    await stand.clock.advance(2_000)
    await stand.begun("another")
    assert stand.slowly.asked == [WORDS, "another"]
    stand.ahead.stop()
    await settle()
    assert stand.slowly.broken_off == 2


SAID = Inbound(OWNER_ORIGIN, Content(WORDS.encode(), WORDS))
STORED = Received(IntakeResult.STORED, 7, LANE, 1)


@pytest_asyncio.fixture
async def memories(tmp_path: Path) -> AsyncIterator[SqliteMemories]:
    store = await open_memories(tmp_path / "memory.db", SystemIds())
    yield store
    await store.close()


async def expecting(memories: SqliteMemories, config: Config | None = None) -> IntakePrefetcher:
    operations, clock = InMemoryOperations(), VirtualClock()
    deeds = StagedRequestExecutor(memories, memories.revisions)
    recorder = Recorder(operations, memories, operations, clock, PatternRedactor(), deeds)
    recorder.watch(asyncio.Event())
    await recorder.catch_up()
    early = IntakePrefetcher(config or Config(), recollection(memories, clock, PATIENT_MS), memories, recorder, clock)
    early.expecting = True
    return early


def bicycle(key: str) -> NewMemory:
    scope = episode_scope(OWNER_ORIGIN, LANE)
    return NewMemory(key, Kind.FACT, f"the bicycle is in the {key}", scope, Trust.OWNER, LANE, "Ana", said_at=1)


async def test_a_message_is_recalled_for_while_it_is_routed(memories: SqliteMemories) -> None:
    await memories.keep([bicycle("cellar")], 1)
    early = await expecting(memories)
    assert early.expect(SAID, STORED) is STORED
    assert early.recall.rests
    wanted = listening(LANE, [OWNER_ORIGIN])
    found = await early.recall.recall(wanted, WORDS, Config().memory.recall_candidates)
    assert [hit.memory.text for hit in found.hits] == ["the bicycle is in the cellar"]
    assert not early.recall.rests, "it was what the turn asks for"


async def test_what_is_saved_meanwhile_comes_to_mind(memories: SqliteMemories) -> None:
    early = await expecting(memories)
    early.expect(SAID, STORED)
    assert early.recall.rests
    await settle()
    await memories.keep([bicycle("garden")], 1)
    found = await early.recall.recall(listening(LANE, [OWNER_ORIGIN]), WORDS, Config().memory.recall_candidates)
    assert [hit.memory.text for hit in found.hits] == ["the bicycle is in the garden"]


UNEXPECTED = {
    "a duplicate": (SAID, STORED._replace(intake=IntakeResult.DUPLICATE)),
    "a reply": (replace(SAID, marks=ProviderMarks(reply_to="m1")), STORED),
    "a command": (replace(SAID, content=Content(b"/help", "/help")), STORED),
    "a question about what was said": (replace(SAID, content=Content(b"why?", "why that one?")), STORED),
    "the program's own words": (replace(SAID, origin=replace(OWNER_ORIGIN, sender=SYSTEM)), STORED),
    "a channel with a window": (replace(SAID, origin=replace(OWNER_ORIGIN, channel="http")), STORED),
    "an unknown channel": (replace(SAID, origin=replace(OWNER_ORIGIN, channel="unknown")), STORED),
}


@pytest.mark.parametrize(("inbound", "received"), UNEXPECTED.values(), ids=UNEXPECTED)
async def test_nothing_is_begun_in_vain(memories: SqliteMemories, inbound: Inbound, received: Received) -> None:
    early = await expecting(memories)
    early.expect(inbound, received)
    assert not early.recall.rests


async def test_nothing_is_begun_where_nobody_answers_or_nothing_comes_to_mind(memories: SqliteMemories) -> None:
    nobody = await expecting(memories)
    nobody.stop()
    without = await expecting(memories, Config.model_validate({"memory": {"injection": "tool_only"}}))
    for early in (nobody, without):
        early.expect(SAID, STORED)
        assert not early.recall.rests
