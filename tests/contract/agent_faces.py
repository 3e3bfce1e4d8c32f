"""The faces by which agents outside come: the library in this process, and a running instance asked over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.unit.http_cast import site as running_site

from keepsaid import InputError, KeepsaidError, KeyConflict
from keepsaid.domain.principal import Principal
from keepsaid.errors import LeaseLost, NotAllowed
from keepsaid.interfaces.agent_calls import CALLS, CallSite
from keepsaid.interfaces.http.agents import call_site_of
from keepsaid.interfaces.sdk.agents import AgentMemory, connect

KEYS: Mapping[str, Mapping[str, object]] = {
    "ann": {"token": "a" * 40},
    "bob": {"token": "b" * 40},
    "boss": {"token": "c" * 40, "owner": True},
    "club": {"token": "d" * 40, "direct": False},
    "guest": {"token": "e" * 40, "scopes": ["read"]},
    "writer": {"token": "f" * 40, "scopes": ["write"]},
    "worker": {"token": "g" * 40, "scopes": ["operate"]},
}
"""Keys: of two people, of the owner, of a conversation that others read, and three that may do one thing each."""

WORKERS = {"answered_by": "workers"}

Face = Callable[[str], AgentMemory]
"""The memory of a key, by its name."""


@asynccontextmanager
async def in_process(root: Path) -> AsyncIterator[Face]:
    """The library in the process of the instance."""
    async with running_site(root, keys=KEYS, turns=WORKERS) as here:
        site, callers = (
            call_site_of(here.instance),
            {who.name: who for who in here.instance.config.principals().values()},
        )
        yield lambda name: _asking(site, callers[name])


def _asking(site: CallSite, who: Principal) -> AgentMemory:
    return AgentMemory(lambda call, fields: CALLS[call](site, who, fields))


@asynccontextmanager
async def over_http(root: Path) -> AsyncIterator[Face]:
    """An instance that runs, asked with keys."""
    async with running_site(root, keys=KEYS, turns=WORKERS) as here, AsyncExitStack() as closing:
        remote = {name: connect(url=here.address.url, key=str(one["token"])) for name, one in KEYS.items()}
        clients = {name: await closing.enter_async_context(one) for name, one in remote.items()}
        yield lambda name: clients[name]


_TOOLS = {
    "context": "context_build",
    "recall": "memory_search",
    "get": "memory_get",
    "save": "memory_add",
    "correct": "memory_correct",
    "forget": "memory_forget",
    "record": "record",
    "transcript": "lane_get",
    "explain": "memory_explain",
    "put": "inbox_put",
    "pull": "inbox_pull",
    "renew": "inbox_renew",
    "done": "inbox_done",
    "fail": "inbox_fail",
    "release": "inbox_release",
    "tasks": "task_ls",
    "run_task": "task_run",
    "approve_task": "task_approve",
    "schedules": "schedule_ls",
    "add_schedule": "schedule_add",
    "status": "status",
}


@asynccontextmanager
async def over_mcp(root: Path) -> AsyncIterator[Face]:
    """An instance that runs, asked by the client of the SDK."""
    server = {"port": 0, "mcp_tools": "full"}
    async with running_site(root, keys=KEYS, turns=WORKERS, server=server) as here:
        yield lambda name: AgentMemory(partial(_connected, f"{here.address.url}/mcp", str(KEYS[name]["token"])))


async def _connected(url: str, token: str, name: str, fields: Mapping[str, object]) -> dict[str, Any]:
    """Connect for one call, and put what the tool returns as the other faces put it.

    A client is left by the task that entered it, and nothing is raised within: a group would hold it.
    """
    given = {
        field: value for field, value in fields.items() if value != "" or name in ("record", "context", "put", "fail")
    }
    if name == "context":
        given["message"] = given.pop("text")
    if name == "recall":
        given["bodies"] = True
    head = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=head, trust_env=False, verify=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        answer = await client.call_tool(_TOOLS[name], given)
    text = str(getattr(answer.content[0], "text", ""))
    if answer.is_error:
        raise _error_in(text)
    told = dict(answer.structured_content or {})
    assert json.loads(text) == told
    if name == "recall":
        return {**told, "hits": [{"memory": one} for one in told["memories"]]}
    if name == "context":
        shown = [{"id": one, "shown": True, "reason": "it is in the block"} for one in told["memories"]]
        return {**told, "memory": told["block"], "memories": shown}
    return {**told, "backups": []} if name == "forget" and "id" in told else told


def _error_in(text: str) -> KeepsaidError:
    """The error that a tool's answer tells, by its words: the protocol has no codes for it."""
    if "needs the scope" in text or "operator's token" in text:
        return NotAllowed(text)
    if "another owner" in text:
        return LeaseLost(text)
    return KeyConflict(text) if "was used before" in text else InputError(text)


FACES: Mapping[str, Callable[[Path], AbstractAsyncContextManager[Face]]] = {
    "library": in_process,
    "http": over_http,
    "mcp": over_mcp,
}
