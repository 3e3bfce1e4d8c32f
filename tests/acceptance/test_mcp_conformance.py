"""The conformance suite of the Model Context Protocol, run against the MCP server of a running instance.

`make mcp-conformance` installs it (npm) and runs this; elsewhere it is skipped. Its client sends no token, so a proxy
on loopback adds that of a key. Many scenarios call tools, prompts and resources that only the suite's own server has.
Those, and others that do not apply, are listed here, each with its reason.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from tests.unit.http_cast import site

HERE = Path(sys.prefix) / "mcp-conformance" / "node_modules"
NODE, SUITE = HERE / "node" / "bin" / "node", HERE / ".bin" / "conformance"
KEY = {"token": "c" * 40, "owner": True, "scopes": ["talk", "read", "write", "operate"]}

_STAMP = re.compile(r"-\d{4}-\d{2}-\d{2}T[-\d]+Z$")
_FIXTURE = "it calls a tool, prompt or resource of the suite's own server"
_NAMES = {
    **dict.fromkeys(("tools-call-image", "tools-call-audio", "tools-call-embedded-resource"), _FIXTURE),
    **dict.fromkeys(("tools-call-mixed-content", "tools-call-with-progress", "tools-call-elicitation"), _FIXTURE),
    **dict.fromkeys(("tools-call-simple-text", "tools-call-error", "json-schema-2020-12"), _FIXTURE),
    **dict.fromkeys(("elicitation-sep1034-defaults", "elicitation-sep1330-enums"), _FIXTURE),
    **dict.fromkeys(("resources-read-text", "resources-read-binary", "resources-templates-read"), _FIXTURE),
    **dict.fromkeys(("prompts-get-simple", "prompts-get-with-args", "prompts-get-with-image"), _FIXTURE),
    **dict.fromkeys(("prompts-get-embedded-resource", "http-custom-header-server-validation"), _FIXTURE),
}
NOT_OFFERED: Mapping[str, str] = {
    **_NAMES,
    "completion-complete": "completions are not offered",
    "logging-set-level": "logging over the protocol is not offered; the revision 2026-07-28 deprecates it",
    "tools-call-with-logging": "logging over the protocol is not offered",
    "tools-call-sampling": "nothing is sampled by the client's model",
    "resources-subscribe": "single resources are not subscribed to; the revision 2026-07-28 removes it",
    "resources-unsubscribe": "single resources are not subscribed to",
}
"""Scenarios that do not apply, by their names."""

PREFIXES = {"tasks-": "tasks of the protocol are an extension that is not offered", "input-required-": _FIXTURE}
"""Beginnings of names of further ones."""

UNTESTABLE = "Not testable"
"""How a check begins that needed a tool of the suite's own server."""


@asynccontextmanager
async def with_key(target: str) -> AsyncIterator[str]:
    """A proxy on loopback that adds a key's token to what is sent to it by its own address; yields that address."""
    async with httpx2.AsyncClient(base_url=target, trust_env=False, timeout=60) as client:

        async def forward(request: Request) -> Response:
            dropped = {"authorization", "content-length", "transfer-encoding"}
            headers = {name: value for name, value in request.headers.items() if name not in dropped}
            if headers.get("host", "").startswith(("127.0.0.1", "localhost")):
                headers["authorization"] = f"Bearer {KEY['token']}"
            sent = client.build_request(request.method, request.url.path, headers=headers, content=await request.body())
            got = await client.send(sent, stream=True)
            kept = {name: value for name, value in got.headers.items() if name not in dropped}
            return StreamingResponse(got.aiter_raw(), got.status_code, kept, background=BackgroundTask(got.aclose))

        app = Starlette(routes=[Route("/{path:path}", forward, methods=["GET", "POST", "DELETE"])])
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
        ready = asyncio.Event()
        serving = asyncio.create_task(_serve(server, ready))
        await ready.wait()
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            await serving


async def _serve(server: uvicorn.Server, ready: asyncio.Event) -> None:
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup()
    ready.set()
    await server.main_loop()
    await server.shutdown()


def failures(folder: Path) -> dict[str, list[str]]:
    """The checks that failed, by scenario."""
    found: dict[str, list[str]] = {}
    for file in sorted(folder.glob("server-*/checks.json")):
        scenario = _STAMP.sub("", file.parent.name).removeprefix("server-")
        checks: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
        found[scenario] = [
            f"{one['id']}: {one.get('errorMessage')}"
            for one in checks
            if one["status"] == "FAILURE" and not str(one.get("errorMessage")).startswith(UNTESTABLE)
        ]
    return found


@pytest.mark.skipif(not SUITE.exists(), reason="the conformance suite is not installed: make mcp-conformance")
async def test_the_suite_finds_nothing_wrong_in_what_is_offered(tmp_path: Path) -> None:
    out = tmp_path / "results"
    async with (
        site(tmp_path, answering=False, keys={"suite": KEY}, server={"port": 0, "mcp_tools": "full"}) as here,
        with_key(here.address.url) as url,
    ):
        command = (SUITE, "server", "--url", f"{url}/mcp", "--suite", "all", "--output-dir", out)
        pipe = asyncio.subprocess.PIPE
        running = await asyncio.create_subprocess_exec(NODE, *map(str, command), stdout=pipe, stderr=pipe)
        told, wrong = await running.communicate()
    found = failures(out)
    assert len(found) > 40, (told + wrong).decode()
    applying = {name: wrong for name, wrong in found.items() if not name.startswith(tuple(PREFIXES))}
    assert {name: wrong for name, wrong in applying.items() if wrong and name not in NOT_OFFERED} == {}
    for name in ("server-initialize", "server-stateless", "tools-list", "caching", "http-header-validation"):
        assert found[name] == []
