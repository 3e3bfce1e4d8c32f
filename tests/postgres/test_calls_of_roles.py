"""Calls of programs where processes share a database: a worker takes none in, and any other waits for its answers."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from tests.postgres.server import empty
from tests.postgres.test_processes import Fleet

from keepsaid.adapters.postgres.connection import PostgresPlace
from keepsaid.testing.model_script import Call, ChatRequest, Reaction, Say
from keepsaid.testing.model_server import ThreadedModelServer

TOKEN = "k" * 40
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
LIGHTS: dict[str, Any] = {
    "type": "function",
    "function": {"name": "set_light", "parameters": {"type": "object", "properties": {"room": {"type": "string"}}}},
}
SAID = {"role": "user", "content": "Switch on the light in the hall"}
RECORDED = {"conversation": "c1", "messages": [{"role": "user", "text": "My boat is called Seal"}]}


def switching(request: ChatRequest) -> Reaction:
    """A model that switches a light before it answers."""
    results = [one for one in request.messages if one["role"] == "tool"]
    return Say(f"The tool said: {results[-1]['content']}") if results else Call("set_light", {"room": "hall"})


def settings(model_url: str) -> str:
    """A scripted model, and a key."""
    models = {"chat": "openai/scripted", "base_url": model_url, "api_key": "none"}
    scopes = ["talk", "read", "write", "operate"]
    return json.dumps({"models": models, "keys": {"app": {"token": TOKEN, "scopes": scopes}}})


def client_of(url: str) -> openai.OpenAI:
    http = openai.DefaultHttpxClient(trust_env=False)
    return openai.OpenAI(base_url=f"{url}/v1", api_key=TOKEN, max_retries=0, http_client=http)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/chat/completions", {"model": "keepsaid", "messages": [SAID]}, 404),
        ("/v1/responses", {"model": "keepsaid", "input": "hello"}, 404),
        ("/v1/hooks/claude-code", {"session_id": "s1", "hook_event_name": "Stop"}, 404),
        ("/v1/lanes:record", RECORDED, 422),
        ("/v1/agent/record", RECORDED, 422),
        ("/v1/agent/put", {"conversation": "c1", "text": "hello"}, 422),
    ],
)
def test_a_worker_takes_no_call_in(calls_of_worker: Fleet, path: str, body: dict[str, Any], status: int) -> None:
    refused = httpx2.post(calls_of_worker.running[0].url + path, json=body, headers=HEADERS, trust_env=False)
    assert (refused.status_code, "is a worker" in refused.text) == (status, True)


@pytest.fixture(scope="module")
def calls_of_worker(place: PostgresPlace, tmp_path_factory: pytest.TempPathFactory) -> Any:
    empty(place)
    config = settings("http://127.0.0.1:9")
    with Fleet(place, tmp_path_factory.mktemp("worker"), "worker", config=config) as fleet:
        yield fleet


def test_a_chat_is_answered_where_its_client_waits_whichever_process_runs_its_turn(
    place: PostgresPlace, tmp_path: Path
) -> None:
    """The worker runs the turn. One process hands the client the call of a tool, another one takes in its result."""
    empty(place)
    with (
        ThreadedModelServer(switching) as model,
        Fleet(place, tmp_path, "door", "door", "worker", config=settings(model.url)) as fleet,
        ExitStack() as closing,
    ):
        one, two = (closing.enter_context(client_of(running.url)) for running in fleet.running[:2])
        create: Any = one.chat.completions.create
        first = create(model="keepsaid", messages=[SAID], tools=[LIGHTS])
        [call] = first.choices[0].message.tool_calls
        called = {"role": "assistant", "content": None, "tool_calls": [call.model_dump()]}
        result = {"role": "tool", "tool_call_id": call.id, "content": "it is on"}
        more: Any = two.chat.completions.create
        chunks = list(more(model="keepsaid", messages=[SAID, called, result], tools=[LIGHTS], stream=True))
        answer = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        assert answer == "The tool said: it is on"
        again = create(model="keepsaid", messages=[SAID, called, result], tools=[LIGHTS])
        assert again.choices[0].message.content == answer
        assert len(model.requests) == 2
        recorded = httpx2.post(
            f"{fleet.running[0].url}/v1/lanes:record", json=RECORDED, headers=HEADERS, trust_env=False
        )
        assert recorded.status_code == 201
