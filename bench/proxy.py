"""Memory proxy: what a call takes longer through a proxy than straight to the same model, with 10,000 memories.

The proxy is `keepsaid serve` in a process of its own, as people run it. Each pair of calls is made one after the other,
in the same run, against a local model server that answers at once. The server rests before the next pair: what was
recorded is remembered by then, as people take seconds for that.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from bench.disk import percentile
from bench.servers import keepsaid_serving
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Home, load
from keepsaid.domain.memory import Kind, NewMemory
from keepsaid.testing.model_script import Say
from keepsaid.testing.model_server import ModelServer
from keepsaid.values import frozen
from keepsaid_testkit.made_talk import MadeTalk

_MEMORIES, _CALLS, _WARM_UP, _EACH, _TURNS = 10_000, 300, 20, 1_000, 10
_LOOKS, _LOOK_S = 3, 0.012
"""A server rests that took no processor time between two looks, this often in a row; its clock ticks every 10 ms."""

_TOKEN = "k" * 40
_ANSWER = "That is noted, and here is what I know about it. " * 4


def measure(folder: Path, scale: float) -> dict[str, float]:
    """Milliseconds that a call takes longer, whole and to the first words of a stream, and shares that were shown."""
    return asyncio.run(_measured(folder, max(100, int(_MEMORIES * scale)), max(20, int(_CALLS * scale))))


async def _measured(folder: Path, memories: int, calls: int) -> dict[str, float]:
    async with ModelServer(lambda _: Say(_ANSWER)) as model:
        proxy = {"base_url": model.url, "model": "scripted", "key": "p" * 40}
        settings = {
            "models": {"chat": "none"},
            "keys": {"bench": {"token": _TOKEN, "sender": "ann"}},
            "openai": {"proxies": {"both": proxy, "off": {**proxy, "memory": "off"}}},
            "server": {"port": 0},
        }
        (home := Home.at(folder)).config_file.parent.mkdir(parents=True, exist_ok=True)
        home.config_file.write_text(json.dumps(settings), "utf-8")
        async with opened(home, load(home.config_file)[0]) as instance:
            await instance.start(answering=False)
            await _fill(instance, memories)
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
            with _serving(home) as (address, ticks):
                urls = f"{model.url}/chat/completions", f"{address}/v1/chat/completions"
                pairs = Pairs(http, urls, calls, ticks)
                await pairs.measure("both", "first")  # memory works over what was just stored meanwhile
                figures = {"memories": float(memories), "calls": float(calls)}
                for name, stream in (("off", False), ("both", False), ("both", True)):
                    figures |= await pairs.measure(name, f"{name} {stream}", stream=stream)
                return figures


@contextmanager
def _serving(home: Home) -> Iterator[tuple[str, Callable[[], int]]]:
    """Run `keepsaid serve`; gives its address, and how to read the processor time that it took so far."""
    command = [sys.executable, "-m", "keepsaid", "serve", "--port", "0"]
    with keepsaid_serving(command, home.run.parent) as server:
        spent = Path(f"/proc/{server.pid}/stat")
        yield json.loads(home.runtime_file.read_text("utf-8"))["url"], lambda: _ticks(spent.read_text("ascii"))


def _ticks(stat: str) -> int:
    user, system = stat.rpartition(")")[2].split()[11:13]
    return int(user) + int(system)


@frozen
class Pairs:
    """Calls in pairs, to `urls`: straight to the model, and through a proxy whose processor time `ticks` tells."""

    http: httpx2.AsyncClient
    urls: tuple[str, str]
    calls: int
    ticks: Callable[[], int]

    async def measure(self, proxy: str, talk: str, *, stream: bool = False) -> dict[str, float]:
        """Milliseconds that the second call of a pair takes longer, and the shares of those with memory.

        Each `talk` has a history of its own: a message at the same place would be shown what it was shown before.
        """
        added, straight, shown, degraded = [], [], 0, 0
        for number, one in enumerate(MadeTalk().questions(_WARM_UP + self.calls)):
            history = [f"{talk} {number} {turn}" for turn in range(_TURNS)]
            said = [{"role": role, "content": f"{role} {one}"} for one in history for role in _ROLES]
            messages = [*said, {"role": "user", "content": one.text}]
            body = {"model": f"memory/{proxy}", "stream": stream, "messages": messages}
            await self._rest()
            once, _ = await _timed(self.http, self.urls[0], body)
            longer, headers = await _timed(self.http, self.urls[1], body)
            if number >= _WARM_UP:
                straight.append(once)
                added.append(longer - once)
                shown += headers["x-keepsaid-memories"] != "0"
                degraded += "x-keepsaid-degraded" in headers
        name = f"{proxy}_{'stream' if stream else 'whole'}"
        return {
            f"{name}_direct_ms_p50": percentile(sorted(straight), 50),
            f"{name}_added_ms_p50": percentile(sorted(added), 50),
            f"{name}_added_ms_p95": percentile(sorted(added), 95),
            f"{name}_with_memory": shown / self.calls,
            f"{name}_degraded": degraded / self.calls,
        }

    async def _rest(self) -> None:
        """Wait until the server rests."""
        looks = [-1, *[0] * _LOOKS]
        while len(set(looks)) > 1:
            await asyncio.sleep(_LOOK_S)
            looks = [*looks[1:], self.ticks()]


_ROLES = ("user", "assistant")


async def _timed(http: httpx2.AsyncClient, url: str, body: dict[str, Any]) -> tuple[float, httpx2.Headers]:
    """Milliseconds until the first words of a stream, or a whole answer."""
    head = {"Authorization": f"Bearer {_TOKEN}", "X-Keepsaid-Conversation": "bench"}
    began, first = time.perf_counter(), 0.0
    async with http.stream("POST", url, json=body, headers=head) as answer:
        assert answer.status_code == 200
        async for chunk in answer.aiter_raw():
            if body["stream"] and not first and b'"content":"' in chunk:
                first = (time.perf_counter() - began) * 1_000
    return first or (time.perf_counter() - began) * 1_000, answer.headers


async def _fill(instance: Instance, count: int) -> None:
    talk, who = MadeTalk(), instance.config.keys["bench"].principal("bench")
    for first in range(0, count, _EACH):
        made = [
            NewMemory(f"made:{n}", Kind.FACT, text, who.scope(), who.trust, speaker="ann", said_at=n + 1)
            for n, text in enumerate(talk.texts(first, min(_EACH, count - first)), start=first)
        ]
        await instance.memories.keep(made, 1)
