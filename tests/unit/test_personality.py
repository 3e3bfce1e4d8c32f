from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.unit.golden_prompts import ANA, BOB, DIRECT, GROUP, ROOM, said
from tests.unit.memory_cast import claimed

from keepsaid.domain.context import LaneTail
from keepsaid.domain.effects import SetPersonality
from keepsaid.domain.memory import GLOBAL, OWNER, person_of, person_scope
from keepsaid.domain.message import Origin, StoredMessage, Trust
from keepsaid.domain.personality import (
    BUILT_IN,
    PERSONALITY_CHARS_MAX,
    Personality,
    effective,
    scopes_of,
    session_scope,
    settable,
)
from keepsaid.domain.prompt import Record, Role, ToolCall
from keepsaid.domain.scene import PromptInputs, StaticContext
from keepsaid.domain.turn import ClaimedBatch, TurnInputs
from keepsaid.errors import ToolError
from keepsaid.pipeline.prompt.assemble import PromptBudget, assemble, personality_of
from keepsaid.pipeline.prompt.layers import POLICY
from keepsaid.pipeline.tools.conversation import set_in, set_personality

CARL = replace(ANA, sender="9", name="Carl", trust=Trust.KNOWN)
HERE, ME = session_scope(DIRECT), person_scope(OWNER)
SET = {scope: Personality(scope, f"as set for {scope}") for scope in (HERE, ME, GLOBAL)}


def asked(*origins: Origin, found: tuple[Personality, ...] = ()) -> ClaimedBatch:
    made = claimed(*(said(n, "hi", origin) for n, origin in enumerate(origins, 1)))
    return replace(made, around=TurnInputs(personalities=found))


def test_the_nearest_that_is_set_wins() -> None:
    scopes = scopes_of(DIRECT, OWNER)
    assert scopes == (HERE, ME, GLOBAL)
    for n, scope in enumerate(scopes):
        assert effective(scopes, [SET[other] for other in scopes[n:]]) == SET[scope]
    assert effective(scopes, []) == effective(scopes, [Personality(HERE, "")]) == BUILT_IN


def test_in_a_group_no_single_person_decides_for_the_others() -> None:
    ours = Personality(session_scope(GROUP), "ours")
    assert personality_of(asked(ROOM, found=(SET[ME], SET[GLOBAL]))) == SET[GLOBAL]
    assert personality_of(asked(ROOM, BOB, found=(ours, SET[GLOBAL]))) == ours
    assert personality_of(asked(ANA, found=(SET[ME], SET[GLOBAL]))) == SET[ME]


def test_it_stands_below_the_policy_and_within_its_length() -> None:
    loud = Personality(HERE, "x" * 3_000)
    made = assemble(PromptInputs(asked(ANA), LaneTail(), standing=StaticContext(personality=loud)), PromptBudget())
    assert made.system.index(POLICY) < made.system.index("[Personality]")
    assert "x" * PERSONALITY_CHARS_MAX in made.system
    assert "x" * (PERSONALITY_CHARS_MAX + 1) not in made.system
    assert next(one for one in made.layers if one.name == "personality").cut == "cut to 2,000 of 3,000 characters"


@pytest.mark.parametrize(
    ("origins", "may"),
    [
        ((ANA,), {"session": HERE, "person": ME, "global": GLOBAL}),
        ((CARL,), {"session": HERE, "person": person_scope(person_of(CARL))}),
        ((replace(CARL, trust=Trust.EXTERNAL),), {}),
        ((ANA, CARL), {}),
        ((ROOM,), {"session": session_scope(GROUP), "global": GLOBAL}),
        ((replace(CARL, direct=False),), {}),
        ((ROOM, BOB), {}),
    ],
)
async def test_who_may_set_what(origins: tuple[Origin, ...], may: dict[str, str]) -> None:
    turn = asked(*origins)
    assert settable(turn.batch.lane, turn.messages) == may
    tools = set_personality(turn)
    assert len(tools) == bool(may)
    for tool in tools:
        assert tool.schema["properties"]["scope"]["enum"] == list(may)  # type: ignore[index,call-overload]
    for scope in {"session", "person", "global"} - set(may):
        assert set_in(called(text="be rude", scope=scope), turn) == ()
        for tool in tools:
            with pytest.raises(ToolError, match="scope must be one of"):
                await tool.run({"text": "be rude", "scope": scope})


def called(result: str = "Set.", **arguments: str) -> tuple[Record, ...]:
    call = ToolCall("c1", "set_personality", json.dumps(arguments))
    return Record(Role.ASSISTANT, "", (call,)), Record(Role.TOOL, result, call_id="c1"), Record(Role.ASSISTANT, "ok")


async def test_a_turn_leaves_what_its_recorded_calls_set() -> None:
    turn = asked(ANA)
    assert set_in(called(text=" be brief "), turn) == (SetPersonality(HERE, "be brief", OWNER),)
    assert set_in(called(text="", scope="global"), turn) == (SetPersonality(GLOBAL, "", OWNER),)
    assert set_in(called("error: no", text="be brief"), turn) == set_in(called(text="x" * 2_001), turn) == ()
    assert set_in(called(text="x")[:1], turn) == (), "a call without a result"
    [tool] = set_personality(turn)
    assert await tool.run({"text": "be brief"}) == "Set in this lane, from the next turn on."
    assert await tool.run({"text": " ", "scope": "global"}) == "Taken back everywhere."
    with pytest.raises(ToolError, match="2,000 characters"):
        await tool.run({"text": "x" * 2_001})


def test_who_joins_a_turn_takes_its_say_away() -> None:
    turn = asked(ANA)
    joined: StoredMessage = said(9, "me too", BOB)
    assert set_in(called(text="be brief"), replace(turn, messages=(*turn.messages, joined))) == ()
