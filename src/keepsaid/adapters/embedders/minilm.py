"""all-MiniLM-L6-v2 on this machine: its files in a folder, checked by hash, run in numpy or by onnxruntime."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from keepsaid.domain.search import VectorSpace
from keepsaid.errors import EmbedderError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from keepsaid.adapters.embedders.bert import Bert

T = TypeVar("T")

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
REVISION = "1110a243"
DIMENSION = 384
WEIGHTS, TOKENS = "model.safetensors", "tokenizer.json"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENS_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

SPACE = VectorSpace(MODEL, REVISION, DIMENSION, bytes.fromhex(WEIGHTS_SHA256))

_TOKENS_MAX = 256
_AT_ONCE = 2
"""Texts that go through the model together. A query can come in after every layer: some 30 ms for two long texts."""


def is_there(folder: Path) -> bool:
    """Whether the model's files are in a folder; what they hold is checked when they are read."""
    return (folder / WEIGHTS).is_file() and (folder / TOKENS).is_file()


def check(folder: Path) -> None:
    """Raises EmbedderError when the files are not there or not the ones that are known."""
    for name, known in ((WEIGHTS, WEIGHTS_SHA256), (TOKENS, TOKENS_SHA256)):
        try:
            with (folder / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise EmbedderError(f"{MODEL} is not in {folder}: {name} cannot be read ({error.strerror})") from error
        if found != known:
            raise EmbedderError(f"{folder / name} is not that of {MODEL}: its SHA-256 is {found[:16]}...")


class MiniLM:
    """One thread embeds, a few texts at a time, so that a query never waits for more than those."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="keepsaid-embed")
        self._model: tuple[Bert, Tokenizer] | None = None

    async def space(self) -> VectorSpace:
        """The space of these weights; reads and checks them when first asked. Raises EmbedderError."""
        if self._model is None:
            await self._run(self._loaded)
        return SPACE

    async def query(self, text: str) -> bytes:
        """The vector of a query. Raises EmbedderError."""
        [vector] = await self._run(lambda: [made for step in self._steps([text]) if step for made in step])
        return vector

    async def texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        """The vectors of texts, in order. Raises EmbedderError."""
        made: list[bytes] = []
        for start in range(0, len(texts), _AT_ONCE):
            steps = self._steps(texts[start : start + _AT_ONCE])
            while (vectors := await self._run(partial(next, steps))) is None:
                pass
            made += vectors
        return made

    async def close(self) -> None:
        """Wait for what is being embedded."""
        await asyncio.to_thread(self._thread.shutdown)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _steps(self, texts: Sequence[str]) -> Iterator[list[bytes] | None]:
        """None after each layer, then the vectors."""
        model, tokens = self._loaded()
        last = None
        for step in model.steps([encoded.ids for encoded in tokens.encode_batch(list(texts))]):
            last = step
            yield None
        assert last is not None, "a model has layers"
        yield [row.tobytes() for row in last]

    def _loaded(self) -> tuple[Bert, Tokenizer]:
        if self._model is None:
            from tokenizers import Tokenizer  # noqa: PLC0415 - a program that embeds nothing starts without

            from keepsaid.adapters.embedders.bert import Bert  # noqa: PLC0415 - imports numpy
            from keepsaid.adapters.embedders.onnx_layer import OnnxLayer, is_installed  # noqa: PLC0415 - imports numpy

            check(self._folder)
            tokens = Tokenizer.from_file(str(self._folder / TOKENS))
            tokens.no_padding()
            tokens.enable_truncation(_TOKENS_MAX)
            weights = self._folder / WEIGHTS
            self._model = Bert(weights, OnnxLayer) if is_installed() else Bert(weights), tokens
        return self._model
