"""Agents outside: what a call costs at a running instance with 10,000 memories, over HTTP and by MCP.

Beside each call stands the health route of the same server, by the same client: what HTTP itself costs there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from bench.disk import percentile
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Home, load
from keepsaid.domain.memory import Kind, NewMemory
from keepsaid.interfaces.http.server import listening
from keepsaid_testkit.made_talk import MadeTalk

_MEMORIES, _CALLS, _WARM_UP, _EACH = 10_000, 200, 10, 1_000
_TOKEN = "k" * 40
_KEY = {"bench": {"token": _TOKEN, "sender": "ann"}}


def measure(folder: Path, scale: float) -> dict[str, float]:
    """Milliseconds of each call, and how many times the health route it takes."""
    return asyncio.run(_measured(folder, max(100, int(_MEMORIES * scale)), max(20, int(_CALLS * scale))))


async def _measured(folder: Path, memories: int, calls: int) -> dict[str, float]:
    settings = {"models": {"chat": "none"}, "keys": _KEY, "server": {"port": 0}}
    config, _ = load((home := Home.at(folder)).config_file, settings)
    head = {"Authorization": f"Bearer {_TOKEN}"}
    async with opened(home, config) as instance:
        await instance.start(answering=False)
        await _fill(instance, memories)
        async with (
            listening(instance) as address,
            httpx2.AsyncClient(base_url=address.url, headers=head, trust_env=False, timeout=60) as http,
            Client(streamable_http_client(f"{address.url}/mcp", http_client=http)) as client,
        ):
            told = {"memories": float(memories), "calls": float(calls)}
            questions = [one.text for one in MadeTalk().questions(_WARM_UP + calls)]
            bare = await _times(questions, lambda _: http.get("/healthz"))
            told |= _shape("health", bare)
            told |= _shape("context", await _times(questions, lambda text: _context(http, text)), bare)
            told |= _shape("recall", await _times(questions, lambda text: _recall(http, text)), bare)
            told |= _shape("record", await _times(questions, lambda text: _record(http, text)), bare)
            search = await _times(questions, lambda text: client.call_tool("memory_search", {"query": text}))
            return told | _shape("mcp_search", search, bare)


async def _fill(instance: Instance, count: int) -> None:
    talk, scope = MadeTalk(), instance.config.keys["bench"].principal("bench")
    for first in range(0, count, _EACH):
        made = [
            NewMemory(f"made:{n}", Kind.FACT, text, scope.scope(), scope.trust, speaker="ann", said_at=n + 1)
            for n, text in enumerate(talk.texts(first, min(_EACH, count - first)), start=first)
        ]
        await instance.memories.keep(made, 1)


async def _context(http: httpx2.AsyncClient, text: str) -> None:
    answer = await http.post("/v1/context", json={"conversation": "bench", "text": text})
    assert answer.status_code == 200, answer.text


async def _recall(http: httpx2.AsyncClient, text: str) -> None:
    answer = await http.get("/v1/memories", params={"query": text})
    assert answer.status_code == 200, answer.text
    assert answer.json()["hits"]


async def _record(http: httpx2.AsyncClient, text: str) -> None:
    said = {"conversation": "bench", "messages": [{"role": "user", "text": text}, {"role": "assistant", "text": text}]}
    answer = await http.post("/v1/lanes:record", json=said)
    assert answer.status_code == 201, answer.text


async def _times(questions: list[str], call: Callable[[str], Awaitable[object]]) -> list[float]:
    """Milliseconds of each call but the first ones, in ascending order."""
    taken = []
    for text in questions:
        began = time.perf_counter()
        await call(text)
        taken.append((time.perf_counter() - began) * 1_000)
    return sorted(taken[_WARM_UP:])


def _shape(name: str, taken: list[float], bare: list[float] | None = None) -> dict[str, float]:
    shape = {f"{name}_ms_p50": percentile(taken, 50), f"{name}_ms_p95": percentile(taken, 95)}
    if bare is None:
        return shape
    return {**shape, f"{name}_times_health_p50": percentile(taken, 50) / percentile(bare, 50)}
