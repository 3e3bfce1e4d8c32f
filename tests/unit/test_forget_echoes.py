"""What was forgotten is not remembered again because somebody repeats it, until a person asks for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.property.forgetting_world import STORES, World, world

from keepsaid.domain.forgetting import ForgetSelector
from keepsaid.domain.memory import Kind, NewMemory, Source, conversation_scope, person_scope
from keepsaid.domain.message import Trust
from keepsaid.memory.extraction import ExplicitExtractor
from keepsaid.testing.builders import ACCOUNT, CHANNEL

_BOAT = "My boat is called Wanda"
_ANN = f"{CHANNEL}:{ACCOUNT}:ann"


@pytest.fixture(params=STORES)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """A world on either operational store, in which a sentence was forgotten."""
    async with world(request.param, tmp_path) as made:
        message = await made.say(_BOAT, "desk")
        assert await made.forget(ForgetSelector(messages=(message,))) is not None
        assert await made.texts() == []
        yield made


async def test_the_same_sentence_of_the_same_person_in_another_conversation_is_not_remembered(stage: World) -> None:
    await stage.say(_BOAT, "attic")
    await stage.say(f"Hello! {_BOAT}.", "attic")
    await stage.say("My gym is in Braga", "attic")
    await stage.collect("attic")
    assert set(await stage.texts()) == {"My gym is in Braga"}


async def test_an_echo_by_the_agent_is_not_remembered(stage: World) -> None:
    await stage.say("what do you know?", "attic", answer=f"ok: {_BOAT.lower()}, right?")
    await stage.say("and what else?", "attic", answer="nothing about boats")
    assert {one.text for one in await stage.known()} == {
        "what do you know?",
        "and what else?",
        "nothing about boats",
    }


async def test_the_same_sentence_of_somebody_else_is_remembered(stage: World) -> None:
    await stage.say(_BOAT, "attic", sender="bob")
    assert await stage.texts() == [_BOAT]


async def test_what_somebody_else_still_says_is_not_silenced(stage: World) -> None:
    mine = await stage.say("The dentist is in Porto", "attic")
    await stage.say("The dentist is in Porto", "attic", sender="bob")
    await stage.forget(ForgetSelector(messages=(mine,)))
    await stage.say("so what", "cellar", answer="The dentist is in Porto")
    assert "The dentist is in Porto" in [one.text for one in await stage.known() if one.new.key.startswith("reply:")]


async def test_a_person_who_asks_for_it_has_it_remembered_again(stage: World) -> None:
    scope, source = person_scope(_ANN), (Source("note", "note:1"),)
    note = NewMemory("note:1", Kind.FACT, _BOAT, scope, Trust.KNOWN, speaker_id=_ANN, sources=source)
    assert await stage.memories.keep([note], 5) == (0,), "nobody asked"
    [number] = await stage.memories.keep([replace(note, asked=True)], 6)
    assert number > 0
    await stage.say(f"As you know: {_BOAT}", "attic")
    assert f"As you know: {_BOAT}" in await stage.texts(), "it may be said again"


async def test_a_message_that_asks_to_remember_it_is_learned(stage: World) -> None:
    stage.read_with(ExplicitExtractor())
    await stage.say(f"Remember that {_BOAT.lower()}", "attic")
    await stage.collect("attic")
    facts = [one for one in await stage.known() if one.new.key.startswith("finding:")]
    lane = facts[0].new.lane
    assert lane is not None
    assert {one.new.value for one in facts} == {"wanda"}
    assert {one.new.scope for one in facts} == {person_scope(_ANN), conversation_scope(lane)}


async def test_what_was_asked_for_is_not_forgotten_again_at_the_next_start(stage: World) -> None:
    scope, source = person_scope(_ANN), (Source("note", "note:1"),)
    now = stage.clock.now_ms()
    note = NewMemory("note:1", Kind.FACT, _BOAT, scope, Trust.KNOWN, speaker_id=_ANN, sources=source, asked=True)
    await stage.memories.keep([note], now)
    await stage.forget(ForgetSelector(text="Wanda"))
    [number] = await stage.memories.keep([note], now + 10)
    hashes = await stage.memories.forgetful.tombstones()
    assert number not in await stage.memories.forgetful.revived(hashes)


async def test_undone_it_may_be_said_again(stage: World) -> None:
    message = await stage.say("My gym is in Braga", "desk")
    done = await stage.forget(ForgetSelector(messages=(message,)), 86_400_000)
    assert done is not None
    await stage.forgetter.undo(done.id)
    await stage.say("My gym is in Braga", "attic")
    assert (await stage.texts()).count("My gym is in Braga") == 2


async def test_one_may_ask_for_it_in_ones_own_language(stage: World) -> None:
    boat = "Mein Boot heißt Wanda"
    message = await stage.say(boat, "cellar")
    assert await stage.forget(ForgetSelector(messages=(message,))) is not None
    await stage.say(boat, "attic")
    await stage.say(f"Bitte merk dir: {boat}", "attic")
    await stage.collect("attic")
    assert f"Bitte merk dir: {boat}" in await stage.texts()
    assert boat not in await stage.texts()
