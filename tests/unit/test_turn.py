"""Turns against a real model server: steps, replay, and what is never stored."""

from __future__ import annotations

import json

import pytest
from tests.unit.turn_cast import SECRET_WORD, a_tool, killed_at, staged

from keepsaid.domain.prompt import Json, Role
from keepsaid.domain.turn import ToolClass
from keepsaid.domain.views import MessageFilter
from keepsaid.pipeline.prompt.assemble import PromptBudget
from keepsaid.pipeline.prompt.guard import changed_since
from keepsaid.testing.model_script import Call, Say


async def test_an_answer_is_committed_with_transcript_reply_and_trace() -> None:
    async with staged(Say("hi Ann", usage=(120, 7))) as stage:
        await stage.say("hello there")
        assert await stage.work() == "done"
        turn = await stage.turn()
    assert [(record.role, record.text) for record in turn.records] == [
        (Role.USER, "hello there"),
        (Role.ASSISTANT, "hi Ann"),
    ]
    assert [reply.draft.text for reply in turn.replies] == ["hi Ann"]
    assert (turn.usage.tokens_in, turn.usage.tokens_out) == (120, 7)
    assert turn.state == "committed"


async def test_memory_is_told_what_the_prompt_shows_and_no_more() -> None:
    async with staged(Say("yes"), Say("no"), budget=PromptBudget(recent_tokens=5)) as stage:
        for text in ("a text of seven short words, or so", "and now"):
            await stage.say(text)
            assert await stage.work() == "done"
        sent = [
            entry["content"] for entry in stage.server.requests[-1].body["messages"] if entry["role"] == "assistant"
        ]
    assert stage.memory.shown == sent == ["yes"]


async def test_what_was_injected_is_seen_by_the_model_and_stored_nowhere_but_in_the_trace() -> None:
    async with staged(Say("yes"), Say("again")) as stage:
        for text in ("first", "second"):
            await stage.say(text)
            assert await stage.work() == "done"
        seen = [request.raw.decode() for request in stage.server.requests]
        turn = await stage.turn()
    assert all(raw.count(SECRET_WORD) == 1 for raw in seen), "once a turn, and not again from history"
    assert SECRET_WORD not in repr(turn.records) + repr(turn.steps) + repr(turn.replies)
    assert SECRET_WORD in json.dumps(turn.trace)


async def test_a_tool_is_called_and_its_result_is_kept_with_its_call() -> None:
    asked: list[dict[str, Json]] = []

    def run(arguments: dict[str, Json]) -> str:
        asked.append(arguments)
        return "found it"

    async with staged(Call("look_up", {"q": "x"}), Say("done"), tools=(a_tool(run),)) as stage:
        await stage.say()
        assert await stage.work() == "done"
        turn = await stage.turn()
    assert asked == [{"q": "x"}]
    assert [record.role for record in turn.records] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert turn.records[1].calls[0].id == turn.records[2].call_id
    assert [step.state for step in turn.steps] == ["finished"] * 3


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (Call("look_up", "{not json"), "not valid JSON"),
        (Call("look_up", "[1]"), "must be an object"),
        (Call("no_such_tool", {}), "there is no tool"),
    ],
)
async def test_a_wrong_call_is_told_to_the_model(call: Call, told: str) -> None:
    async with staged(call, Say("sorry"), tools=(a_tool(lambda _: "x"),)) as stage:
        await stage.say()
        assert await stage.work() == "done"
        assert told in stage.server.requests[-1].raw.decode()


async def test_a_failing_tool_is_the_models_to_work_around() -> None:
    def run(_: dict[str, Json]) -> str:
        raise RuntimeError("secret detail")

    async with staged(Call("look_up", {}), Say("ok"), tools=(a_tool(run),)) as stage:
        await stage.say()
        assert await stage.work() == "done"
        raw = stage.server.requests[-1].raw.decode()
    assert "look_up failed (RuntimeError)" in raw
    assert "secret detail" not in raw


