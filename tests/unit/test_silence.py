"""A turn without a reply: an empty answer or the tool `stay_silent` ends it after one model call, and says why."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.unit.turn_cast import Stage, a_tool, killed_at, staged
from tests.waits import HANG_S

from keepsaid import Keepsaid, Message
from keepsaid.domain.prompt import Json, Role
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.domain.views import TurnStory
from keepsaid.interfaces.shapes import story_shape, turn_shape
from keepsaid.pipeline.tools.conversation import ask_for, stay_silent
from keepsaid.pipeline.turn.run import NO_ANSWER
from keepsaid.testing.model_script import Call, Calls, Empty, Garble, Reaction, Say, Script
from keepsaid.testing.model_server import ModelServer

SILENCE = Call("stay_silent", {"reason": "Ann and Ben\ntalk to each other"})
REASON = "Ann and Ben talk to each other"
CHUNK = '{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":['
CUT_OFF = Garble(
    f'data: {CHUNK}{{"index":0,"delta":{{"role":"assistant","content":""}},"finish_reason":"length"}}]}}\n\n'
    "data: [DONE]\n\n"
)
NO_CHOICES = Garble(f"data: {CHUNK}]}}\n\ndata: [DONE]\n\n")


async def silent_turn(stage: Stage) -> TurnStory:
    """The turn of the last attempt, which must have ended without a reply."""
    turn = await stage.turn()
    assert (turn.state, turn.batch.state, turn.replies) == ("committed", "done", ())
    assert await stage.replies() == []
    return turn


@pytest.mark.parametrize(
    ("reaction", "reason"),
    [
        (Empty(), NO_ANSWER),
        (Say(" \n "), NO_ANSWER),
        (SILENCE, REASON),
        (Call("stay_silent", {}), "the agent chose not to answer"),
        (Call("stay_silent", "", "I will say nothing."), "the agent chose not to answer"),
    ],
)
async def test_a_silent_turn_costs_one_call_and_says_why(reaction: Reaction, reason: str) -> None:
    async with staged(reaction, tools=(stay_silent(),)) as stage:
        await stage.say("Ben, are you there?")
        assert await stage.work() == "done"
        turn = await silent_turn(stage)
        story = await stage.store.story(turn.messages[0].id)
        assert len(stage.server.requests) == 1
    assert turn.reason == f"silent: {reason}"
    assert [(one.role, one.text) for one in turn.records] == [(Role.USER, "Ben, are you there?")]
    assert story is not None
    assert (story.state, story_shape(story)["silent"], turn_shape(turn)["reason"]) == ("done", reason, turn.reason)


async def test_the_next_turn_is_shown_what_was_said_before_a_silence() -> None:
    async with staged(SILENCE, Empty(), Say("yes"), tools=(stay_silent(),)) as stage:
        for text in ("the keys are in the shed", "thanks", "where are the keys?"):
            await stage.say(text)
            assert await stage.work() == "done"
        roles = [entry["role"] for entry in stage.server.requests[-1].messages]
        raw = stage.server.requests[-1].raw.decode()
        story = await stage.store.story(stage.claimed.messages[0].id)
    assert set(roles) == {"system", "user"}, "no call and no empty answer stands in the transcript"
    assert raw.index("the keys are in the shed") < raw.index("thanks") < raw.index("where are the keys?")
    assert story is not None
    assert (story.silent, [one.draft.text for one in story.replies]) == ("", ["yes"])


async def test_other_calls_beside_stay_silent_are_made_and_kept() -> None:
    asked: list[object] = []

    def look_up(arguments: dict[str, Json]) -> str:
        asked.append(arguments)
        return "found it"

    both = Calls((Call("look_up", {"q": "x"}, "one moment"), SILENCE))
    tools = (a_tool(look_up), stay_silent())
    async with staged(both, tools=tools) as stage:
        await stage.say()
        assert await stage.work() == "done"
        turn = await silent_turn(stage)
    assert asked == [{"q": "x"}]
    assert [(one.role, one.text, len(one.calls)) for one in turn.records[1:]] == [
        (Role.ASSISTANT, "", 1),
        (Role.TOOL, "found it", 0),
    ]


async def test_a_malformed_call_of_stay_silent_ends_nothing() -> None:
    async with staged(Call("stay_silent", "[1"), Say("here I am"), tools=(stay_silent(),)) as stage:
        await stage.say()
        assert await stage.work() == "done"
        assert [reply.draft.text for reply in await stage.replies()] == ["here I am"]
        assert (await stage.turn()).reason == ""


@pytest.mark.parametrize("garbled", [CUT_OFF, NO_CHOICES, Garble("not json")])
async def test_an_answer_that_breaks_off_is_an_error_and_no_silence(garbled: Garble) -> None:
    async with staged(garbled, garbled) as stage:
        await stage.say()
        assert await stage.work() == "queued"
        assert len(stage.server.requests) == 2, "it was asked for once more"


@pytest.mark.parametrize(
    ("point", "asked"),
    [
        ("model.after", 2),
        ("commit.StepEnd.after", 1),
        ("tool.before", 1),
        ("tool.after", 1),
        ("commit.TurnCommit.before", 1),
    ],
)
async def test_a_crash_around_a_silence_ends_in_the_same_silence(point: str, asked: int) -> None:
    async with staged(*[SILENCE] * asked, Say("WRONG"), tools=(stay_silent(),)) as stage:
        await stage.say()
        await killed_at(stage, point)
        assert await stage.work() == "done"
        assert (await silent_turn(stage)).reason == f"silent: {REASON}"
        assert len(stage.server.requests) == asked


async def test_a_question_of_a_silent_turn_is_not_open() -> None:
    question = Call("ask_for", {"question": "When?", "type": "date"})

    def offered(claimed: ClaimedBatch) -> tuple[Any, ...]:
        return (ask_for(claimed), stay_silent())

    async with staged(question, Empty()) as stage:
        stage.tools = ()
        await stage.say()
        (lease,) = await stage.flow.claim(stage.leases, 1)
        stage.claimed = await stage.flow.open(lease)
        stage.tools = offered(stage.claimed)
        assert await stage.attempt.at(stage.claimed, lambda: stage.flow.answer(stage.claimed)) == "done"
        turn = await silent_turn(stage)
        assert turn.reason == f"silent: {NO_ANSWER}"
        assert stage.store.database.rows("SELECT count(*) FROM slot") == [(0,)]


async def test_the_library_returns_a_reply_that_says_why_there_is_none(tmp_path: Path) -> None:
    quiet: dict[str, Any] = {"collection": {"extractor": "none"}, "bulletin": {"enabled": False}}
    async with ModelServer(Script(Empty(), SILENCE, Say("hello Ben"))) as server:
        models = {"chat": "openai/scripted", "base_url": server.url, "api_key": "none"}
        settings = {**quiet, "models": models, "buffer": {"window_ms": 0}}
        async with asyncio.timeout(HANG_S), Keepsaid.open(tmp_path, answering=True, settings=settings) as ks:
            nothing = await ks.ask(Message("hm", "ann", "room"))
            silent = await ks.ask(Message("Ben?", "ann", "room"))
            reply = await ks.ask(Message("hello", "ben", "chat", direct=True))
            why = await ks.why(silent.turn)
        names = [request.tool_names for request in server.requests]
    assert [(one.state, one.text, one.silent) for one in (nothing, silent, reply)] == [
        ("done", "", NO_ANSWER),
        ("done", "", REASON),
        ("done", "hello Ben", ""),
    ]
    assert (why["state"], why["reason"]) == ("committed", f"silent: {REASON}")
    assert len(names) == 3
    assert len({one.index("stay_silent") for one in names}) == 1, "in a group and in a direct chat"
