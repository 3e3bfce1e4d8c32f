"""Wrong parameters of the OpenAI protocol are refused by name, and calls that would wait for long are answered."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest
import pytest_asyncio
from tests.unit.openai_cast import proxy_site
from tests.unit.openai_cast import token as token_of
from tests.unit.test_openai_agent import KEYS, LIGHTS, Agent, agent, user

from keepsaid.testing.model_script import Call, ChatRequest, Reaction, Refuse, Say, Script

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT, RESPONSE = "/v1/chat/completions", "/v1/responses"
RESULT = {"role": "tool", "content": "done"}
AUDIO = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": {"a": "../x"}}}


def lighting(request: ChatRequest) -> Reaction:
    """A model that calls a function where it is offered one."""
    return Call("set_light", {"room": "hall"}) if "set_light" in request.tool_names else Say("No function is there.")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def here(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Agent]:
    async with agent(tmp_path_factory.mktemp("home"), lighting) as running:
        yield running


async def refused(here: Agent, path: str, body: dict[str, Any], key: str = "ann") -> dict[str, Any]:
    head = {"Authorization": f"Bearer {KEYS[key]['token']}"}
    answer = await here.site.client.post(path, json={"model": "keepsaid", **body}, headers=head)
    assert answer.status_code == 400, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    return error


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (CHAT, {}, "messages"),
        (CHAT, {"messages": []}, "messages"),
        (CHAT, {"messages": [{"role": "robot", "content": "Hi"}]}, "messages[0].role"),
        (CHAT, {"messages": [user("Hi"), {"role": "assistant", "content": "Yes?"}]}, "messages"),
        (CHAT, {"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        (CHAT, {"messages": [{"role": "user", "content": [AUDIO]}]}, "messages[0].content[0]"),
        (CHAT, {"messages": [user("Hi")], "stream": 1}, "stream"),
        (CHAT, {"messages": [user("Hi")], "stream_options": [1]}, "stream_options"),
        (CHAT, {"messages": [user("Hi")], "max_tokens": -1}, "max_tokens"),
        (CHAT, {"messages": [user("Hi")], "tools": "all"}, "tools"),
        (CHAT, {"messages": [user("Hi")], "tools": [{"type": "function"}]}, "tools[0].name"),
        (CHAT, {"messages": [user("Hi"), RESULT]}, "tool_call_id"),
        (CHAT, {"messages": [user("Hi"), {"role": "function", "name": "f", "content": "1"}]}, "tool_call_id"),
        (RESPONSE, {"input": None}, "input"),
        (RESPONSE, {"input": [{"type": "function_call_output", "call_id": 5, "output": "1"}]}, "call_id"),
        (RESPONSE, {"input": "Hi", "instructions": 5}, "instructions"),
        (RESPONSE, {"input": "Hi", "conversation": 5}, "conversation"),
        (RESPONSE, {"input": "Hi", "conversation": "x" * 300}, "conversation"),
        (RESPONSE, {"input": "Hi", "previous_response_id": 5}, "previous_response_id"),
        (RESPONSE, {"input": "Hi", "previous_response_id": "resp_1", "conversation": "c"}, "conversation"),
    ],
)
async def test_a_wrong_parameter_is_named(here: Agent, path: str, body: dict[str, Any], param: str) -> None:
    before = len(await here.stored())
    assert (await refused(here, path, body))["param"] == param
    assert len(await here.stored()) == before


async def test_a_person_that_is_no_text_is_refused_and_not_taken_for_the_program(here: Agent) -> None:
    for name in ("user", "safety_identifier"):
        error = await refused(here, CHAT, {"messages": [user("Who am I?")], name: ["zoe"]}, "webui")
        assert error["param"] == name


async def test_a_response_that_a_caller_does_not_have_is_one_error_whatever_it_is(here: Agent) -> None:
    async with here.client() as client:
        mine = await client.responses.create(model="keepsaid", input="Begin", conversation="kept")
        gone = await client.responses.create(model="keepsaid", input="Begin", conversation="gone")
        await client.responses.delete(gone.id)
    for key, earlier in (("bob", mine.id), ("ann", gone.id), ("ann", "resp_nonsense"), ("ann", f"resp_{'9' * 400}")):
        error = await refused(here, RESPONSE, {"input": "Go on", "previous_response_id": earlier}, key)
        assert (error["code"], error["param"]) == ("previous_response_not_found", "previous_response_id")


async def test_with_the_tool_choice_none_no_function_is_called(here: Agent) -> None:
    async with here.client() as client:
        create: Any = client.chat.completions.create
        called = await create(model="keepsaid", messages=[user("Light, please")], tools=[LIGHTS], tool_choice="auto")
        assert called.choices[0].finish_reason == "tool_calls"
        said = await create(model="keepsaid", messages=[user("Talk, please")], tools=[LIGHTS], tool_choice="none")
        assert said.choices[0].message.content == "No function is there."


async def test_a_memory_proxy_is_named_as_such_where_it_does_not_answer(tmp_path: Path) -> None:
    async with proxy_site(tmp_path) as one:
        head = {"Authorization": f"Bearer {token_of('ann')}"}
        body = {"model": "memory/both", "input": "Hi"}
        answer = await one.here.client.post(RESPONSE, json=body, headers=head)
        assert answer.status_code == 400
        assert "memory proxy" in answer.json()["error"]["message"]
        unknown = await one.here.client.post(RESPONSE, json={**body, "model": "memory/own"}, headers=head)
        assert unknown.status_code == 404


async def test_a_client_is_not_kept_waiting_for_the_end_of_an_outage(tmp_path: Path) -> None:
    """The message is stored once, and waits; the stream says so too."""
    script = Script(default=Refuse(429, "rate_limit_exceeded", retry_after=600))
    async with agent(tmp_path, script) as here, here.client() as client:
        create: Any = client.chat.completions.create
        for _ in range(2):
            with pytest.raises(openai.InternalServerError, match="asked again later") as failed:
                await create(model="keepsaid", messages=[user("Are you there?")])
            assert failed.value.status_code == 503
            assert failed.value.response.headers["retry-after"] == "5"
        with pytest.raises(openai.APIError, match="asked again later"):
            async for _ in await create(model="keepsaid", messages=[user("Are you there?")], stream=True):
                pass
        assert await here.stored() == ["Are you there?"]


async def test_a_client_is_not_kept_waiting_in_a_conversation_that_is_paused(tmp_path: Path) -> None:
    async with agent(tmp_path) as here, here.client() as client:
        await here.say([user("/pause")], "room")
        create: Any = client.chat.completions.create
        head = {"X-Keepsaid-Conversation": "room"}
        with pytest.raises(openai.InternalServerError, match="/resume"):
            await create(model="keepsaid", messages=[user("Go on")], extra_headers=head)


async def test_addresses_and_methods_that_are_not_served_are_refused_in_the_form_of_openai(here: Agent) -> None:
    head = {"Authorization": f"Bearer {KEYS['ann']['token']}"}
    for path in ("/v1/completions", "/v1/chat/completions/", "/v1/audio/speech", "/v1/responses/resp_1/cancel"):
        answer = await here.site.client.post(path, json={"model": "keepsaid"}, headers=head)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "KS-NONE"), path
    wrong = await here.site.client.put("/v1/chat/completions", json={"model": "keepsaid"}, headers=head)
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "KS-HTTP-METHOD")
    assert wrong.headers["allow"] == "POST"
    assert (await here.site.client.get("/v1/nothing")).headers["content-type"] == "application/problem+json"


async def test_a_compressed_body_is_refused_as_such(here: Agent) -> None:
    head = {"Authorization": f"Bearer {KEYS['ann']['token']}", "Content-Encoding": "gzip"}
    body = gzip.compress(json.dumps({"model": "keepsaid", "messages": [user("Hi")]}).encode())
    answer = await here.site.client.post(CHAT, content=body, headers=head)
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "KS-HTTP-ENCODING")
    assert "gzip" in answer.json()["error"]["message"]
    other = await here.site.client.post("/v1/agent/recall", content=body, headers=head)
    assert (other.status_code, other.json()["code"]) == (415, "KS-HTTP-ENCODING")


async def test_a_conflict_names_the_key_that_the_client_sent(here: Agent) -> None:
    async with here.client() as client:
        create: Any = client.chat.completions.create
        head = {"Idempotency-Key": "order-17"}
        await create(model="keepsaid", messages=[user("Order tea")], extra_headers=head)
        with pytest.raises(openai.ConflictError, match="order-17"):
            await create(model="keepsaid", messages=[user("Order coffee")], extra_headers=head)


async def test_a_caller_without_a_right_token_reads_how_to_come_in(here: Agent) -> None:
    for path in ("/v1/models", "/v1/memories", "/v1/status"):
        for head in ({}, {"Authorization": "Bearer wrong"}):
            answer = await here.site.client.get(path, headers=head)
            assert (answer.status_code, answer.headers.get("www-authenticate")) == (401, "Bearer"), path
