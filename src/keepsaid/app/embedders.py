"""Embedders: which one a config means."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path

from keepsaid.adapters.embedders.endpoint import Endpoint, revision_of
from keepsaid.adapters.embedders.hashed import MODEL as HASHED_MODEL
from keepsaid.adapters.embedders.hashed import Hashed
from keepsaid.adapters.embedders.minilm import MINILM_WHEEL, MODEL, Came, MiniLM, fetch, is_there
from keepsaid.adapters.embedders.minilm import SPACE as MINILM_SPACE
from keepsaid.adapters.system.clock import SystemClock
from keepsaid.config import Config, Home
from keepsaid.domain.search import VectorSpace
from keepsaid.errors import EmbedderError
from keepsaid.ports.recall import Embedder

LOCAL = "minilm"
_TRIES = 9
_FOLDER = "all-MiniLM-L6-v2"


def model_folder(home: Home, config: Config) -> Path:
    """Where the files of the local model are, or will be."""
    return home.store(config.memory.models) / _FOLDER


def embedder_of(home: Home, config: Config, closing: AsyncExitStack) -> Embedder | None:
    """The embedder a config means; None where there is none. `closing` closes it."""
    found = _chosen(home, config)
    if found is not None:
        closing.push_async_callback(found.close)
    return found


def _chosen(home: Home, config: Config) -> MiniLM | Hashed | Endpoint | None:
    name, folder = config.memory.embedder, model_folder(home, config)
    if name == LOCAL or (name == "auto" and is_there(folder)):
        return MiniLM(folder)
    if name == "hashed":
        return Hashed()
    if name == "endpoint":
        return Endpoint(config.memory.embedder_url, config.memory.embedder_model, _key(config))
    return None


def former_of(home: Home, config: Config, closing: AsyncExitStack) -> Callable[[VectorSpace], Embedder | None]:
    """Finds the embedder that filled a space, while its weights or its endpoint are at hand; `closing` closes it."""
    folder, memory = model_folder(home, config), config.memory

    @cache
    def former(space: VectorSpace) -> Embedder | None:
        found: MiniLM | Hashed | Endpoint | None = None
        if space == MINILM_SPACE and is_there(folder):
            found = MiniLM(folder)
        elif space.model == HASHED_MODEL:
            found = Hashed(space.revision)
        elif space.revision == revision_of(memory.embedder_url):
            found = Endpoint(memory.embedder_url, space.model, _key(config))
        if found is not None:
            closing.push_async_callback(found.close)
        return found

    return former


def _key(config: Config) -> str | None:
    key = config.memory.embedder_key
    return key.get_secret_value() if key else None


def local_model(home: Home, config: Config) -> tuple[str, Path, int, bool]:
    """The model that can run here: name, folder, megabytes to download, and whether it is there."""
    folder = model_folder(home, config)
    return MODEL, folder, MINILM_WHEEL.megabytes, is_there(folder)


def pull_local(home: Home, config: Config, came: Came) -> None:
    """Download the local model; `came` hears how many megabytes did. Raises EmbedderError with nothing changed."""
    fetch(model_folder(home, config), came)


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
