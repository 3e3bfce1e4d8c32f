"""Lanes whose conversation is forgotten lose their names on either store; what was set for them can be undone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.property.forgetting_world import STORES, World, world

from keepsaid.domain.commits import IntakeResult, Receive, TurnCommit
from keepsaid.domain.effects import SetPersonality
from keepsaid.domain.forgetting import ForgetSelector
from keepsaid.domain.memory import OWNER, person_scope
from keepsaid.domain.message import Lane, ProviderMarks
from keepsaid.domain.personality import session_scope
from keepsaid.testing.builders import ACCOUNT, AT_ONCE, CHANNEL, arrival, lane_of, outcome, said

_DAY_MS = 86_400_000
_ANN = f"{CHANNEL}:{ACCOUNT}:ann"


@pytest.fixture(params=STORES)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """A world on either operational store."""
    async with world(request.param, tmp_path) as made:
        yield made


async def lane_in(stage: World, message_id: int) -> Lane:
    """The lane of a message."""
    return (await stage.road.story(message_id)).message.lane


async def test_a_conversation_that_is_forgotten_loses_its_name(stage: World) -> None:
    first = await stage.say("the wagon is blue", "attic")
    other = await stage.say("the harbour is grey", "cellar")
    done = await stage.forget(ForgetSelector(conversation="attic"))
    assert done is not None
    assert dict(done.counts)["lanes"] == 1
    unnamed = await lane_in(stage, first)
    assert unnamed.conversation.startswith("forgotten:")
    assert unnamed.key.startswith("forgotten:")
    assert await lane_in(stage, other) == lane_of("cellar")
    assert not await stage.operations.sessions(lane_of("attic"), 1)


async def test_a_new_message_of_it_opens_a_lane_in_which_messages_keep_their_order(stage: World) -> None:
    await stage.say("the wagon is blue", "attic")
    await stage.forget(ForgetSelector(conversation="attic"))
    later = [await stage.say(f"the kitchen has {n} windows", "attic") for n in range(3)]
    stories = [await stage.road.story(one) for one in later]
    assert [one.message.lane for one in stories] == [lane_of("attic")] * 3
    assert [one.message.number for one in stories] == [1, 2, 3]
    assert [one.state for one in stories] == ["done"] * 3


async def test_a_redelivery_to_a_forgotten_conversation_is_a_duplicate(stage: World) -> None:
    inbound = said("the wagon is blue", room="attic", marks=ProviderMarks(external_id="w1"))
    await stage.road.queue(inbound)
    await stage.road.answer(await stage.road.claim_one(), "fine")
    await stage.recorder.catch_up()
    assert await stage.forget(ForgetSelector(conversation="attic")) is not None
    received = await stage.operations.apply(Receive(arrival(77, inbound, 5_000), AT_ONCE))
    assert received.intake is IntakeResult.DUPLICATE


async def test_a_conversation_in_which_others_speak_keeps_its_name(stage: World) -> None:
    gone = await stage.say("the wagon is blue", "attic", "ann")
    stays = await stage.say("the harbour is grey", "attic", "bob")
    await stage.forget(ForgetSelector(person=_ANN))
    assert await lane_in(stage, gone) == lane_of("attic")
    assert await stage.said(stays) == "the harbour is grey"
    await stage.forget(ForgetSelector(messages=(stays,)))
    assert (await lane_in(stage, gone)).conversation.startswith("forgotten:")


async def test_a_name_goes_when_the_forgetting_can_be_undone_no_more(stage: World) -> None:
    first = await stage.say("the wagon is blue", "attic")
    second = await stage.say("the harbour is grey", "cellar")
    assert await stage.forget(ForgetSelector(conversation="attic"), _DAY_MS) is not None
    done = await stage.forget(ForgetSelector(conversation="cellar"), _DAY_MS)
    assert done is not None
    assert [await lane_in(stage, one) for one in (first, second)] == [lane_of("attic"), lane_of("cellar")]
    assert await stage.forgetter.undo(done.id) is not None
    await stage.clock.advance(_DAY_MS + 1)
    await stage.forgetter.purge()
    assert (await lane_in(stage, first)).conversation.startswith("forgotten:")
    assert await lane_in(stage, second) == lane_of("cellar")
    assert await stage.said(second) == "the harbour is grey"


async def test_a_lane_keeps_its_name_while_another_forgetting_in_it_can_be_undone(stage: World) -> None:
    first = await stage.say("the wagon is blue", "attic")
    second = await stage.say("the harbour is grey", "attic")
    kept = await stage.forget(ForgetSelector(messages=(first,)), _DAY_MS)
    assert kept is not None
    await stage.forget(ForgetSelector(messages=(second,)))
    assert await lane_in(stage, first) == lane_of("attic")
    await stage.forgetter.undo(kept.id)
    assert await stage.said(first) == "the wagon is blue"
    assert await stage.forget(ForgetSelector(messages=(first,))) is not None
    assert (await lane_in(stage, first)).conversation.startswith("forgotten:")


async def test_how_to_speak_goes_with_its_conversation_and_its_person_and_comes_back_by_an_undo(stage: World) -> None:
    set_for = {session_scope(lane_of("attic")): "like a wagoner", person_scope(_ANN): "gently"}
    await stage.road.queue(said("speak so", room="attic"))
    claimed = await stage.road.claim_one()
    effects = tuple(SetPersonality(scope, text, OWNER) for scope, text in set_for.items())
    end = replace(outcome("I will"), effects=effects)
    batch = claimed.batch
    assert await stage.operations.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, 7))

    async def speaks() -> dict[str, str]:
        return {one.scope: one.text for one in await stage.operations.personalities(tuple(set_for))}

    assert await speaks() == set_for
    done = await stage.forget(ForgetSelector(person=_ANN), _DAY_MS)
    assert done is not None
    assert person_scope(_ANN) not in await speaks()
    assert await stage.forgetter.undo(done.id) is not None
    assert await speaks() == set_for
    await stage.forget(ForgetSelector(conversation="attic"))
    assert await speaks() == {person_scope(_ANN): "gently"}
