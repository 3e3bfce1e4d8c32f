"""Hung: what a turn takes in twenty lanes, alone and then beside twenty whose model never answers."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path

from bench.disk import percentile
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.config.settings import BufferConfig, ModelsConfig, TurnsConfig
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.testing.model_script import ChatRequest, Hang, Reaction, Say
from keepsaid.testing.model_server import ModelServer

LANES = 20
_THINKING_S = 0.1
_WINDOW_S = 20.0
_ROUNDS = 5
_NEVER = "never answer this"


def react(request: ChatRequest) -> Reaction:
    """Answer soon, or never."""
    return Hang() if _NEVER in request.last("user") else Say("noted", delay_s=_THINKING_S)


async def put(instance: Instance, room: str, text: str) -> int:
    """Say something in a room; returns the message's id."""
    origin = Origin("http", "default", room, "ann", trust=Trust.KNOWN)
    return (await instance.receive(Inbound(origin, Content(text.encode(), text)))).id


async def talk(instance: Instance, room: str, until: float) -> list[float]:
    """Turn after turn in one room; the seconds from put to settled of each."""
    took: list[float] = []
    while (start := time.perf_counter()) < until:
        with instance.hub.listening(await put(instance, room, "hello")) as queue:
            while (await queue.get()).kind != "settled":
                pass
        took.append(time.perf_counter() - start)
    return took


async def window(instance: Instance, seconds: float) -> list[float]:
    """All lanes that are answered, side by side for so long; their turns in ascending order of time."""
    until = time.perf_counter() + seconds
    lanes = await asyncio.gather(*(talk(instance, f"room {n}", until) for n in range(LANES)))
    return sorted(turn for lane in lanes for turn in lane)


async def run(folder: Path, seconds: float) -> dict[str, float]:
    """Two instances by turns, so that what disturbs the machine disturbs both: one has hung lanes, one has none."""
    async with ModelServer(react) as server, AsyncExitStack() as closing:
        models = ModelsConfig.model_validate({"chat": "openai/scripted", "base_url": server.url, "api_key": "key"})
        config = Config(models=models, buffer=BufferConfig(window_ms=0), turns=TurnsConfig(stop_s=0))
        alone, beside = [
            await closing.enter_async_context(opened(Home.at(folder / name), config)) for name in ("alone", "beside")
        ]
        await alone.start()
        await beside.start()
        coming = config.turns.slow_s * (1 + LANES / config.turns.concurrent_max)
        await window(alone, coming)
        for n in range(LANES):
            await put(beside, f"hung {n}", _NEVER)
        slowest = (await window(beside, coming))[-1]
        took: tuple[list[float], list[float]] = [], []
        for _ in range(_ROUNDS):
            took[0].extend(await window(alone, seconds / _ROUNDS))
            took[1].extend(await window(beside, seconds / _ROUNDS))
    quiet, busy = sorted(took[0]), sorted(took[1])
    return {
        "lanes": LANES,
        "hung": LANES,
        "turns_alone": len(quiet),
        "turns_beside": len(busy),
        **{f"alone_p{p}_ms": percentile(quiet, p) * 1e3 for p in (50, 99)},
        **{f"beside_p{p}_ms": percentile(busy, p) * 1e3 for p in (50, 99)},
        "p99_ratio": percentile(busy, 99) / percentile(quiet, 99),
        "slowest_while_they_come_ms": slowest * 1e3,
    }


def measure(folder: Path, scale: float) -> dict[str, object]:
    """Turns beside hung lanes; `scale` 1 is 20 s with them and 20 s without."""
    return {"lanes": asyncio.run(run(folder, max(2.0, _WINDOW_S * scale)))}
