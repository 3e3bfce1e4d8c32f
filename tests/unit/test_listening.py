"""The verdict `listen`: kept in the lane and in memory, without a model call and without a reply."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.unit.turn_cast import killed_at, staged
from tests.waits import HANG_S

from keepsaid import Keepsaid, Message
from keepsaid.domain.route import Action, Routes, Rule
from keepsaid.domain.turn import NO_MODEL
from keepsaid.services.explaining import commanded
from keepsaid.testing.model_script import ChatRequest, Reaction, Say, Script
from keepsaid.testing.model_server import ModelServer

ADDRESSED = Rule("addressed", {"text": ("*keepsaid*", "/*")}, Action.FORWARD)
ROUTES = Routes((ADDRESSED,), Action.LISTEN)
WHY = "the verdict is listen: no rule matched; routes.default is listen"


async def test_a_listened_message_is_kept_without_a_call_and_the_next_turn_sees_it() -> None:
    async with staged(Say("in the shed"), routes=ROUTES) as stage:
        await stage.say("the keys are in the shed")
        assert await stage.work() == "done"
        turn = await stage.turn()
        story = await stage.store.story(turn.messages[0].id)
        assert stage.server.requests == []
        await stage.say("keepsaid, where are the keys?")
        assert await stage.work() == "done"
        [request] = stage.server.requests
        [reply] = await stage.replies()
    assert (turn.state, turn.batch.state, turn.reason) == ("committed", "done", f"silent: {WHY}")
    assert commanded(turn) == "the verdict is listen, so no model was called"
    assert [record.text for record in turn.records] == ["the keys are in the shed"]
    assert story is not None
    assert (story.state, story.silent, story.replies) == ("done", WHY, ())
    assert "the keys are in the shed" in request.raw.decode()
    assert reply.draft.text == "in the shed"


async def test_a_listened_message_is_remembered() -> None:
    async with staged(routes=ROUTES) as stage:
        await stage.say("the keys are in the shed")
        assert await stage.work() == "done"
        [work] = await stage.store.episode_work(10)
    assert [message.text for message in work.messages] == ["the keys are in the shed"]
    assert (work.reply, work.model) in (("", ""), ("", NO_MODEL))


@pytest.mark.parametrize("point", ["commit.TurnCommit.before", "commit.TurnCommit.after"])
async def test_a_crash_around_a_listened_batch_keeps_it_once(point: str) -> None:
    async with staged(Say("yes"), routes=ROUTES) as stage:
        await stage.say("one")
        await killed_at(stage, point)
        if point.endswith("before"):
            assert await stage.work() == "done"
        await stage.say("two, keepsaid")
        assert await stage.work() == "done"
        [request] = stage.server.requests
        overview = await stage.store.overview()
        kept = stage.store.database.rows("SELECT text FROM transcript WHERE role = 'user' ORDER BY position")
    assert overview.batches == {"done": 2}
    assert request.raw.decode().count("one") >= 1
    assert kept == [("one",), ("two, keepsaid",)]


def _answer(request: ChatRequest) -> Reaction:
    return Say(f"I saw {sum(word in request.raw.decode() for word in ('plum', 'pear', 'fig'))} of them")


async def test_in_a_group_of_three_only_addressed_lines_are_answered(tmp_path: Path) -> None:
    quiet: dict[str, Any] = {"collection": {"extractor": "none"}, "bulletin": {"enabled": False}}
    rules = [{"name": "addressed", "match": {"text": "*keepsaid*"}, "action": "forward"}]
    async with ModelServer(Script(default=_answer)) as server:
        models = {"chat": "openai/scripted", "base_url": server.url, "api_key": "none"}
        routes = {"rules": rules, "default": "listen"}
        settings = {**quiet, "models": models, "routes": routes, "buffer": {"window_ms": 0}}
        async with asyncio.timeout(HANG_S), Keepsaid.open(tmp_path, answering=True, settings=settings) as ks:
            lines = [("ann", "plum?"), ("ben", "pear!"), ("cleo", "or fig"), ("ann", "keepsaid, which?"), ("ben", "ok")]
            replies = [await ks.ask(Message(text, who, "orchard")) for who, text in lines]
            status = await ks.status()
        assert len(server.requests) == 1
    assert [reply.text for reply in replies] == ["", "", "", "I saw 3 of them", ""]
    assert {reply.silent for reply in replies} == {WHY, ""}
    assert {reply.state for reply in replies} == {"done"}
    assert status["batches"]["dead"] == 0
    assert status["batches"]["queued"] == 0
