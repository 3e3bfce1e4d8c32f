"""Tasks: from a signed pull_request webhook to the result of the worker that it spawned, beyond the window."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from pathlib import Path

import httpx2

from bench.disk import percentile
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.event import Event
from keepsaid.interfaces.http.server import listening
from keepsaid.testing.model_script import Say, Script
from keepsaid.testing.model_server import ModelServer

ROUNDS = 40
_SECRET = "a secret of the bench"
_WINDOW_MS = 300
_RULE = {"name": "review", "match": {"event": "pull_request.*"}, "action": "spawn", "task": "Review: {{text}}"}
_HOOK = {"secret": _SECRET, "window_ms": _WINDOW_MS, "quiet_ms": 0, "max_wait_ms": _WINDOW_MS}


class Ends:
    """Tells when tasks end."""

    def __init__(self) -> None:
        self.ended: asyncio.Queue[float] = asyncio.Queue()

    async def hear(self, _event: Event) -> None:
        """A task has ended."""
        self.ended.put_nowait(time.perf_counter())


async def _deliver(client: httpx2.AsyncClient, number: int) -> None:
    ann = {"login": "ann"}
    pull = {"number": number, "title": f"Change {number}", "body": "faster", "html_url": "http://x", "user": ann}
    body = {"action": "opened", "number": number, "pull_request": pull, "sender": ann}
    sent = json.dumps({**body, "repository": {"full_name": "acme/api"}}).encode()
    signed = f"sha256={hmac.new(_SECRET.encode(), sent, hashlib.sha256).hexdigest()}"
    named = {"X-GitHub-Event": "pull_request", "X-GitHub-Delivery": f"d-{number}"}
    headers = {**named, "X-Hub-Signature-256": signed}
    (await client.post("/hooks/github", content=sent, headers=headers)).raise_for_status()


async def _rounds(instance: Instance, client: httpx2.AsyncClient, count: int) -> list[float]:
    ends = Ends()
    await instance.telling.subscribe("bench", ("task.completed",), ends.hear)
    took = []
    for number in range(count + 2):
        begun = time.perf_counter()
        await _deliver(client, number)
        took.append(await ends.ended.get() - begun)
    return sorted(took[2:])


async def _run(folder: Path, count: int) -> dict[str, float]:
    async with ModelServer(Script(default=Say("it is fine"))) as model:
        models = {"chat": "openai/scripted", "base_url": model.url, "api_key": "k"}
        given = {"models": models, "channels": {"github": _HOOK}, "routes": {"rules": [_RULE]}}
        config = Config.model_validate({**given, "bulletin": {"enabled": False}})
        async with opened(Home.at(folder), config) as instance:
            await instance.start()
            async with (
                listening(instance) as address,
                httpx2.AsyncClient(base_url=address.url, trust_env=False, timeout=30.0) as client,
            ):
                took = await _rounds(instance, client, count)
    return {
        "tasks": len(took),
        "window_ms": _WINDOW_MS,
        **{f"beyond_window_p{p}_ms": percentile(took, p) * 1e3 - _WINDOW_MS for p in (50, 95, 99)},
    }


def measure(folder: Path, scale: float) -> dict[str, float]:
    """Milliseconds from the webhook to the told result, less the window it is collected in."""
    return asyncio.run(_run(folder, max(3, int(ROUNDS * scale))))
