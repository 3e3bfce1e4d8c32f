"""Forgetting one statement of a passage takes that one, however often it is done."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.property.forgetting_world import STORES, World, world

from keepsaid.domain.forgetting import ForgetSelector

_SAID = (
    "my car is a Corsa",
    "my city is Porto",
    "my gym is PowerGym",
    "my phone is a Nokia",
    "my manager is Edith",
    "my dentist is Novak",
)


@pytest.fixture(params=STORES)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """A world on either operational store."""
    async with world(request.param, tmp_path) as made:
        yield made


async def collected(stage: World) -> list[int]:
    """Six messages that were read in one passage."""
    messages = [await stage.say(text) for text in _SAID]
    await stage.collect()
    return messages


async def test_each_of_several_forgettings_in_one_passage_takes_one_fact(stage: World) -> None:
    messages = await collected(stage)
    for n, word in enumerate(("Corsa", "Porto", "PowerGym", "Nokia", "Edith")):
        before = set(await stage.texts())
        preview = await stage.preview(ForgetSelector(text=word))
        assert preview.messages == (messages[n],)
        assert await stage.forget(ForgetSelector(text=word)) is not None
        after = set(await stage.texts())
        assert before - after == {text for text in before if word in text}, "what went is what names the word"
        assert [bool(await stage.said(one)) for one in messages] == [at > n for at in range(len(messages))]


async def test_forgetting_one_of_two_sources_takes_what_repeats_it_and_leaves_the_other(stage: World) -> None:
    messages = await collected(stage)
    await stage.forget(ForgetSelector(messages=(messages[0],)))
    texts = set(await stage.texts())
    assert {text for text in texts if "Corsa" in text} == set()
    assert await stage.said(messages[1]) == _SAID[1], "it was a source of the same statement"
    assert _SAID[1] in texts


async def test_what_several_people_said_in_the_same_words_stays_while_one_of_them_is_not_forgotten(
    stage: World,
) -> None:
    first = await stage.say("the office is in Braga")
    second = await stage.say("the office is in Braga", sender="bob")
    await stage.collect()
    assert (await stage.texts()).count("the office is in Braga") >= 2
    await stage.forget(ForgetSelector(messages=(first,)))
    assert "the office is in Braga" in await stage.texts()
    assert await stage.said(second)
    await stage.forget(ForgetSelector(messages=(second,)))
    assert await stage.texts() == []


async def test_what_was_merged_goes_with_what_stands_for_it(stage: World) -> None:
    first, second = await stage.say("my boat is red"), await stage.say("the boat of mine has the colour red")
    await stage.collect()
    facts = {one.text: one for one in await stage.known() if one.new.key.startswith("finding:")}
    into, other = facts["my boat is red"].id, facts["the boat of mine has the colour red"].id
    assert await stage.memories.revisions.merge(into, (other,), stage.clock.now_ms()) is None
    preview = await stage.preview(ForgetSelector((into,)))
    assert {into, other} <= set(preview.memories)
    assert set(preview.messages) == {first, second}
    await stage.forget(ForgetSelector((into,)))
    assert await stage.texts() == []


async def test_what_was_merged_leads_to_the_message_it_was_made_of(stage: World) -> None:
    first, second = await stage.say("my boat is red"), await stage.say("the boat of mine has the colour red")
    await stage.collect()
    facts = {one.text: one for one in await stage.known() if one.new.key.startswith("finding:")}
    into, other = facts["my boat is red"].id, facts["the boat of mine has the colour red"].id
    assert await stage.memories.revisions.merge(into, (other,), stage.clock.now_ms()) is None
    preview = await stage.preview(ForgetSelector((other,)))
    assert (into in preview.memories, preview.messages) == (False, (second,))
    await stage.forget(ForgetSelector((other,)))
    assert await stage.said(first) == "my boat is red"
    assert "my boat is red" in await stage.texts()
