"""Hooks of coding agents: the time of each from end to end, with 10,000 memories of their project.

A prompt is recorded and answered with memory, over HTTP, by one client. After it the transcript has the prompt and an
answer, which `Stop` records. Beside both stands the health route of the same server: the cost of HTTP there.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path

import httpx2

from bench.disk import percentile
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Home, load
from keepsaid.domain.memory import Kind, NewMemory
from keepsaid.domain.project import in_project
from keepsaid.interfaces.http.server import listening
from keepsaid.services.agent_files import workplace
from keepsaid_testkit.made_talk import MadeTalk

_MEMORIES, _PROMPTS, _WARM_UP, _EACH = 10_000, 200, 10, 1_000
_TOKEN = "k" * 40


def measure(folder: Path, scale: float) -> dict[str, float]:
    """Milliseconds of the hooks of a prompt and of its end."""
    return asyncio.run(_measured(folder, max(100, int(_MEMORIES * scale)), max(20, int(_PROMPTS * scale))))


async def _measured(folder: Path, memories: int, prompts: int) -> dict[str, float]:
    work, transcript = folder / "work", folder / "projects" / "bench.jsonl"
    work.mkdir(parents=True)
    transcript.parent.mkdir()
    key = {"token": _TOKEN, "sender": "ann", "scopes": ["read", "write"], "transcripts": str(transcript.parent)}
    settings = {"models": {"chat": "none"}, "keys": {"bench": key}, "server": {"port": 0}}
    config, _ = load((home := Home.at(folder / "home")).config_file, settings)
    head = {"Authorization": f"Bearer {_TOKEN}"}
    async with opened(home, config) as instance:
        await instance.start(answering=False)
        await _fill(instance, memories, workplace(str(work)).project)
        async with (
            listening(instance) as address,
            httpx2.AsyncClient(base_url=address.url, headers=head, trust_env=False, timeout=60) as http,
        ):
            hooks = Hooks(http, work, transcript)
            taken = [await hooks.turn(n, one.text) for n, one in enumerate(MadeTalk().questions(_WARM_UP + prompts))]
    figures = {"memories": float(memories), "prompts": float(prompts), "with_memory": float(hooks.given)}
    for name in ("health", "prompt", "stop"):
        ordered = sorted(one[name] for one in taken[_WARM_UP:])
        figures |= {f"{name}_ms_p50": percentile(ordered, 50), f"{name}_ms_p95": percentile(ordered, 95)}
    return figures


class Hooks:
    """One session of Claude Code."""

    def __init__(self, http: httpx2.AsyncClient, work: Path, transcript: Path) -> None:
        self.http, self.transcript = http, transcript
        self.common = {"session_id": "bench", "cwd": str(work), "transcript_path": str(transcript)}
        self.given = 0

    async def turn(self, number: int, prompt: str) -> dict[str, float]:
        """Milliseconds of the health route, of the prompt and of its end."""
        began = time.perf_counter()
        await self.http.get("/healthz")
        health = time.perf_counter()
        named = {"prompt": prompt, "prompt_id": f"p{number}"}
        answer = await self._call("UserPromptSubmit", named)
        asked = time.perf_counter()
        self.given += "hookSpecificOutput" in answer
        self._write(number, prompt)
        wrote = time.perf_counter()
        await self._call("Stop", {})
        times = {"health": health - began, "prompt": asked - health, "stop": time.perf_counter() - wrote}
        return {name: seconds * 1_000 for name, seconds in times.items()}

    def _write(self, number: int, prompt: str) -> None:
        lines = [
            {"type": "user", "uuid": f"u{number}", "promptId": f"p{number}", "message": {"content": prompt}},
            {"type": "assistant", "uuid": f"a{number}", "message": {"content": [{"type": "text", "text": "Done."}]}},
        ]
        with self.transcript.open("a", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(line)}\n" for line in lines)

    async def _call(self, event: str, fields: Mapping[str, str]) -> dict[str, object]:
        answer = await self.http.post(
            "/v1/hooks/claude-code", json={**self.common, "hook_event_name": event, **fields}
        )  # fmt: skip
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


async def _fill(instance: Instance, count: int, project: str) -> None:
    talk, who = MadeTalk(), in_project(instance.config.keys["bench"].principal("bench"), project)
    for first in range(0, count, _EACH):
        made = [
            NewMemory(f"made:{n}", Kind.FACT, text, who.scope(), who.trust, speaker="ann", said_at=n + 1)
            for n, text in enumerate(talk.texts(first, min(_EACH, count - first)), start=first)
        ]
        await instance.memories.keep(made, 1)
