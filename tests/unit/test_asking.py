from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.unit.memory_cast import claimed, message

from keepsaid.domain.message import ProviderMarks, StoredMessage
from keepsaid.domain.prompt import Record, Role
from keepsaid.domain.slot import Expected, Question, Slot
from keepsaid.domain.turn import ClaimedBatch, Recent, ReplyTarget, TurnInputs
from keepsaid.memory.recall.recollection import QUERY_CHARS_MAX, query_of
from keepsaid.text.topics import leans

LATELY = Recent(
    (
        Record(Role.USER, "Long ago"),
        Record(Role.USER, "Which hotel in Lisbon?", speaker="Ana"),
        Record(Role.ASSISTANT, "The Memmo, " + "by the river, " * 40),
        Record(Role.TOOL, "a tool's words"),
        Record(Role.USER, "And a table for two?", speaker="Ana"),
        Record(Role.ASSISTANT, "At Prado."),
    )
)
SLOT = Slot(7, "me", Question("When does the ferry leave?", Expected.DATE_TIME), "reply:7", 0, 1_000)


def replying(text: str) -> StoredMessage:
    one = message(9, text)
    return replace(one, inbound=replace(one.inbound, marks=ProviderMarks(reply_to="x-1")))


async def asked(batch: ClaimedBatch, recent: Recent = LATELY) -> str:
    read: asyncio.Future[Recent] = asyncio.get_running_loop().create_future()
    read.set_result(recent)
    return await query_of(batch, batch.messages, read)


FOLLOW_UPS = ["why that one?", "Which one?", "and the other?", "what about her?", "how so, and when"]
OTHERS = ["thanks!", "good morning", "how are you?", "what's up?", "ok", "", "?", "yes", "why that hotel?", "you too"]


@pytest.mark.parametrize("text", FOLLOW_UPS)
def test_a_follow_up_leans_on_what_was_said(text: str) -> None:
    assert leans(text)


@pytest.mark.parametrize("text", OTHERS)
def test_neither_small_talk_nor_a_question_of_its_own_does(text: str) -> None:
    assert not leans(text)


async def test_a_follow_up_is_asked_with_the_last_exchanges() -> None:
    query = await asked(claimed(message(9, "why that one?")))
    lines = query.split("\n")
    assert lines[:2] == ["why that one?", "Which hotel in Lisbon?"]
    assert lines[2].startswith("The Memmo, by the river")
    assert len(lines[2]) == 400
    assert lines[3:] == ["And a table for two?", "At Prado."]
    assert await asked(claimed(message(9, "why that one?")), Recent()) == "why that one?"


async def test_what_has_words_of_its_own_is_asked_alone() -> None:
    never: asyncio.Future[Recent] = asyncio.get_running_loop().create_future()
    batch = claimed(message(8, "hello"), message(9, "a quiet hotel?"))
    assert await query_of(batch, batch.messages, never) == "hello\na quiet hotel?"


async def test_what_it_replies_to_is_asked_with_it() -> None:
    around = TurnInputs(said=(ReplyTarget("x-1", "reply:3", "The Memmo in Lisbon " + "x" * 600),))
    for text in ("why that one?", "book it for Friday"):
        query = await asked(replace(claimed(replying(text)), around=around))
        assert query == f"{text}\nThe Memmo in Lisbon " + "x" * 480
    assert await asked(claimed(replying("book it"))) == "book it", "an unknown target says nothing"


async def test_the_question_it_answers_is_asked_with_it() -> None:
    around = TurnInputs(slots=(SLOT,))
    batch = replace(claimed(message(9, "tomorrow")), around=around)
    assert await asked(batch) == "tomorrow\nWhen does the ferry leave?"
    for slot, text in (
        (SLOT, "the cat sleeps"),
        (replace(SLOT, person="someone else"), "tomorrow"),
        (replace(SLOT, expires_at=9), "tomorrow"),
    ):
        batch = replace(claimed(message(9, text)), around=TurnInputs(slots=(slot,)))
        assert await asked(batch) == text


async def test_of_one_long_message_the_beginning_and_the_end_are_searched_for() -> None:
    query = await asked(claimed(message(9, f"first words {'x' * 900_000} last words")))
    assert len(query) <= QUERY_CHARS_MAX
    assert query.startswith("first words")
    assert query.endswith("last words")


async def test_of_many_long_messages_the_newest_are_searched_for() -> None:
    texts = [f"number {n}: {'y' * 1_000}" for n in range(100)]
    query = await asked(claimed(*(message(9 + n, text) for n, text in enumerate(texts))))
    assert len(query) <= QUERY_CHARS_MAX
    assert query.endswith("\n".join(texts[-3:]))
    assert texts[0] not in query


async def test_a_long_message_leaves_room_for_what_it_replies_to() -> None:
    batch = claimed(replying("z" * 9_000))
    said = (ReplyTarget("x-1", "message:3", "the harbour"),)
    query = await asked(replace(batch, around=TurnInputs(said=said)))
    assert len(query) <= QUERY_CHARS_MAX
    assert query.endswith("\nthe harbour")
