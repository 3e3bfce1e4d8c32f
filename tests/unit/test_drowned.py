"""What is known comes to mind however often it was asked for: by words, and past the gate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from keepsaid.adapters.sqlite.stores import open_memories
from keepsaid.adapters.system.machine import SystemIds
from keepsaid.app.stores import PATIENT_MS, recollection
from keepsaid.domain.memory import GLOBAL, Hit, Kind, Listener, NewMemory, Source, conversation_scope
from keepsaid.domain.message import Lane, Trust
from keepsaid.memory.gates import Relevance, select_relevant
from keepsaid.testing.clock import VirtualClock
from keepsaid.text.words import DocumentFrequencies

DAY_MS = 86_400_000
ROOM = Lane("chat", "default", "kitchen", "root:chat:kitchen")
ASKED = "Where does Ada live?"
FORMS = (
    ASKED,
    "Where does Ada live",
    "Where does Ada live now?",
    "Is it true that Ada lives?",
    "so where does Ada live?",
)


def asking(number: int, text: str, lane: Lane = ROOM) -> NewMemory:
    """A question as it was said; another person each time, and some minutes later."""
    return NewMemory(
        f"message:{number}",
        Kind.EPISODE,
        text,
        conversation_scope(lane),
        Trust.KNOWN,
        lane,
        f"Person{number % 30}",
        said_at=DAY_MS + number * 60_000,
        sources=(Source("message", str(number)),),
    )


def fact(said_at: int, subject: str = "") -> NewMemory:
    """What answers it."""
    return NewMemory(
        "finding:1:0", Kind.FACT, "Ada lives in Porto", GLOBAL, Trust.OWNER, subject=subject, said_at=said_at,
        sources=(Source("finding", "1:0"),),
    )  # fmt: skip


async def recalled(
    path: Path, memories: Sequence[NewMemory], listener: Listener
) -> tuple[tuple[Hit, ...], DocumentFrequencies]:
    store = await open_memories(path, SystemIds())
    try:
        await store.keep(memories, 1)
        found = await recollection(store, VirtualClock(), PATIENT_MS).recall(listener, ASKED, 20)
        assert not [why for why in found.missing if "embedder" not in why]
        return found.hits, await store.read_document_frequencies(ASKED)
    finally:
        await store.close()


@pytest.mark.parametrize("forms", [1, len(FORMS)])
@pytest.mark.parametrize("said_at", [DAY_MS // 2, 90 * DAY_MS], ids=["before", "after"])
@pytest.mark.parametrize("subject", ["", "Ada"])
async def test_a_fact_comes_before_the_questions_for_it(tmp_path: Path, forms: int, said_at: int, subject: str) -> None:
    asked = [asking(n, FORMS[n % forms]) for n in range(1, 301)]
    hits, rarity = await recalled(tmp_path / "memory.db", [*asked, fact(said_at, subject)], Listener(ROOM))
    places = [hit.memory.new.key for hit in hits]
    assert "finding:1:0" in places[:3], places[:6]
    told = [hit.memory.text for hit in hits]
    assert len(set(told[: len(set(told))])) == len(set(told)), "what says the same again comes last"
    [known] = [hit for hit in hits if hit.memory.new.kind is Kind.FACT]
    relevance = Relevance(ASKED, rarity)
    assert hits.index(known) in select_relevant(hits, [relevance.weigh(hit) for hit in hits])


@pytest.mark.parametrize("cross", [False, True])
async def test_thirty_rooms_that_ask_the_same(tmp_path: Path, cross: bool) -> None:
    rooms = [Lane("chat", "default", f"room{n}", f"root:chat:room{n}") for n in range(30)]
    asked = [asking(n, FORMS[n % len(FORMS)], rooms[n % 30]) for n in range(1, 301)]
    hits, _ = await recalled(tmp_path / "memory.db", [*asked, fact(DAY_MS)], Listener(rooms[7], cross=cross))
    assert "finding:1:0" in [hit.memory.new.key for hit in hits[:3]]


async def test_what_several_people_say_of_themselves_is_not_the_same(tmp_path: Path) -> None:
    said = [asking(n, "I live beside Ada") for n in range(1, 9)]
    hits, _ = await recalled(tmp_path / "memory.db", said, Listener(ROOM))
    assert {hit.memory.new.speaker for hit in hits} == {f"Person{n}" for n in range(1, 9)}


async def test_as_many_ways_to_ask_as_there_are_people(tmp_path: Path) -> None:
    """Each says it in other words, so that nothing repeats anything: what is known is looked for by itself."""
    asked = [asking(n, f"tell me, number {n}, where does Ada live?") for n in range(1, 301)]
    hits, _ = await recalled(tmp_path / "memory.db", [*asked, fact(DAY_MS)], Listener(ROOM))
    assert hits[0].memory.new.key == "finding:1:0"
