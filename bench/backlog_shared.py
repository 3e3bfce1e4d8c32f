"""Claims at a PostgreSQL where very many messages wait: one process, 64 claimers, as `backlog` measures with files."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from pydantic import SecretStr

from bench.backlog import CLAIMERS, drain, fill
from bench.contender import Absent
from bench.servers import postgres
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.config.services import StoreConfig
from keepsaid.config.settings import BufferConfig, ModelsConfig

_WAITING, _LANES, _BATCHES = 1_000_000, 50_000, 5_000


def measure(folder: Path, scale: float) -> dict[str, object]:
    """`scale` 1 is a million messages in 50,000 lanes."""
    for place in (folder.parent, folder):
        place.chmod(0o711)  # a PostgreSQL that runs as another user has to find its files below
    try:
        return asyncio.run(_measured(folder, int(_WAITING * scale), max(_BATCHES, int(_LANES * scale))))
    except Absent as reason:
        return {"skipped": str(reason)}


async def _measured(folder: Path, count: int, lanes: int) -> dict[str, object]:
    server = folder / "server"
    server.mkdir()
    async with postgres(server) as address:
        url = SecretStr(f"postgresql:///?{address.replace(' ', '&')}")
        config = Config(models=ModelsConfig(chat="none"), buffer=BufferConfig(window_ms=0), store=StoreConfig(url=url))
        async with opened(Home.at(folder / "home"), config) as instance:
            began = time.perf_counter()
            await fill(instance, count, lanes)
            filled = count / (time.perf_counter() - began)
            claimed = await drain(instance, _BATCHES, reading=False)
    return {
        "waiting": count,
        "lanes": lanes,
        "claimers": CLAIMERS,
        "receive_512_producers_per_s": filled,
        "batches_per_s": claimed,
    }
