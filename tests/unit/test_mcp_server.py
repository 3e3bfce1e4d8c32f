"""The MCP server: what it offers, whom it lets in, and that an address binds a client to one conversation."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
import pytest_asyncio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from tests.unit.http_cast import Site, refused, site

from keepsaid.interfaces.mcp.server import server_of
from keepsaid.interfaces.mcp.tool import ANSWER_BYTES_MAX, McpTool
from keepsaid.interfaces.mcp.tools import CORE, FULL
from keepsaid.text.tokens import estimate_tokens

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENS = {"ann": "a" * 40, "bob": "b" * 40, "talker": "c" * 40}
KEYS = {
    "ann": {"token": TOKENS["ann"]},
    "bob": {"token": TOKENS["bob"]},
    "talker": {"token": TOKENS["talker"], "scopes": ["talk"]},
}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    server = {"port": 0, "mcp_tools": "full"}
    async with site(tmp_path_factory.mktemp("home"), answering=False, keys=KEYS, server=server) as running:
        yield running


@asynccontextmanager
async def connected(
    here: Site, name: str, path: str = "/mcp", mode: Literal["auto", "legacy"] = "auto"
) -> AsyncIterator[Client]:
    head = {"Authorization": f"Bearer {TOKENS[name]}"}
    async with (
        httpx2.AsyncClient(headers=head, trust_env=False) as http,
        Client(streamable_http_client(f"{here.address.url}{path}", http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.mark.parametrize("tools", [CORE, FULL], ids=["core", "full"])
async def test_tools_have_short_plain_names_and_words_and_schemas_in_a_fixed_order(tools: tuple[McpTool, ...]) -> None:
    assert len({tool.name for tool in tools}) == len(tools)
    for tool in tools:
        assert re.fullmatch(r"[a-z_]{1,64}", tool.name)
        assert 0 < len(tool.says) <= 400
        assert tool.takes["type"] == tool.gives["type"] == "object"
        assert tool.takes["additionalProperties"] is False
        assert set(tool.takes.get("required", ())) <= set(tool.takes["properties"])
    assert not [tool.name for tool in tools if re.search("clear|delete_all|reset", tool.name)]
    assert [tool.name for tool in tools if tool.hint == "destructive"] == ["memory_correct", "memory_forget"]


async def test_the_list_of_core_costs_a_client_few_tokens() -> None:
    server = server_of(CORE, lambda _: pytest.fail("nobody is asked for a list"), "1")
    async with Client(server) as client:
        listed = await client.list_tools()
    written = json.dumps([tool.model_dump(by_alias=True, exclude_none=True) for tool in listed.tools])
    assert [tool.name for tool in listed.tools] == [tool.name for tool in CORE]
    assert estimate_tokens(written) <= 1_500


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_clients_of_both_eras_of_the_protocol_are_served(one: Site, mode: Literal["auto", "legacy"]) -> None:
    async with connected(one, "ann", mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [tool.name for tool in FULL]
        added = await client.call_tool("memory_add", {"text": f"The door is painted for {mode}", "key": mode})
        found = await client.call_tool("memory_search", {"query": f"door painted {mode}"})
    assert (added.structured_content or {})["state"] == "stored"
    assert f"The door is painted for {mode}" in str(found.structured_content)


async def test_who_has_no_key_or_the_wrong_one_comes_from_a_page_or_may_only_talk_is_refused(one: Site) -> None:
    def asked(token: str, **headers: str) -> Any:
        return one.client.post("/mcp", json=PING, headers={"Authorization": f"Bearer {token}", **headers})

    refused(await one.client.post("/mcp", json=PING), 401)
    refused(await asked("wrong"), 401)
    refused(await asked(TOKENS["ann"], Origin="http://evil.example"), 403)
    assert (await asked(TOKENS["talker"])).status_code == 200


async def test_who_may_only_talk_is_let_in_where_a_tool_is_for_them(one: Site, tmp_path: Path) -> None:
    async with connected(one, "talker") as client:
        assert not (await client.call_tool("inbox_put", {"text": "hello", "conversation": "hall"})).is_error
        told = await client.call_tool("memory_search", {"query": "hello"})
    assert told.is_error
    assert "needs the scope read" in str(told.content[0])
    async with site(tmp_path, answering=False, keys=KEYS) as core:
        head = {"Authorization": f"Bearer {TOKENS['talker']}"}
        assert "read or write" in refused(await core.client.post("/mcp", json=PING, headers=head), 403)["title"]


async def test_metadata_of_oauth_is_there_where_an_issuer_is_set(one: Site, tmp_path: Path) -> None:
    place = "/.well-known/oauth-protected-resource"
    refused(await one.client.get(place), 404)
    assert (await one.client.post("/mcp", json=PING)).headers["www-authenticate"] == "Bearer"
    server = {"port": 0, "mcp_issuer": "https://login.example", "public_url": "https://agent.example/"}
    async with site(tmp_path, answering=False, keys=KEYS, server=server) as here:
        for path in (place, f"{place}/mcp"):
            told = (await here.client.get(path)).json()
            assert told["resource"] == "https://agent.example/mcp"
            assert told["authorization_servers"] == ["https://login.example"]
        challenge = (await here.client.post("/mcp", json=PING)).headers["www-authenticate"]
    assert challenge == f'Bearer resource_metadata="https://agent.example{place}"'


async def test_an_address_binds_a_client_to_its_conversation(one: Site) -> None:
    """Whatever its arguments say."""
    said = {"conversation": "other", "messages": [{"role": "user", "text": "The otters live in the weir."}]}
    async with connected(one, "ann", "/mcp/c/river%20walk") as client:
        assert not (await client.call_tool("record", said)).is_error
        told = (await client.call_tool("lane_get", {"conversation": "other"})).structured_content
    assert told is not None
    assert [one["text"] for one in told["messages"]] == ["The otters live in the weir."]
    async with connected(one, "ann") as client:
        other = (await client.call_tool("lane_get", {"conversation": "other"})).structured_content
        walk = (await client.call_tool("lane_get", {"conversation": "river walk"})).structured_content
    assert other == {"messages": [], "after": None}
    assert walk is not None
    assert len(walk["messages"]) == 1


async def test_resources_and_prompts(one: Site) -> None:
    async with connected(one, "ann") as client:
        added = (await client.call_tool("memory_add", {"text": "The attic window sticks"})).structured_content or {}
        templates = (await client.list_resource_templates()).resource_templates
        read = await client.read_resource(f"keepsaid://memory/{added['id']}")
        prompts = (await client.list_prompts()).prompts
        asked = await client.get_prompt("what_do_you_know_about", {"subject": "the attic"})
    assert [one.uri_template for one in templates] == [
        "keepsaid://memory/{id}",
        "keepsaid://lane/{conversation}",
        "keepsaid://identity/{file}",
    ]
    assert "The attic window sticks" in str(read.contents[0])
    assert [one.name for one in prompts] == ["catch_up", "what_do_you_know_about"]
    assert "'the attic'" in str(asked.messages[0].content)
    for uri in (f"keepsaid://memory/{added['id']}", "keepsaid://identity/SOUL.md", "file:///etc/passwd"):
        with pytest.raises(MCPError):
            await _read(one, "bob", uri)


async def _read(here: Site, name: str, uri: str) -> object:
    failed: MCPError | None = None
    async with connected(here, name) as client:
        try:
            return await client.read_resource(uri)
        except MCPError as error:  # a group would hold what is raised within
            failed = error
    raise failed


async def test_an_answer_is_bounded_and_says_what_is_left(one: Site) -> None:
    async with connected(one, "bob") as client:
        ids = []
        for n in range(6):
            long = {"text": f"chapter {n} " + f"of the very long book number {n} " * 300}
            ids.append(((await client.call_tool("memory_add", long)).structured_content or {})["id"])
        answer = await client.call_tool("memory_get", {"ids": ids})
    told = answer.structured_content or {}
    assert len(str(getattr(answer.content[0], "text", "")).encode()) <= ANSWER_BYTES_MAX
    assert [one["memory"]["id"] for one in told["memories"]] + told["rest"] == ids
    assert told["rest"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("memory_search", {}),
        ("memory_search", {"query": "x", "sender": "ann"}),
        ("memory_search", {"query": ["x"]}),
        ("memory_search", {"query": "x", "bodies": "yes"}),
        ("memory_get", {"ids": "mem_1"}),
        ("memory_forget", {"ids": []}),
        ("context_build", {"message": 7, "conversation": "x"}),
        ("memory_explain", {"id": ["mem_1"]}),
    ],
)
async def test_a_wrong_call_is_an_error_that_the_model_reads(one: Site, name: str, arguments: dict[str, Any]) -> None:
    async with connected(one, "bob") as client:
        answer = await client.call_tool(name, arguments)
    assert answer.is_error
    text = str(getattr(answer.content[0], "text", ""))
    assert text
    assert "Traceback" not in text


async def test_a_tool_that_is_none_is_an_error_of_the_protocol(one: Site) -> None:
    failed: MCPError | None = None
    async with connected(one, "bob") as client:
        try:
            await client.call_tool("clear_all", {})
        except MCPError as error:
            failed = error
    assert failed is not None
    assert "there is no tool 'clear_all'" in failed.message
