"""Processes: the turns of four at one PostgreSQL beside those of one, by how long each call of the model takes.

A process may have eight turns at once: with calls of 200 ms one comes to 40 turns a second at most, and four need more
of the processor than two cores have; with calls of a second one comes to 8 and four to 32.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx2

from bench.contender import Absent
from bench.servers import postgres
from keepsaid.testing.model_script import Say, Script
from keepsaid.testing.model_server import ModelServer

MANY = 4
_AT_ONCE = 8
_ROUNDS = 3
_TURNS, _WARM_UP = {0.2: 240, 1.0: 80}, 8
"""Turns of each process, by the seconds of a call."""

_PRODUCERS = 32
_LOOK_S = 0.25
_KEYS = ("forgotten.key", "forgotten.hashes")


@dataclass(frozen=True)
class Serving:
    """A process that serves, and how it is called."""

    url: str
    token: str

    @property
    def headers(self) -> dict[str, str]:
        """What proves who calls."""
        return {"Authorization": f"Bearer {self.token}"}


def measure(folder: Path, scale: float) -> dict[str, object]:
    """One process and four in turn, three times, for each duration of a call; medians, and the median of the ratios."""
    for place in (folder.parent, folder):
        place.chmod(0o711)  # a PostgreSQL that runs as another user has to find its files below
    try:
        found = {f"calls_of_{call_s:g}_s": _at(folder, call_s, scale) for call_s in _TURNS}
    except Absent as reason:
        return {"skipped": str(reason)}
    return {"processes": MANY, **found}


def _at(folder: Path, call_s: float, scale: float) -> dict[str, float]:
    within = folder / f"{call_s:g}"
    within.mkdir(mode=0o711)
    return asyncio.run(_measured(within, call_s, max(40, int(_TURNS[call_s] * scale))))


async def _measured(folder: Path, call_s: float, turns: int) -> dict[str, float]:
    alone, together = list[float](), list[float]()
    server = folder / "server"
    server.mkdir()
    async with postgres(server) as address, ModelServer(Script(default=Say("noted", delay_s=call_s))) as model:
        homes = [folder / f"home{n}" for n in range(MANY)]
        for home in homes:
            _configure(home, address, model.url)
        for _ in range(_ROUNDS):
            for count, rates in ((1, alone), (MANY, together)):
                async with _serving(homes[:count]) as running:
                    rates.append(turns * count / await _answered(running, turns * count))
    return {
        "turns_a_second": median(together),
        "turns_a_second_alone": median(alone),
        "times": median(many / one for many, one in zip(together, alone, strict=True)),
    }


def _configure(home: Path, address: str, model: str) -> None:
    """A home whose settings name the database and the model."""
    (home / "config").mkdir(parents=True)
    settings = {
        "store": {"url": f"postgresql:///?{address.replace(' ', '&')}"},
        "models": {"chat": "openai/scripted", "base_url": model, "api_key": "key"},
        "buffer": {"window_ms": 0},
        "turns": {"concurrent_max": _AT_ONCE},
        "memory": {"embedder": "none"},
        "collection": {"extractor": "none"},
        "bulletin": {"enabled": False},
        "server": {"port": 0},
    }
    (home / "config" / "config.yaml").write_text(json.dumps(settings), "utf-8")


@asynccontextmanager
async def _serving(homes: Sequence[Path]) -> AsyncIterator[list[Serving]]:
    """A process for each home; the first makes the key that the others need."""
    with ExitStack() as running:
        found = []
        for home in homes:
            data = home / "data"
            data.mkdir(exist_ok=True)
            for name in _KEYS if home != homes[0] else ():
                if (key := homes[0] / "data" / name).exists() and not (data / name).exists():
                    shutil.copy(key, data / name)
            found.append(await asyncio.to_thread(running.enter_context, _process(home)))
        yield found


@contextmanager
def _process(home: Path) -> Iterator[Serving]:
    """A process that serves a home, told to end when it is no longer needed."""
    command = [sys.executable, "-m", "keepsaid", "serve", "--port", "0", "--json"]
    environment = {**os.environ, "KEEPSAID_HOME": str(home)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None, "its output is a pipe"
            url = json.loads(process.stdout.readline())["url"]
            yield Serving(url, json.loads((home / "run" / "runtime.json").read_text("utf-8"))["token"])
        finally:
            process.terminate()
            process.wait()


async def _answered(processes: Sequence[Serving], count: int) -> float:
    """Seconds until so many messages, each in a conversation of its own, are answered, after a few that warm up."""
    async with httpx2.AsyncClient(trust_env=False, timeout=60.0) as client:
        for number in (_WARM_UP * len(processes), count):
            before, start = await _committed(client, processes[0]), time.perf_counter()
            await _sent(client, processes, number)
            while await _committed(client, processes[0]) < before + number:  # noqa: ASYNC110 - another process counts
                await asyncio.sleep(_LOOK_S)
        return time.perf_counter() - start


async def _sent(client: httpx2.AsyncClient, processes: Sequence[Serving], count: int) -> None:
    """Send messages by all producers at once, spread over the processes."""
    numbers = iter(range(count))

    async def produce() -> None:
        for n in numbers:
            await _post(client, processes[n % len(processes)], "hello there", f"room{n}")

    await asyncio.gather(*(produce() for _ in range(_PRODUCERS)))


async def _post(client: httpx2.AsyncClient, process: Serving, text: str, conversation: str) -> None:
    body = {"text": text, "sender": "ann", "conversation": conversation}
    response = await client.post(f"{process.url}/v1/messages", json=body, headers=process.headers)
    response.raise_for_status()


async def _committed(client: httpx2.AsyncClient, process: Serving) -> int:
    """How many turns were committed so far."""
    response = await client.get(f"{process.url}/v1/status", headers=process.headers)
    return int(response.json()["turns"].get("committed", 0))
