"""Files: how fast a picture is shown to a model, and what messages notice while large files are fetched."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from bench.disk import percentile
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Home, load
from keepsaid.domain.message import Content, Inbound, Origin
from keepsaid.testing.model_script import Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers.kept_files import PNG
from keepsaid.testing.providers.telegram import TelegramServer

PICTURES = 50
_WARM_UP = 5
_PICTURE_BYTES, _LARGE_BYTES = 200_000, 19_000_000
_LARGE, _MESSAGES = 4, 400


def measure(folder: Path, scale: float) -> dict[str, float]:
    """Milliseconds from a picture to the model's request, and of intake alone and beside four files of 19 MB."""
    return asyncio.run(_measured(folder, scale))


async def _measured(folder: Path, scale: float) -> dict[str, float]:
    async with TelegramServer() as telegram, ModelServer(Script(default=Say("seen"))) as model:
        settings: dict[str, Any] = {
            "models": {"chat": "openai/scripted", "base_url": model.url, "api_key": SecretStr("k")},
            "telegram": {"token": telegram.token, "api_url": telegram.url},
            "channels": {"telegram": {"access": "anyone", "window_ms": 0}, "library": {"unmatched": "drop"}},
        }
        config, _ = load((home := Home.at(folder)).config_file, settings)
        async with opened(home, config) as instance:
            await instance.start()
            shown = [await _shown(telegram, model, n) for n in range(_WARM_UP + max(_WARM_UP, int(PICTURES * scale)))]
            count = max(50, int(_MESSAGES * scale))
            alone = [await _taken(instance, n) for n in range(count)]
            begun = time.perf_counter()
            for _ in range(_LARGE):
                telegram.send_file("document", bytes(_LARGE_BYTES), "a large one", file_name="large.bin")
            beside = [await _taken(instance, n) async for n in _while_fetching(instance, count)]
            seconds = time.perf_counter() - begun
    return {
        "pictures": float(len(shown) - _WARM_UP),
        "picture_ms_p50": percentile(sorted(shown[_WARM_UP:]), 50),
        "picture_ms_p95": percentile(sorted(shown[_WARM_UP:]), 95),
        "fetched_mb_s": _LARGE * _LARGE_BYTES / 1e6 / seconds,
        "intake_alone_ms_p50": percentile(sorted(alone), 50),
        "intake_alone_ms_p99": percentile(sorted(alone), 99),
        "intake_beside_ms_p50": percentile(sorted(beside), 50),
        "intake_beside_ms_p99": percentile(sorted(beside), 99),
    }


async def _shown(telegram: TelegramServer, model: ModelServer, number: int) -> float:
    """Milliseconds from a picture of 200 KB to the request that shows it."""
    begun, before = time.perf_counter(), len(model.requests)
    telegram.send_file("photo", PNG + bytes(_PICTURE_BYTES), f"picture {number}")
    await model.wait_for(before + 1)
    taken = time.perf_counter() - begun
    await telegram.wait_for(lambda: len(telegram.sent) > number)
    return taken * 1_000


async def _taken(instance: Instance, number: int) -> float:
    """Milliseconds until a message is on disk."""
    begun = time.perf_counter()
    origin = Origin("library", "default", "beside", "ann")
    await instance.receive(Inbound(origin, Content(b"hello", f"hello {number}")))
    return (time.perf_counter() - begun) * 1_000


async def _while_fetching(instance: Instance, least: int) -> AsyncIterator[int]:
    """Numbers for as long as a file is being fetched."""
    number = 0
    while number < least or await instance.operations.files.next_due() is not None:
        yield number
        number += 1
