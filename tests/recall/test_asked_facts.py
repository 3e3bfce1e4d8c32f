"""A fact is found by the slot that a question asks for, whatever words state it, and by no other question."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories
from keepsaid.app.stores import recollection
from keepsaid.domain.memory import OWNER, Kind, Listener, NewMemory, Source, person_scope
from keepsaid.domain.message import Trust
from keepsaid.memory.recall.ranking import FACT
from keepsaid.testing.builders import lane_of
from keepsaid.testing.clock import CountingIds, VirtualClock

_HERE = lane_of("here")
_OWNER = Listener(_HERE, OWNER, direct=True)
_LISBON = "I moved to Lisbon last year"


def _fact(key: str, text: str, slot: tuple[str, str], person: str = OWNER, at: int = 1) -> NewMemory:
    """What a person states of themself."""
    return NewMemory(
        key,
        Kind.FACT,
        text,
        person_scope(person),
        Trust.OWNER if person == OWNER else Trust.KNOWN,
        _HERE,
        speaker=person,
        speaker_id=person,
        subject=person,
        subject_id=person,
        said_at=at,
        sources=(Source("message", key),),
        attribute=slot[0],
        value=slot[1],
    )


@pytest.fixture
async def memories(tmp_path: Path) -> AsyncIterator[SqliteMemories]:
    store = await open_memories(tmp_path / "memory.db", CountingIds())
    try:
        stated = [
            _fact("1", _LISBON, ("lives in", "Lisbon")),
            _fact("2", "I started at Acme", ("works at", "Acme")),
            _fact("3", "Call me Annie", ("name", "Annie")),
            _fact("4", "I moved to Porto", ("lives in", "Porto"), person="telegram:bot:7"),
        ]
        await store.learn(stated, 9)
        yield store
    finally:
        await store.close()


async def _found(memories: SqliteMemories, query: str, listener: Listener = _OWNER) -> list[str]:
    """What the slot alone brings."""
    recalled = await recollection(memories, VirtualClock(10), 1_000).recall(listener, query, 5)
    return [hit.memory.text for hit in recalled.hits if any(place.leg == FACT for place in hit.places)]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("where do I live?", _LISBON),
        ("What city do I live in now?", _LISBON),
        ("do you remember where I live?", _LISBON),
        ("What is my home address?", None),
        ("which company do I work for?", "I started at Acme"),
        ("what's my name?", "Call me Annie"),
    ],
)
async def test_question_finds_what_answers_it(memories: SqliteMemories, question: str, answer: str | None) -> None:
    assert await _found(memories, question) == ([] if answer is None else [answer])


@pytest.mark.parametrize(
    "message",
    [
        "I live for this song",
        "Where do I live, and what is the weather?",
        "what is my wife's name?",
        "which city should we visit in May?",
        "how does this work?",
        "where does Tom live?",
        "I will be home at six, right?",
        "",
    ],
)
async def test_other_messages_find_nothing_by_a_slot(memories: SqliteMemories, message: str) -> None:
    assert await _found(memories, message) == []


async def test_answer_is_that_of_who_asks(memories: SqliteMemories) -> None:
    other = Listener(lane_of("there"), "telegram:bot:7", direct=True)
    assert await _found(memories, "where do I live?", other) == ["I moved to Porto"]
    assert await _found(memories, "where do I live?", Listener(_HERE, "telegram:bot:8", direct=True)) == []
    assert await _found(memories, "where do I live?", Listener(_HERE)) == []
    assert await _found(memories, "where do I live?", Listener(None, everything=True)) == [_LISBON]
    group = Listener(_HERE, OWNER)
    assert await _found(memories, "where do I live?", group) == [], "what was said in a direct chat stays there"


async def test_what_was_true_before_is_not_what_is_asked_for(memories: SqliteMemories) -> None:
    await memories.learn([_fact("5", "I moved to Faro", ("lives in", "Faro"), at=5)], 9)
    assert await _found(memories, "where do I live?") == ["I moved to Faro"]
