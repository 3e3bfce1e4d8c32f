"""Intake of four processes at one PostgreSQL, 16 producers each, against procrastinate's defer on the same server."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.contender import Absent
from bench.intake import PRODUCERS, Put, message, sent
from bench.servers import deferring, postgres
from keepsaid.adapters.postgres.connection import PostgresPlace
from keepsaid.adapters.postgres.stores import open_operations
from keepsaid.adapters.sql.tombstones import open_keyring
from keepsaid.adapters.system.machine import SystemClock, SystemIds
from keepsaid.domain.batch import Window
from keepsaid.pipeline.intake import IntakeLimits, MessageIntake

PROCESSES = 4
_ROUNDS = 3
_COUNT = 40_000


@asynccontextmanager
async def receiving(address: str, folder: Path, *, fresh: bool) -> AsyncIterator[Put]:
    """The public `receive` on a database, as each of several processes has it; whoever opens it first makes it."""
    del fresh
    place = PostgresPlace(f"postgresql:///?{address.replace(' ', '&')}")
    operations = await open_operations(place, open_keyring(folder / "buffer.db"))
    try:
        yield MessageIntake(operations, SystemClock(), SystemIds(), {"http": Window()}, IntakeLimits()).receive
    finally:
        await operations.close()


def _deferring(address: str, _folder: Path, *, fresh: bool) -> AbstractAsyncContextManager[Put]:
    return deferring(address, PRODUCERS // PROCESSES, fresh=fresh)


WAYS: Mapping[str, Any] = {"keepsaid": receiving, "procrastinate": _deferring}


def measure(folder: Path, scale: float) -> dict[str, object]:
    """Both ways in turn, three times; medians, and the median of the ratios."""
    for place in (folder.parent, folder):
        place.chmod(0o711)  # a PostgreSQL that runs as another user has to find its files below
    try:
        return asyncio.run(_measured(folder, int(_COUNT * scale)))
    except Absent as reason:
        return {"skipped": str(reason)}


async def _measured(folder: Path, count: int) -> dict[str, object]:
    rates: Mapping[str, list[float]] = {way: [] for way in WAYS}
    server = folder / "server"
    server.mkdir()
    async with postgres(server) as address:
        for opening in WAYS.values():
            async with opening(address, folder, fresh=True):
                """The tables are made."""
        for number in range(_ROUNDS):
            for way, found in rates.items():
                found.append(await asyncio.to_thread(_rate, (way, address, str(folder)), number * count, count))
    ratios = [ours / theirs for ours, theirs in zip(*rates.values(), strict=True)]
    medians = {f"{way}_per_s": median(found) for way, found in rates.items()}
    return {"processes": PROCESSES, "producers": PRODUCERS, **medians, "times": median(ratios)}


def _rate(told: tuple[str, ...], first: int, count: int) -> float:
    """Messages a second of all processes together, from the moment at which all of them begin."""
    share = count // PROCESSES
    with ExitStack() as running:
        found = list[Any]()
        for n in range(PROCESSES):
            command = [sys.executable, "-m", "bench.intake_shared", *told, str(first + n * share), str(share)]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            found.append(running.enter_context(subprocess.Popen(command, **pipes)))
        for process in found:
            process.stdout.readline()
        began = time.perf_counter()
        for process in found:
            process.stdin.write("\n")
            process.stdin.flush()
        for process in found:
            json.loads(process.stdout.readline())
        return share * PROCESSES / (time.perf_counter() - began)


async def _produce(way: str, address: str, folder: str, first: int, count: int) -> None:
    """Be one of the processes: say that it is ready, wait for a line, and say what it has done."""
    messages = [message(n) for n in range(first, first + count)]
    async with WAYS[way](address, Path(folder), fresh=False) as put:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        print(json.dumps(await sent(put, messages, PRODUCERS // PROCESSES)), flush=True)


if __name__ == "__main__":
    asyncio.run(_produce(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])))
