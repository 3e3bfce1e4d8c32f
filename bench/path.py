"""Path: how many modules and functions of keepsaid one message enters, from its POST to the end of its turn."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

import httpx2

from bench.turns import react, rested
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.config.settings import BufferConfig, ModelsConfig
from keepsaid.interfaces.http.server import listening
from keepsaid.testing.model_script import Script
from keepsaid.testing.model_server import ModelServer

_PACKAGE = str(Path(sys.modules["keepsaid"].__file__ or "").parent)
_OWN_HELP = (f"{_PACKAGE}/testing/",)
_IDLE_S = 6.0
"""Longer than the interval at which idle stages look for work."""

Entered = set[tuple[str, str]]


class Tracer:
    """Collects the functions that are entered, by module, in all threads that start after it."""

    def __init__(self) -> None:
        self._seen: set[CodeType] = set()

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Trace within the block."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            self._seen.add(frame.f_code)

    def entered(self) -> Entered:
        """Named functions that were entered since the last call, with their files."""
        seen, self._seen = self._seen, set()
        ours = (code for code in seen if code.co_filename.startswith(_PACKAGE))
        return {
            (code.co_filename, code.co_qualname)
            for code in ours
            if not code.co_filename.startswith(_OWN_HELP) and not code.co_name.startswith("<")
        }


async def run(folder: Path) -> dict[str, object]:
    """One message after a warm-up, traced; and what the idle instance enters for as long."""
    tracer = Tracer()
    with tracer.tracing():
        async with ModelServer(Script(default=react)) as server:
            models = ModelsConfig.model_validate({"chat": "openai/scripted", "base_url": server.url, "api_key": "key"})
            config = Config(models=models, buffer=BufferConfig(window_ms=0), server={"port": 0})
            async with opened(Home.at(folder), config) as instance:
                await instance.start()
                async with listening(instance) as address, httpx2.AsyncClient(base_url=address.url) as client:
                    await _ask(client, "the brass lantern hangs in the boathouse")
                    await rested()
                    tracer.entered()
                    await asyncio.sleep(_IDLE_S)
                    idle = tracer.entered()
                    start = time.perf_counter()
                    await _ask(client, "where does the brass lantern hang?")
                    took = time.perf_counter() - start
                    await rested()
                    whole = tracer.entered()
    return {**_counted("all", whole), **_counted("not_at_rest", whole - idle), "traced_ms": took * 1e3}


async def _ask(client: httpx2.AsyncClient, text: str) -> None:
    said = {"text": text, "sender": "ann", "conversation": "bench"}
    taken = (await client.post("/v1/messages", json=said)).json()
    await client.get(f"/v1/messages/{taken['id']}/events", timeout=60)


def _counted(name: str, entered: Entered) -> dict[str, object]:
    return {f"{name}_modules": len({file for file, _ in entered}), f"{name}_functions": len(entered)}


def measure(folder: Path, scale: float) -> dict[str, object]:
    """Modules and functions of one message; `scale` changes nothing."""
    del scale
    return {"message": asyncio.run(run(folder))}
