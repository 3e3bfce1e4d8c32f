"""Turns: what a turn adds to its model call, at 10,000 episodes, against an instant local model server."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from unittest.mock import patch

from pydantic import SecretStr

from bench.contender import Absent
from bench.disk import percentile
from bench.servers import postgres
from keepsaid.adapters.models.choose import LazyChat
from keepsaid.adapters.models.extractor import MARK_DONE
from keepsaid.adapters.models.memory_calls import SUMMARY_TOOL
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.config.services import StoreConfig
from keepsaid.config.settings import BufferConfig, ModelsConfig
from keepsaid.domain.context import HEADINGS
from keepsaid.domain.memory import Kind, NewMemory, conversation_scope
from keepsaid.domain.message import Content, Inbound, Lane, Origin, Trust
from keepsaid.domain.turn import ModelAnswer
from keepsaid.ports.model import Delta, ModelRequest, at_once
from keepsaid.testing.model_script import Call, ChatRequest, Reaction, Say, Script
from keepsaid.testing.model_server import ModelServer

EPISODES = 10_000
_VOCABULARY = 8_000
_WARM_UP = 20
_LOOK_S, _LOOKS_MAX, _IDLE_SHARE = 0.005, 200, 0.1
"""People do not write in the millisecond after an answer: first what follows it ends, its episodes, what is learned and
summed up, so that it is neither charged to the next turn nor to the call alone."""


class Vocabulary:
    """Made-up words whose frequencies fall off as those of a language do (Zipf)."""

    def __init__(self, chance: random.Random) -> None:
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._chance = chance
        self._words = ["".join(chance.choices(letters, k=chance.randint(3, 9))) for _ in range(_VOCABULARY)]
        self._weights = list(accumulate(1 / (rank + 50) for rank in range(_VOCABULARY)))

    def say(self, count: int) -> str:
        """A sentence of `count` words."""
        return " ".join(self._chance.choices(self._words, cum_weights=self._weights, k=count))


async def rested() -> None:
    """Wait until the process does next to nothing, a second at most."""
    for _ in range(_LOOKS_MAX):
        before = time.process_time()
        await asyncio.sleep(_LOOK_S)
        if time.process_time() - before < _LOOK_S * _IDLE_SHARE:
            return


class Overheard:
    """Keeps the last request of the product's own model, so that the call can be made again alone."""

    def __init__(self) -> None:
        self._last: tuple[LazyChat, ModelRequest] | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Within it every call is noted and passed on."""
        answer = LazyChat.answer

        async def noted(chat: LazyChat, request: ModelRequest, delta: Delta) -> ModelAnswer:
            self._last = chat, request
            return await answer(chat, request, delta)

        with patch.object(LazyChat, "answer", noted):
            yield

    async def alone(self) -> float:
        """Seconds of the call the turn has just made, made once more with nothing around it."""
        assert self._last is not None
        chat, request = self._last
        start = time.perf_counter()
        await chat.answer(replace(request, begun=at_once), lambda _: None)
        return time.perf_counter() - start


def react(request: ChatRequest) -> Reaction:
    """What the model answers: a word; where one is asked for, a summary; and that nothing is worth remembering."""
    if SUMMARY_TOOL in request.tool_names:
        return Call(SUMMARY_TOOL, {name: [f"{name} so far", "and more"] for name in HEADINGS})
    if MARK_DONE in request.tool_names:
        return Call(MARK_DONE, {})
    return Say("noted")


async def fill(instance: Instance, words: Vocabulary) -> None:
    """Ten thousand episodes of the lane that is asked."""
    lane = Lane("http", "default", "bench", "root:bench")
    for start in range(0, EPISODES, 500):
        await instance.memories.keep(
            [
                NewMemory(
                    f"bench:{n}",
                    Kind.EPISODE,
                    words.say(12),
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
        while (await queue.get()).kind != "settled":
            pass
    return time.perf_counter() - start


async def run(folder: Path, turns: int, url: str | None = None) -> dict[str, float]:
    """Turn and call in pairs; the difference is what keepsaid costs. With `url`, the stores are in a database."""
    words = Vocabulary(random.Random(7))
    async with ModelServer(Script(default=react)) as server:
        models = ModelsConfig.model_validate({"chat": "openai/scripted", "base_url": server.url, "api_key": "key"})
        store = StoreConfig(url=SecretStr(url) if url else None)
        config = Config(models=models, buffer=BufferConfig(window_ms=0), store=store)
        overheard = Overheard()
        async with opened(Home.at(folder), config) as instance:
            await fill(instance, words)
            await instance.start()
            took, calls = [], []
            for n in range(turns + _WARM_UP):
                with overheard.listening():
                    turn = await ask(instance, words.say(8))
                await rested()
                call = await overheard.alone()
                await rested()
                if n >= _WARM_UP:
                    took.append((turn - call, turn))
                    calls.append(call)
    overheads, whole = sorted(one[0] for one in took), sorted(one[1] for one in took)
    figures = {f"p{p}_ms": percentile(overheads, p) * 1e3 for p in (50, 95, 99)}
    return {
        "turns": turns,
        **figures,
        "turn_p50_ms": percentile(whole, 50) * 1e3,
        "call_alone_p50_ms": percentile(sorted(calls), 50) * 1e3,
    }


def measure(folder: Path, scale: float) -> dict[str, object]:
    """Overhead of a turn; `scale` 1 is 1,000 turns. Then the same with the stores in PostgreSQL, and the ratio."""
    count = max(50, int(1_000 * scale))
    ours = asyncio.run(run(folder / "files", count))
    try:
        there = asyncio.run(_in_postgres(folder, count))
    except Absent as reason:
        return {"overhead": ours, "overhead_postgres": {"skipped": str(reason)}}
    times = {name: there[name] / ours[name] for name in ("p50_ms", "p95_ms")}
    return {"overhead": ours, "overhead_postgres": there, "times": times}


async def _in_postgres(folder: Path, count: int) -> dict[str, float]:
    for place in (folder.parent, folder):
        place.chmod(0o711)  # a PostgreSQL that runs as another user has to find its files below
    server = folder / "server"
    server.mkdir()
    async with postgres(server) as address:
        return await run(folder / "home", count, f"postgresql:///?{address.replace(' ', '&')}")
