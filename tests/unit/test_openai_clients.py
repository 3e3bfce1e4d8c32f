"""What well-known clients send to the OpenAI endpoint, call by call: each thing that a person says is stored once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.unit.test_openai_agent import Agent, agent

from keepsaid.domain.views import MessageFilter
from keepsaid.testing.model_script import Call, ChatRequest, Reaction, Say

pytestmark = pytest.mark.asyncio(loop_scope="module")

Body = dict[str, Any]


def answered(request: ChatRequest) -> Reaction:
    """A model that switches a light once, and names what it was told last."""
    last = str(request.messages[-1]["content"])
    if request.tool_names and "HassTurnOn" in request.tool_names and request.messages[-1]["role"] != "tool":
        return Call("HassTurnOn", {"name": "hall"})
    return Say(f"You said: {last}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def here(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Agent]:
    async with agent(tmp_path_factory.mktemp("home"), answered) as running:
        yield running


async def post(here: Agent, path: str, body: Body, headers: Mapping[str, str] | None = None) -> tuple[Any, list[Any]]:
    """The answer and, of a stream, its events."""
    sent = {"Authorization": f"Bearer {'a' * 40}", **(headers or {})}
    answer = await here.site.client.post(path, json=body, headers=sent)
    assert answer.status_code == 200, answer.text
    if not body.get("stream"):
        return answer.json(), []
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n") if line.startswith("data: {")]
    return None, [json.loads(line) for line in lines]


def said_in(events: Sequence[Any]) -> str:
    """The text of a streamed completion."""
    return "".join(one["choices"][0]["delta"].get("content") or "" for one in events if one["choices"])


async def test_open_webui_regenerates_edits_and_asks_for_a_title(here: Agent) -> None:
    """A system prompt with the time in it, headers with the chat, and calls about the chat under the same chat."""
    headers = {"X-OpenWebUI-Chat-Id": "chat-1", "X-OpenWebUI-User-Id": "u-1"}

    def body(*said: str, at: str = "10:00") -> Body:
        roles = ["user", "assistant"] * len(said)
        messages = [{"role": role, "content": text} for role, text in zip(roles, said, strict=False)]
        return {
            "stream": True,
            "model": "keepsaid",
            "messages": [{"role": "system", "content": f"It is {at}."}, *messages],
            "stream_options": {"include_usage": True},
        }

    _, first = await post(here, "/v1/chat/completions", body("Is it cold?"), headers)
    answer = said_in(first)
    assert answer == "You said: Is it cold?"
    requests = len(here.model.requests)
    _, again = await post(here, "/v1/chat/completions", body("Is it cold?", at="10:05"), headers)
    assert (said_in(again), len(here.model.requests)) == (answer, requests)
    _, second = await post(here, "/v1/chat/completions", body("Is it cold?", answer, "And wet?"), headers)
    assert said_in(second) == "You said: And wet?"
    title = "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history."
    await post(
        here, "/v1/chat/completions", {"model": "keepsaid", "messages": [{"role": "user", "content": title}]}, headers
    )
    _, edited = await post(here, "/v1/chat/completions", body("Is it warm?"), headers)
    assert said_in(edited) == "You said: Is it warm?"
    assert (await here.stored())[-3:] == ["Is it cold?", "And wet?", "Is it warm?"]


async def test_librechat_names_its_conversation_in_a_header(here: Agent) -> None:
    headers = {"X-LibreChat-Conversation-Id": "6f0e-11"}
    body: Body = {
        "model": "keepsaid",
        "user": "65f1",
        "stream": True,
        "temperature": 1,
        "top_p": 1,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "messages": [{"role": "user", "content": "Which port is this?"}],
    }
    answer = await here.site.client.post(
        "/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {'a' * 40}", **headers}
    )
    assert answer.headers["x-keepsaid-ignored"] == "frequency_penalty, presence_penalty, temperature, top_p"
    lanes = here.site.rows("SELECT conversation FROM lane WHERE conversation = '6f0e-11'")
    assert lanes == [("6f0e-11",)]


async def test_home_assistant_uses_responses_with_tools_and_keeps_the_history(here: Agent) -> None:
    """A developer message, a stream, functions that it makes itself, `store: false` and all of it again each time."""
    tool = {
        "type": "function",
        "name": "HassTurnOn",
        "description": "Turns on a device",
        "strict": False,
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
    history: list[Body] = [
        {"type": "message", "role": "developer", "content": "You are a voice assistant for Home Assistant."},
        {"type": "message", "role": "user", "content": "Turn on the light in the hall"},
    ]
    common: Body = {
        "model": "keepsaid",
        "tools": [tool],
        "max_output_tokens": 3_000,
        "top_p": 1.0,
        "temperature": 1.0,
        "user": "01JCONV",
        "store": False,
        "stream": True,
    }
    _, events = await post(here, "/v1/responses", {**common, "input": history})
    done = next(one for one in events if one["type"] == "response.function_call_arguments.done")
    item = next(one["item"] for one in events if one["type"] == "response.output_item.added")
    assert (item["type"], item["name"], json.loads(done["arguments"])) == (
        "function_call",
        "HassTurnOn",
        {"name": "hall"},
    )
    call = {"type": "function_call", "name": item["name"], "arguments": done["arguments"], "call_id": item["call_id"]}
    output = {"type": "function_call_output", "call_id": item["call_id"], "output": '{"success": true}'}
    history += [call, output]
    _, events = await post(here, "/v1/responses", {**common, "input": history})
    text = "".join(one["delta"] for one in events if one["type"] == "response.output_text.delta")
    assert "success" in text
    assert events[-1]["response"]["usage"]["input_tokens"] > 0
    history += [
        {"type": "message", "role": "assistant", "content": text},
        {"type": "message", "role": "user", "content": "Thanks"},
    ]
    _, events = await post(here, "/v1/responses", {**common, "tools": [], "input": history})
    assert events[-1]["type"] == "response.completed"
    assert (await here.stored())[-2:] == ["Turn on the light in the hall", "Thanks"]


async def test_opencode_and_codex_name_their_sessions(here: Agent) -> None:
    coding = {"role": "user", "content": [{"type": "text", "text": "Fix the test"}]}
    body: Body = {"model": "keepsaid", "stream": True, "max_tokens": 32_000, "messages": [coding]}
    await post(here, "/v1/chat/completions", body, {"x-session-id": "ses_1", "x-session-affinity": "ses_1"})
    codex: Body = {
        "model": "keepsaid",
        "instructions": "You are Codex.",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix the lint"}]}],
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "store": False,
        "stream": True,
        "include": [],
        "prompt_cache_key": "019-cache",
        "client_metadata": {"x": "y"},
    }
    await post(here, "/v1/responses", codex, {"session-id": "019-session"})
    found = here.site.rows("SELECT conversation FROM lane WHERE conversation IN ('ses_1', '019-session')")
    assert sorted(found) == [("019-session",), ("ses_1",)]


async def test_continue_and_scripts_name_nothing(here: Agent) -> None:
    first, _ = await post(
        here, "/v1/chat/completions", {"model": "keepsaid", "messages": [{"role": "user", "content": "Explain this"}]}
    )
    text = first["choices"][0]["message"]["content"]
    said = [
        {"role": "user", "content": "Explain this"},
        {"role": "assistant", "content": text},
        {"role": "user", "content": "Shorter"},
    ]
    await post(here, "/v1/chat/completions", {"model": "keepsaid", "messages": said})
    assert here.shown()[:2] == [("user", "Explain this"), ("assistant", text)]
    assert (await here.stored())[-2:] == ["Explain this", "Shorter"]


async def test_a_person_of_a_program_is_called_by_name(tmp_path: Path) -> None:
    """Open WebUI sends ids, which say nothing to a reader, and names as parts of addresses are written."""
    async with agent(tmp_path) as here, here.client("webui") as client:
        headers = {"X-OpenWebUI-User-Id": "7077310d", "X-OpenWebUI-User-Name": "Ann%20Lef%C3%A8vre"}
        said = [{"role": "user", "content": "The code is 4711"}]
        await client.chat.completions.create(model="keepsaid", messages=said, extra_headers=headers)  # type: ignore[arg-type]
        [found] = await here.site.instance.operations.find(MessageFilter(limit=100))
        origin = found.message.inbound.origin
        assert (origin.sender, origin.name) == ("7077310d", "Ann Lefèvre")
