"""Tools of MCP servers: what may be used is offered under the server's name; what goes wrong stays with the call."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import pytest
import uvicorn
from pydantic import ValidationError
from tests.unit.mcp_server import server as desk
from tests.unit.test_reminding import config as settings
from tests.unit.test_reminding import say

from keepsaid.adapters.system.machine import SystemClock
from keepsaid.adapters.tools.mcp import McpServer, ServerTroubles
from keepsaid.app.channels import accept, query_server
from keepsaid.app.opening import opened
from keepsaid.config import Home
from keepsaid.config.services import McpServerConfig, ToolsConfig
from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import ToolCall
from keepsaid.domain.turn import ModelAnswer, ToolClass
from keepsaid.domain.turn_files import WithFiles
from keepsaid.errors import ToolError
from keepsaid.ports.model import Delta, ModelRequest, Served, Tool
from keepsaid.testing.clock import VirtualClock

COMMAND = (sys.executable, str(Path(__file__).with_name("mcp_server.py")))
_WITHIN_S = 240.0


def config(**more: Any) -> McpServerConfig:
    return McpServerConfig.model_validate({"command": COMMAND, "allow": ["*"], **more})


class All:
    """Accepts every text."""

    def stamp(self) -> object:
        """It never changes."""
        return None

    def offered(self, server: str, served: Sequence[Served]) -> Sequence[Served]:
        """All that are allowed."""
        return [one for one in served if one.allowed]


@asynccontextmanager
async def kept(server: McpServer) -> AsyncIterator[dict[str, Tool]]:
    """A server that is kept, from the moment it is there; its tools by name."""

    async def keep() -> None:
        while True:
            await server.keep()

    async with asyncio.timeout(_WITHIN_S):
        keeping = asyncio.create_task(keep())
        try:
            await server.there.wait()
            yield {tool.name: tool for tool in server.tools()}
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping


async def test_what_is_allowed_is_offered_by_the_name_of_its_server() -> None:
    given = config(
        allow=["a*", "t?ld", "refuse", "long"],
        kinds={"add": "pure"},
        env={"DESK_KEY": "k-1"},
        chars_max=100,
        serves_each={"re*": "anyone", "t*": "known"},
        output="known",
    )
    server = McpServer("desk", given, SystemClock(), All())
    async with kept(server) as tools:
        assert list(tools) == ["desk__add", "desk__long", "desk__refuse", "desk__told"]
        add = tools["desk__add"]
        assert (add.kind, add.description, add.chars_max) == (ToolClass.PURE, "Add two numbers.", 100)
        assert add.schema["required"] == ["a", "b"]
        assert tools["desk__told"].kind is ToolClass.UNSAFE
        assert [tools[f"desk__{name}"].needs for name in ("add", "long", "refuse", "told")] == [
            Trust.EXTERNAL,
            Trust.OWNER,
            Trust.EXTERNAL,
            Trust.KNOWN,
        ]
        assert {tool.output for tool in tools.values()} == {Trust.KNOWN}
        assert await add.run({"a": 2, "b": 40}) == "42"
        assert await tools["desk__told"].run({"name": "DESK_KEY"}) == "k-1"
        with pytest.raises(ToolError, match="refuse"):
            await tools["desk__refuse"].run({})
        with pytest.raises(ToolError):
            await add.run({"a": "two"})
        assert await add.run({"a": 1, "b": 1}) == "2"
    assert server.tools() == ()


async def test_it_is_told_nothing_of_our_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPSAID_OF_OURS", "secret")
    server = McpServer("desk", config(), SystemClock(), All())
    async with kept(server) as tools:
        assert await tools["desk__told"].run({"name": "KEEPSAID_OF_OURS"}) == "nothing"


async def test_one_that_dies_is_started_again() -> None:
    server = McpServer("desk", config(), SystemClock(), All())
    async with kept(server) as tools:
        with pytest.raises(ToolError):
            await tools["desk__die"].run({})
        with pytest.raises(ToolError, match="desk cannot be reached now"):
            await tools["desk__add"].run({"a": 1, "b": 1})
        await server.there.wait()
        [add] = [tool for tool in server.tools() if tool.name == "desk__add"]
        assert await add.run({"a": 1, "b": 1}) == "2"


async def test_over_http_with_a_header() -> None:
    seen: list[str] = []
    app = desk.streamable_http_app()

    async def listening(scope: Any, receive: Any, send: Any) -> None:
        seen.extend(value.decode() for name, value in scope.get("headers", ()) if name == b"authorization")
        await app(scope, receive, send)

    web = uvicorn.Server(uvicorn.Config(listening, log_level="error"))
    door = socket.create_server(("127.0.0.1", 0))
    port = door.getsockname()[1]
    serving = asyncio.create_task(web.serve([door]))
    try:
        given = McpServerConfig.model_validate(
            {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"Authorization": "Bearer k-2"}, "allow": ["add"]}
        )
        server = McpServer("far", given, SystemClock(), All())
        async with kept(server) as tools:
            assert await tools["far__add"].run({"a": 2, "b": 2}) == "4"
        assert {one.name for one in await server.served() if one.allowed} == {"add"}
        assert set(seen) == {"Bearer k-2"}
    finally:
        web.should_exit = True
        await serving


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"command": ["no-such-program-at-all"]}, "No such file"),
        ({"url": "http://127.0.0.1:9/mcp"}, "connect"),
        ({"command": [sys.executable, "-c", "print('hello')"]}, "connection closed"),
    ],
)
async def test_one_that_cannot_be_reached_says_why_and_is_tried_later(
    given: dict[str, Any], why: str, tmp_path: Path
) -> None:
    troubles = ServerTroubles(tmp_path / "servers.json")
    server = McpServer("gone", McpServerConfig.model_validate(given), clock := VirtualClock(), All(), troubles)
    waits = []
    for _ in range(3):
        again = await server.keep()
        assert again is not None
        waits.append(again - clock.due_ms())
    assert waits == [1_000, 2_000, 4_000]
    assert why.lower() in server.trouble.lower()
    assert troubles.read() == {"gone": server.trouble}
    assert server.tools() == ()
    with pytest.raises(ToolError):
        await server.served()


async def test_one_that_is_there_again_has_no_trouble_any_more(tmp_path: Path) -> None:
    troubles = ServerTroubles(tmp_path / "servers.json")
    for name in ("desk", "other"):
        troubles.note(name, "it did not answer in time")
    async with kept(McpServer("desk", config(), SystemClock(), All(), troubles)):
        assert "desk" not in troubles.read()
    assert troubles.read() == {"other": "it did not answer in time"}
    (tmp_path / "servers.json").write_text("[]", "utf-8")
    assert troubles.read() == {}


@pytest.mark.parametrize("given", [{}, {"command": ["a"], "url": "http://b"}])
def test_a_server_is_reached_in_one_way(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="either a command or a url"):
        McpServerConfig.model_validate(given)


@pytest.mark.parametrize("name", ["memory_search", "a__b", "A", "-a", "x" * 30])
def test_a_name_cannot_pose_as_one_of_ours(name: str) -> None:
    with pytest.raises(ValidationError):
        ToolsConfig.model_validate({"mcp": {name: {"url": "http://b"}}})


@dataclass
class Calling:
    """Calls a tool once it is offered, and says what it got."""

    offered: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    name: str = "test/model"

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        if request.exchange:
            self.said.append(f"It says {request.exchange[-1].text}")
            return ModelAnswer(self.said[-1])
        self.offered = [tool.name for tool in request.tools]
        return ModelAnswer("", (ToolCall("c1", "desk__add", json.dumps({"a": 3, "b": 4})),))


async def test_a_turn_uses_it_and_what_it_brought_is_from_outside(tmp_path: Path) -> None:
    tools = {"mcp": {"desk": {"command": COMMAND, "allow": ["add"]}}}
    model, home = Calling(), Home.at(tmp_path)
    accept(home, await query_server(home, settings(tools=tools), "desk"))
    async with asyncio.timeout(_WITHIN_S), opened(home, settings(tools=tools), model) as instance:
        await instance.start()
        [server] = instance.toolbox.sources
        assert isinstance(server, McpServer)
        await server.there.wait()
        await say(instance, "add")
        assert model.said == ["It says 7"]
        assert "desk__add" in model.offered
        assert "desk__die" not in model.offered
        while await instance.recorder.catch_up():
            pass
    with apsw.Connection(str(home.store("memory.db"))) as db:
        trusts = db.execute("SELECT text, trust FROM memory ORDER BY id").fetchall()
    assert ("add", "owner") in trusts
    assert ("It says 7", "external") in trusts


async def test_pictures_and_files_come_as_files() -> None:
    """Each with its bytes, its type and a name; what cannot be read is named alone."""
    server = McpServer("desk", config(allow=["draw"]), SystemClock(), All())
    async with kept(server) as tools:
        drawn = await tools["desk__draw"].run({"pixels": 4})
        assert isinstance(drawn, WithFiles)
        assert drawn == "drawn\n[image, 10 characters, not shown]"
        assert drawn.trust is Trust.EXTERNAL
        assert [(one.name, one.kind) for one in drawn.files] == [("1.png", "image/png"), ("how to.txt", "")]
        assert [len(one) for one in drawn.files] == [12, 10]
