"""Turns: what a turn adds to its model call, at 10,000 episodes, against an instant local model server."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

from bench.disk import percentile
from keepsaid.app import Instance, opened
from keepsaid.config import Config, Home
from keepsaid.config.tree import BufferConfig, ModelsConfig
from keepsaid.domain.ids import show
from keepsaid.domain.lane import Lane
from keepsaid.domain.memory import Kind, NewMemory, conversation_scope
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.domain.prompt import Prompt, Record, Role
from keepsaid.ports.model import ModelRequest
from keepsaid.testing.model_script import Say, Script
from keepsaid.testing.model_server import ModelServer

EPISODES = 10_000
_WORDS = [
    "garden",
    "river",
    "train",
    "window",
    "coffee",
    "meeting",
    "paper",
    "bridge",
    "summer",
    "music",
    "doctor",
    "holiday",
    "ticket",
    "market",
    "kitchen",
    "letter",
    "school",
    "engine",
    "island",
    "winter",
    "camera",
    "hotel",
    "ocean",
    "pencil",
    "report",
    "forest",
    "dinner",
    "mirror",
    "planet",
    "basket",
]


async def fill(instance: Instance, chance: random.Random) -> None:
    """Ten thousand episodes of the lane that is asked."""
    lane = Lane("http", "default", "bench", "root:bench")
    for start in range(0, EPISODES, 500):
        await instance.memories.keep(
            [
                NewMemory(
                    f"bench:{n}",
                    Kind.EPISODE,
                    " ".join(chance.choices(_WORDS, k=12)) + f" number {n}",
                    conversation_scope(lane),
                    Trust.KNOWN,
                    lane,
                    "ann",
                    said_at=1_700_000_000_000 + n,
                )
                for n in range(start, start + 500)
            ],
            1_700_000_000_000,
        )


async def ask(instance: Instance, text: str) -> float:
    """One message through the whole road; seconds from put to the committed reply."""
    origin = Origin("http", "default", "bench", "ann", trust=Trust.KNOWN)
    start = time.perf_counter()
    received = await instance.receive(Inbound(origin, Content(text.encode(), text)))
    with instance.hub.listening(received.id) as queue:
        while True:
            story = await instance.operations.story(received.id)
            if story is not None and story.state == "done":
                break
            if story is not None and story.state in ("dead", "review"):
                raise RuntimeError(f"{show('message', received.id)} is {story.state}")
            await queue.get()
    return time.perf_counter() - start


async def alone(instance: Instance, text: str) -> float:
    """The same adapter call made alone: same lengths of system, history and question."""
    history = tuple(Record(Role.USER if n % 2 else Role.ASSISTANT, text) for n in range(30))
    start = time.perf_counter()
    await instance.model.answer(ModelRequest(Prompt("You answer.", history, text * 10, text)), lambda _: None)
    return time.perf_counter() - start


async def run(folder: Path, turns: int) -> dict[str, float]:
    """Turn and call in pairs; the difference is what keepsaid costs."""
    chance = random.Random(7)
    async with ModelServer(Script(default=Say("noted"))) as server:
        models = ModelsConfig(chat="openai/scripted", base_url=server.url, api_key="key")  # type: ignore[arg-type]
        config = Config(models=models, buffer=BufferConfig(window_ms=0))
        async with opened(Home.at(folder), config) as instance:
            await fill(instance, chance)
            await instance.start()
            overheads = []
            for n in range(turns + 20):
                text = "what about the " + " ".join(chance.choices(_WORDS, k=6)) + "?"
                call = await alone(instance, text)
                turn = await ask(instance, text)
                if n >= 20:
                    overheads.append(turn - call)
    overheads.sort()
    return {"turns": turns, **{f"p{p}_ms": percentile(overheads, p) * 1e3 for p in (50, 95, 99)}}


def measure(folder: Path, scale: float) -> dict[str, object]:
    """Overhead of a turn; `scale` 1 is 1,000 turns."""
    return {"overhead": asyncio.run(run(folder, max(50, int(1_000 * scale))))}
