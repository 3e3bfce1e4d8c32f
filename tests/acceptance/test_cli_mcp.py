"""`keepsaid mcp` as an MCP client starts it: beside a running instance, and alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from tests.acceptance.program import Program

KEY = {"keys": {"claude": {"token": "k" * 40}}, "server": {"port": 0}}
SAVED = {"text": "The ladder stands behind the greenhouse"}
ASKED = {"query": "where is the ladder?"}


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A home with a key and without a model."""
    here = Program(tmp_path, {"KEEPSAID_MODELS__CHAT": "none"})
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.yaml").write_text(json.dumps(KEY), "utf-8")
    return here


async def called(program: Program, name: str, given: Mapping[str, Any], *arguments: str) -> dict[str, Any]:
    """What one call of a tool returns, by a client that starts the command for it."""
    command = ["-m", "keepsaid", "mcp", *arguments]
    server = StdioServerParameters(command=sys.executable, args=command, env=program.environment)
    async with Client(stdio_client(server)) as client:
        answer = await client.call_tool(name, dict(given))
    assert not answer.is_error, answer.content
    return dict(answer.structured_content or {})


def texts(found: Mapping[str, Any]) -> list[str]:
    return [one["text"] for one in found["memories"]]


async def test_alone_it_opens_the_home_and_leaves_what_it_saved(program: Program) -> None:
    """For the owner, and for nobody who has a key; the next one finds it, and so does the command line."""
    assert (await called(program, "memory_add", SAVED))["state"] == "stored"
    assert texts(await called(program, "memory_search", ASKED)) == [SAVED["text"]]
    assert texts(await called(program, "memory_search", ASKED, "--key", "claude")) == []
    assert SAVED["text"] in program.run("memory", "search", ASKED["query"]).out


async def test_beside_a_running_instance_it_asks_that(program: Program) -> None:
    """As the sender of a key, or as the owner; the instance is not in its way."""
    with program.serving():
        mine = {"text": "The agent keeps its notes in the annex"}
        assert (await called(program, "memory_add", mine, "--key", "claude"))["state"] == "stored"
        assert texts(await called(program, "memory_search", {"query": "notes annex"}, "--key", "claude"))
        assert texts(await called(program, "memory_search", {"query": "notes annex"})) == []
        assert (await called(program, "memory_add", SAVED))["state"] == "stored"
        assert texts(await called(program, "memory_search", ASKED, "--full")) == [SAVED["text"]]


async def test_the_owner_s_own_client_lists_tasks_and_schedules_alone_and_beside_an_instance(program: Program) -> None:
    new = {"every_s": 3600, "task": "count the pears", "name": "pears"}
    assert (await called(program, "schedule_add", new, "--full"))["state"] == "active"
    assert (await called(program, "status", {}, "--full"))["memories"]["total"] == 0
    with program.serving():
        [pears] = (await called(program, "schedule_ls", {}, "--full"))["schedules"]
        assert pears["name"] == "pears"
        assert await called(program, "task_ls", {}, "--full") == {"tasks": []}


def test_a_key_that_is_none_is_refused_in_a_sentence(program: Program) -> None:
    ran = program.run("mcp", "--key", "nobody", code=4)
    assert "there is no key 'nobody'" in ran.err
    assert ran.out == ""
