"""Several tool calls of one step, by the real client: all go out at once, and all their results come back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import openai
import pytest
from tests.unit.test_openai_agent import LIGHTS, agent, assistant, user
from tests.waits import HANG_S

from keepsaid.domain.client_history import Placement
from keepsaid.domain.client_tools import OfferedTool, ResultOfClient
from keepsaid.domain.prompt import ToolCall
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.domain.views import MessageFilter
from keepsaid.errors import InputError, ToolError
from keepsaid.pipeline.tools.client import ClientTools
from keepsaid.ports.telemetry import CALL_ID, STEP_CALLS
from keepsaid.services.inbox import ProgressHub
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.model_script import Call, Calls, ChatRequest, Reaction, Say

LOCK = {
    "type": "function",
    "function": {
        "name": "lock_door",
        "description": "Lock a door.",
        "parameters": {"type": "object", "properties": {"door": {"type": "string"}}},
    },
}
TOOLS: Any = [LIGHTS, LOCK]


def closing(request: ChatRequest) -> Reaction:
    """A model that switches a light and locks two doors at once, then asks for the light again, then answers."""
    results = [str(one["content"]) for one in request.messages if one["role"] == "tool"]
    if not results:
        asked = Call("set_light", {"room": "hall"}), Call("lock_door", {"door": "front"}), Call("lock_door", "[]")
        return Calls((*asked, Call("lock_door", {"door": "back"})))
    if len(results) == 4:
        return Call("set_light", {"room": "attic"}, usage=(30, 3))
    return Say(f"Done: {'; '.join(results)}", usage=(50, 5))


def result(call: Any, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call.id, "content": text}


async def test_calls_of_one_step_go_out_together_and_come_back_together(tmp_path: Path) -> None:
    async with agent(tmp_path, closing) as here, here.client() as client:
        create: Any = client.chat.completions.create
        asked = [user("Close the house")]
        first = await create(model="keepsaid", messages=asked, tools=TOOLS)
        calls = first.choices[0].message.tool_calls
        said = [(one.function.name, json.loads(one.function.arguments)) for one in calls]
        assert said == [
            ("set_light", {"room": "hall"}),
            ("lock_door", {"door": "front"}),
            ("lock_door", {"door": "back"}),
        ]
        assert (first.choices[0].finish_reason, first.usage.total_tokens > 0) == ("tool_calls", True)
        called = {"role": "assistant", "content": None, "tool_calls": [one.model_dump() for one in calls]}
        results = [result(call, f"result {n}") for n, call in enumerate(calls)]
        forged = {**results[0], "tool_call_id": "call_of_another"}
        for sent, named in ((results[:2], calls[2].id), ([*results, forged], "call_of_another")):
            with pytest.raises(openai.BadRequestError, match=named):
                await create(model="keepsaid", messages=[*asked, called, *sent], tools=TOOLS)
        assert len(here.model.requests) == 1
        history = [*asked, called, *reversed(results)]
        second = await create(model="keepsaid", messages=history, tools=TOOLS)
        [call] = second.choices[0].message.tool_calls
        assert json.loads(call.function.arguments) == {"room": "attic"}
        assert second.usage.total_tokens == 33
        history += [{"role": "assistant", "content": None, "tool_calls": [call.model_dump()]}, result(call, "it is on")]
        for _ in range(2):
            last = await create(model="keepsaid", messages=history, tools=TOOLS)
            assert last.usage.total_tokens == 55
        text = last.choices[0].message.content
        for n in range(3):
            assert f"result {n}" in text
        assert text.index("result 0") < text.index("result 1") < text.index("result 2") < text.index("it is on")
        assert len(here.model.requests) == 3
        await create(model="keepsaid", messages=[*history, assistant(text), user("Thanks")])
        assert await here.stored() == ["Close the house", "Thanks"]


async def test_client_that_makes_one_call_at_a_time_gets_one(tmp_path: Path) -> None:
    async with agent(tmp_path, closing) as here, here.client() as client:
        create: Any = client.chat.completions.create
        history: list[Any] = [user("Close the house")]
        made = []
        while True:
            answer = await create(model="keepsaid", messages=history, tools=TOOLS, parallel_tool_calls=False)
            if answer.choices[0].finish_reason == "stop":
                break
            [call] = answer.choices[0].message.tool_calls
            made.append(call.function.name)
            history += [{"role": "assistant", "content": None, "tool_calls": [call.model_dump()]}, result(call, "ok")]
        assert made == ["set_light", "lock_door", "lock_door", "set_light"]
        assert len(here.model.requests) == 3


async def test_stream_and_responses_have_all_calls_and_their_cost(tmp_path: Path) -> None:
    tools: Any = [{"type": "function", **tool["function"]} for tool in TOOLS]
    async with agent(tmp_path, closing) as here, here.client() as client:
        create: Any = client.chat.completions.create
        usage = {"include_usage": True}
        stream = await create(
            model="keepsaid", messages=[user("Close up")], tools=TOOLS, stream=True, stream_options=usage
        )
        chunks = [chunk async for chunk in stream]
        calls = [one for chunk in chunks if chunk.choices for one in chunk.choices[0].delta.tool_calls or []]
        named = [(one.index, one.function.name) for one in calls]
        assert named == [*enumerate(["set_light", "lock_door", "lock_door"])]
        assert chunks[-1].usage.total_tokens > 0
        events = [
            one
            async for one in await client.responses.create(
                model="keepsaid", input="Close the barn", tools=tools, stream=True
            )
        ]
        done = events[-1]
        assert done.type == "response.completed"
        assert [item.type for item in done.response.output] == ["function_call"] * 3
        assert done.response.usage is not None
        assert done.response.usage.total_tokens > 0
        output: Any = [
            {"type": "function_call_output", "call_id": item.call_id, "output": "ok"}
            for item in done.response.output
            if item.type == "function_call"
        ]
        with pytest.raises(openai.BadRequestError, match="missing"):
            await client.responses.create(model="keepsaid", input=output[1:], previous_response_id=done.response.id)
        last = await client.responses.create(
            model="keepsaid", input=output, previous_response_id=done.response.id, tools=tools
        )
        assert last.output[0].type == "function_call"


async def test_calls_that_the_client_never_makes_are_given_up_together(tmp_path: Path) -> None:
    async with agent(tmp_path) as here:
        await here.say([user("Close the house")])
        [story] = await here.site.instance.operations.find(MessageFilter(limit=1))
        assert story.batch is not None
        assert story.turn_id is not None
        claimed, clock = ClaimedBatch(story.batch, story.turn_id, (story.message,)), VirtualClock()
        tools = ClientTools(here.site.instance.operations, clock, ProgressHub())
        [tool] = tools.tools(claimed, [OfferedTool("lock_door", "", {})], [])
        STEP_CALLS.set((ToolCall("c1", "lock_door", "{}"), ToolCall("c2", "lock_door", "{}")))
        CALL_ID.set("c1")
        running = asyncio.ensure_future(tool.run({}))
        async with asyncio.timeout(HANG_S):
            while not await tools.pending(story.message.id):
                pass
            assert [one.id for one in await tools.pending(story.message.id)] == ["c1", "c2"]
            while not running.done():
                await clock.advance(10_000)
        with pytest.raises(ToolError, match="within 10 minutes"):
            await running
        CALL_ID.set("c2")
        assert "within 10 minutes" in await tool.run({})
        with pytest.raises(InputError, match="c1"):
            await tools.deliver(story.message.id, [ResultOfClient("c1", "locked")])


@pytest.mark.parametrize("kept", [0, 1, 4], ids=["no result", "some results", "all results"])
async def test_a_client_that_goes_on_without_waiting_is_answered_at_once(tmp_path: Path, kept: int) -> None:
    """What its tools returned until then is taken; the turn before makes no more calls of the client."""

    def busy(request: ChatRequest) -> Reaction:
        return Say("Good night.") if request.last("user").endswith("Never mind") else closing(request)

    async with agent(tmp_path, busy) as here, here.client() as client, asyncio.timeout(HANG_S):
        create: Any = client.chat.completions.create
        asked = [user("Close the house")]
        first = (await create(model="keepsaid", messages=asked, tools=TOOLS)).choices[0].message
        results = [result(call, f"did {n}") for n, call in enumerate(first.tool_calls)][:kept]
        called = [first.model_dump(exclude_none=True), *results] if results else []
        history = [*asked, *called, user("Never mind")]
        answer = await create(model="keepsaid", messages=history, tools=TOOLS)
        assert answer.choices[0].message.content == "Good night."
        shown = [str(one["content"]) for one in here.model.requests[1].messages if one["role"] == "tool"]
        assert [text for text in shown if text.startswith("did")] == [f"did {n}" for n in range(len(results))]
        assert await here.stored() == ["Close the house", "Never mind"]


async def test_a_call_that_comes_twice_ends_no_wait_of_its_own_turn(tmp_path: Path) -> None:
    async with agent(tmp_path, closing) as here, here.client() as client:
        create: Any = client.chat.completions.create
        await create(model="keepsaid", messages=[user("Close the house")], tools=TOOLS)
        [story] = await here.site.instance.operations.find(MessageFilter(limit=1))
        chats = here.site.instance.services.chats
        origin = story.message.inbound.origin
        last = await here.site.instance.operations.histories.newest(
            (origin.channel, origin.account, origin.conversation)
        )
        assert last is not None
        await chats.leave_before(Placement(key=last.key, behind=last), ())
        assert len(await chats.pending(story.message.id)) == 3
        await chats.leave_before(Placement(key="another", behind=last), ())
        assert not await chats.pending(story.message.id)


async def test_a_message_in_one_strand_ends_the_wait_there_whatever_was_said_last_in_another(tmp_path: Path) -> None:
    def busy(request: ChatRequest) -> Reaction:
        asked = str(request.last("user"))
        return closing(request) if "Close the house" in asked else Say("Good night.")

    async with agent(tmp_path, busy) as here, here.client() as client, asyncio.timeout(HANG_S):
        create: Any = client.chat.completions.create
        begun = [user("Hello"), {"role": "assistant", "content": "Good night."}]
        await create(model="keepsaid", messages=begun[:1], tools=TOOLS)
        await create(model="keepsaid", messages=[*begun, user("Close the house")], tools=TOOLS)
        await create(model="keepsaid", messages=[*begun, user("What time is it?")], tools=TOOLS)
        answer = await create(
            model="keepsaid", messages=[*begun, user("Close the house"), user("Never mind")], tools=TOOLS
        )
        assert answer.choices[0].message.content == "Good night."
