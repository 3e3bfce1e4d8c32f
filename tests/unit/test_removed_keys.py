"""A stream that a key opened ends, with an error in the form of its protocol, when the key leaves the settings."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import openai
import pytest
import yaml
from tests.unit.http_cast import BASE
from tests.unit.openai_cast import proxy_site
from tests.unit.test_openai_agent import KEYS, Agent, agent, user
from tests.waits import HANG_S

from keepsaid.testing.model_script import Script, Stall

STALLED = Stall("The sail is torn and has to be mended today.", after_chars=12)
"""An answer of which twelve characters come, and no more."""


def keep(home: Any, **keys: Any) -> None:
    """Write a config file with these keys alone, as editors do."""
    home.config.mkdir(parents=True, exist_ok=True)
    new = home.config_file.with_suffix(".new")
    new.write_text(yaml.safe_dump({**BASE, "keys": keys}), "utf-8")
    new.replace(home.config_file)


def stalled(root: Path) -> Any:
    """An instance whose model stops in mid-answer."""
    return agent(root, lambda _: STALLED)


async def test_a_chat_completion_that_streams_ends_with_an_error(tmp_path: Path) -> None:
    async with stalled(tmp_path) as here, here.client() as client, asyncio.timeout(HANG_S):
        stream = await client.chat.completions.create(model="keepsaid", messages=[user("Which sail?")], stream=True)
        await anext(stream)
        keep(here.site.home, bob=KEYS["bob"])
        with pytest.raises(openai.APIError) as refused:
            await rest_of(stream)
        assert refused.value.code == "invalid_api_key"


async def rest_of(stream: Any) -> list[Any]:
    """All that a stream holds yet."""
    return [one async for one in stream]


async def test_a_key_that_changes_its_scopes_ends_its_stream_and_another_key_changes_nothing(tmp_path: Path) -> None:
    async with stalled(tmp_path) as here, here.client() as client, asyncio.timeout(HANG_S):
        stream = await client.responses.create(model="keepsaid", input="Which sail?", stream=True)
        await anext(stream)
        keep(here.site.home, ann=KEYS["ann"])
        while (await status(here, "bob")) != 401:
            pass
        keep(here.site.home, ann={**KEYS["ann"], "scopes": ["read"]})
        last = (await rest_of(stream))[-1]
        assert last.type == "response.failed"
        assert "scope talk" in str(last.response.error)


async def status(here: Agent, key: str) -> int:
    """How a key is answered that lists the models."""
    head = {"Authorization": f"Bearer {KEYS[key]['token']}"}
    return (await here.site.client.get("/v1/models", headers=head)).status_code


async def test_a_call_that_waits_for_its_answer_is_refused(tmp_path: Path) -> None:
    async with stalled(tmp_path) as here, asyncio.timeout(HANG_S):
        asking = asyncio.create_task(here.say([user("Which sail?")]))
        while not here.model.requests:
            assert await status(here, "ann") == 200
        keep(here.site.home, bob=KEYS["bob"])
        with pytest.raises(openai.AuthenticationError):
            await asking


async def test_the_events_of_a_message_end_with_a_refusal(tmp_path: Path) -> None:
    async with stalled(tmp_path) as here, asyncio.timeout(HANG_S):
        head = {"Authorization": f"Bearer {KEYS['ann']['token']}"}
        said = {"text": "Which sail?", "conversation": "room"}
        put = (await here.site.client.post("/v1/messages", json=said, headers=head)).json()
        path = f"/v1/messages/{put['id']}/events"
        async with here.site.client.stream("GET", path, headers=head) as stream:
            keep(here.site.home, bob=KEYS["bob"])
            lines = [line async for line in stream.aiter_lines() if line]
        assert lines[-2] == "event: refused"
        assert json.loads(lines[-1].removeprefix("data: "))["code"] == "KS-HTTP-AUTH"


async def test_a_stream_through_the_memory_proxy_ends_with_an_error(tmp_path: Path) -> None:
    async with proxy_site(tmp_path) as one, one.client() as client, asyncio.timeout(HANG_S):
        one.provider.script = Script(STALLED)
        body: Any = {"model": "memory/both", "messages": [user("Which sail is torn?")], "stream": True}
        stream = await client.chat.completions.create(**body, extra_headers={"X-Keepsaid-Conversation": "b"})
        await anext(stream)
        keep(one.here.home, bob={"token": "b" * 40})
        with pytest.raises(openai.APIError) as refused:
            await rest_of(stream)
        assert refused.value.code == "invalid_api_key"
        keep(one.here.home, ann={"token": "a" * 40})
        while (await one.post({"model": "memory/none", "messages": []})).status_code == 401:
            pass
        assert await one.recorded("b") == [("user", "Which sail is torn?")]


async def test_a_stream_of_changes_over_mcp_ends_with_an_error(tmp_path: Path) -> None:
    head = {
        "Authorization": f"Bearer {KEYS['ann']['token']}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "subscriptions/listen",
    }
    about = {"protocolVersion": "2026-07-28", "clientCapabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in about.items()}
    params = {"_meta": meta, "notifications": {"resourcesListChanged": True}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    async with (
        stalled(tmp_path) as here,
        asyncio.timeout(HANG_S),
        here.site.client.stream("POST", "/mcp", json=body, headers=head) as stream,
    ):
        keep(here.site.home, bob=KEYS["bob"])
        told = [json.loads(line[6:]) async for line in stream.aiter_lines() if line.startswith("data: ")]
    assert told[0]["method"] == "notifications/subscriptions/acknowledged"
    assert "this route needs a key" in told[-1]["error"]["message"]
