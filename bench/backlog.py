"""Backlog: routing and claiming with few and with very many messages waiting, and what asking costs then."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from statistics import median

from bench.disk import percentile
from bench.intake import PRODUCERS, produce
from keepsaid.adapters.sql.operations.views import overview
from keepsaid.adapters.sqlite.connection import open_reader
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.config.settings import BufferConfig, ModelsConfig
from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks, Trust

CLAIMERS = 64
_LARGE, _LARGE_LANES = 1_000_000, 50_000
_SMALL = 1_000
_ASKED = 20
_PROBED = 40_000
_DRAINS = 3
Figures = dict[str, float]


def message(n: int, lanes: int) -> Inbound:
    """The n-th message of so many lanes."""
    text = f"message {n} of a person who says something of ordinary length"
    origin = Origin("http", "default", f"c{n % lanes}", f"u{n % 50}", trust=Trust.KNOWN)
    return Inbound(origin, Content(text.encode(), text), ProviderMarks(f"b-{n}"))


async def fill(instance: Instance, count: int, lanes: int) -> None:
    """Let so many messages wait."""
    numbers = iter(range(count))

    async def producer() -> None:
        for n in numbers:
            await instance.receive(message(n, lanes))

    await asyncio.gather(*(producer() for _ in range(512)))


async def drain(instance: Instance, batches: int, *, reading: bool) -> float:
    """Route and claim so many batches with 64 claimers, who read them if asked to; batches a second."""
    left, routed = batches, asyncio.Event()

    async def router() -> None:
        more: int | None = 0
        while more is not None and left > 0:
            more = await instance.flow.route()
            routed.set()

    async def claimer() -> None:
        nonlocal left
        while left > 0:
            leases = await instance.flow.claim(instance.leases, 1)
            left -= len(leases)
            for lease in leases if reading else ():
                await instance.flow.open(lease)
            if not leases:
                if routing.done():
                    return
                routed.clear()
                await routed.wait()

    start = time.perf_counter()
    routing = asyncio.create_task(router())
    await asyncio.gather(*(claimer() for _ in range(CLAIMERS)))
    took = time.perf_counter() - start
    routing.cancel()
    await asyncio.gather(routing, return_exceptions=True)
    return batches / took


def asked(path: Path) -> float:
    """Milliseconds of database time of `status`."""
    db = open_reader(path)
    took = []
    for _ in range(_ASKED):
        start = time.perf_counter()
        overview(db)
        took.append(time.perf_counter() - start)
    db.close()
    return percentile(sorted(took), 50) * 1e3


async def waiting(folder: Path, count: int, lanes: int, batches: int) -> Figures:
    """All figures with so many messages waiting in so many lanes."""
    home = Home.at(folder)
    buffer = BufferConfig(window_ms=0)
    config = Config(models=ModelsConfig(chat="none"), buffer=buffer)
    async with opened(home, config) as instance:
        await fill(instance, count, lanes)
        status_ms = asked(home.store(buffer.path))
    claimed = await drained(folder, config, batches, reading=False)
    read = await drained(folder, config, batches, reading=True)
    async with opened(home, config) as instance:
        probe = await produce(instance.receive, _PROBED, PRODUCERS)
    start = time.perf_counter()
    async with opened(home, config) as instance:
        await instance.start(answering=False)
        ready_s = time.perf_counter() - start
        await instance.stop()
    figures = {"status_ms": status_ms, "receive_per_s": probe["per_s"], "ready_s": ready_s}
    return {**figures, "batches_per_s": claimed, "batches_read_per_s": read}


async def drained(folder: Path, config: Config, batches: int, *, reading: bool) -> float:
    """The median of a few drains, each of a copy of what waits."""
    rates = []
    for _ in range(_DRAINS):
        copy = folder.with_name(f"{folder.name}-copy")
        shutil.copytree(folder, copy)
        async with opened(Home.at(copy), config) as instance:
            rates.append(await drain(instance, batches, reading=reading))
        shutil.rmtree(copy)
    return median(rates)


def measure(folder: Path, scale: float) -> dict[str, object]:
    """Few and many waiting; `scale` 1 is a million in 50,000 lanes."""
    few, many = folder / "few", folder / "many"
    large = {"count": int(_LARGE * scale), "lanes": max(_SMALL, int(_LARGE_LANES * scale))}
    return {
        "few_1000": asyncio.run(waiting(few, _SMALL, _SMALL, _SMALL)),
        "many": asyncio.run(waiting(many, large["count"], large["lanes"], 5 * _SMALL)),
        **large,
    }
