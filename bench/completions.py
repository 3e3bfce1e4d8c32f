"""The agent as a model: what it adds to a completion, beside the model itself asked by the same client in the same run.

The first token is timed twice: when the model's server sends it, and when the client has it.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import openai

from bench.disk import percentile
from keepsaid.app.opening import opened
from keepsaid.config import Home, load
from keepsaid.interfaces.http.server import listening
from keepsaid.testing.model_script import ChatRequest, Reaction, Say
from keepsaid.testing.model_server import ModelServer

_CALLS, _WARM_UP = 200, 10
_TOKEN = "k" * 40


def measure(folder: Path, scale: float) -> dict[str, float]:
    """Milliseconds to the first token after the model's, of a whole call, and how many times the bare model's it is."""
    return asyncio.run(_measured(folder, max(20, int(_CALLS * scale))))


async def _measured(folder: Path, calls: int) -> dict[str, float]:
    sent_at = list[float]()

    def answer(_request: ChatRequest) -> Reaction:
        sent_at.append(time.perf_counter())
        return Say("The foresail is torn, and has to be mended before we leave.", chunk=8, rest_after_s=0.05)

    async with ModelServer(answer) as model:
        models = {"chat": "openai/scripted", "base_url": model.url, "api_key": "none"}
        settings = {"models": models, "keys": {"bench": {"token": _TOKEN}}, "server": {"port": 0}}
        config, _ = load((home := Home.at(folder)).config_file, settings)
        async with opened(home, config) as instance:
            await instance.start()
            async with (
                listening(instance) as address,
                openai.AsyncOpenAI(base_url=f"{address.url}/v1", api_key=_TOKEN) as agent,
                openai.AsyncOpenAI(base_url=model.url, api_key="none") as bare,
            ):
                through = await _first_tokens(agent, "keepsaid", calls, sent_at)
                direct = await _first_tokens(bare, "scripted", calls, sent_at)
    figures = {"calls": float(calls)}
    for name, (after, whole) in (("agent", through), ("bare", direct)):
        figures |= {
            f"{name}_first_token_ms_p50": percentile(after, 50),
            f"{name}_first_token_ms_p95": percentile(after, 95),
        }
        figures |= {f"{name}_whole_ms_p50": percentile(whole, 50), f"{name}_whole_ms_p95": percentile(whole, 95)}
    figures["added_first_token_ms_p95"] = figures["agent_first_token_ms_p95"] - figures["bare_first_token_ms_p95"]
    return figures


async def _first_tokens(
    client: openai.AsyncOpenAI, model: str, calls: int, sent_at: list[float]
) -> tuple[list[float], list[float]]:
    """Milliseconds from the model's answer to the client's first token, and of whole calls, in ascending order."""
    create: Any = client.chat.completions.create
    after, whole = list[float](), list[float]()
    for n in range(_WARM_UP + calls):
        began, first = time.perf_counter(), 0.0
        stream = await create(model=model, stream=True, messages=[{"role": "user", "content": f"Which sail is {n}?"}])
        async for chunk in stream:
            if not first and chunk.choices and chunk.choices[0].delta.content:
                first = time.perf_counter()
        after.append((first - sent_at[-1]) * 1_000)
        whole.append((time.perf_counter() - began) * 1_000)
    return sorted(after[_WARM_UP:]), sorted(whole[_WARM_UP:])