async def test_an_answer_used_by_a_later_step_is_never_sampled_again() -> None:
    async with staged(Call("look_up", {"q": "x"}), Say("final"), Say("WRONG"), tools=(a_tool(lambda _: "r"),)) as stage:
        await stage.say()
        await killed_at(stage, "tool.after")
        assert await stage.work() == "done"
        turn = await stage.turn()
        assert len(stage.server.requests) == 2, "the first model step was replayed"
    assert turn.replies[0].draft.text == "final"


@pytest.mark.parametrize("point", ["model.after", "commit.TurnCommit.before"])
async def test_a_crash_around_the_last_answer_gives_one_reply(point: str) -> None:
    async with staged(Say("one"), Say("two")) as stage:
        await stage.say()
        await killed_at(stage, point)
        assert await stage.work() == "done"
        assert len(await stage.replies()) == 1
        texts = [record.text for record in (await stage.turn()).records if record.role is Role.ASSISTANT]
    assert texts == ["two"]


@pytest.mark.parametrize(
    ("point", "asked"), [("model.after", 3), ("commit.StepEnd.before", 3), ("commit.StepEnd.after", 2)]
)
async def test_an_answer_with_calls_is_kept_before_they_are_made(point: str, asked: int) -> None:
    used: list[dict[str, Json]] = []

    def run(arguments: dict[str, Json]) -> str:
        used.append(arguments)
        return "r"

    again = [Call("look_up", {"q": "again"})] * (asked - 2)
    async with staged(Call("look_up", {"q": "first"}), *again, Say("final"), tools=(a_tool(run),)) as stage:
        await stage.say()
        await killed_at(stage, point)
        assert used == []
        assert await stage.work() == "done"
        assert len(stage.server.requests) == asked
    assert used == [{"q": "again" if again else "first"}]


async def test_a_retry_shows_the_model_the_same_bytes() -> None:
    async with staged(Say("one"), Say("two")) as stage:
        await stage.say()
        await killed_at(stage, "model.after")
        await stage.work()
        first, second = (json.loads(request.raw)["messages"] for request in stage.server.requests)
        shown = stage.store.database.rows("SELECT memory_id FROM injection")
    assert first == second
    assert shown == [(4711,)], "the retried turn still says which memories it was shown"


@pytest.mark.parametrize(("point", "steps"), [("model.after", 1), ("tool.after", 2)])
async def test_a_retry_is_shown_what_stands_now_and_its_trace_says_so(point: str, steps: int) -> None:
    turns = [Call("look_up", {"q": "x"}), Say("one")] if steps > 1 else [Say("lost"), Say("one")]
    async with staged(*turns, tools=(a_tool(lambda _: "r"),)) as stage:
        await stage.say()
        await killed_at(stage, point)
        before = (await stage.turn()).trace
        stage.memory.identity = "# SOUL.md\nBe very brief."
        assert await stage.work() == "done"
        first, last = (json.loads(request.raw)["messages"][0]["content"] for request in stage.server.requests)
        after = (await stage.turn()).trace
    assert ("Be brief." in first, "Be very brief." in last) == (True, True)
    assert (changed_since(before), changed_since(after)) == ("", "the identity files changed")
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert after["memory"] == before["memory"], "what came to mind is shown again"
    assert after["layers"] != before["layers"], "the layers are those of the last attempt"


async def test_an_unsafe_call_without_result_is_parked_and_never_repeated() -> None:
    done: list[str] = []

    def run(_: dict[str, Json]) -> str:
        done.append("effect")
        return "ok"

    async with staged(Call("look_up", {}), Say("x"), tools=(a_tool(run, ToolClass.UNSAFE),)) as stage:
        await stage.say()
        await killed_at(stage, "tool.after")
        assert await stage.work() == "review"
        (notice,) = await stage.replies()
    assert done == ["effect"]
    assert notice.draft.notice
    assert "inbox requeue" in notice.draft.text


async def test_dropped_and_done_messages_are_told_apart() -> None:
    async with staged(Say("ok")) as stage:
        await stage.say()
        await stage.work()
        (story,) = await stage.store.find(MessageFilter())
    assert story.state == "done"
    assert story.turn_id == stage.claimed.turn_id
