"""Partials: what is written beside its place until it is whole; what a kill left of one goes with the next."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NAMED = "keepsaid-"
"""How names begin that we give ourselves, with the time behind it."""

_LEFT = re.compile(r"\.(?P<of>.+)\.[0-9a-f]{8}\.partial")


def partial_of(target: Path, folder: Path) -> Path:
    """A free name in a folder for what is to become `target`."""
    return folder / f".{target.name}.{secrets.token_hex(4)}.partial"


@contextmanager
def held(partial: Path) -> Iterator[None]:
    """A lock for as long as we live, so that nobody takes it for left; raises OSError where another has it."""
    number = os.open(partial, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(number)


def clear(target: Path, *folders: Path) -> None:
    """Remove what is left in the folders of those who were killed: nothing forgotten is to be found in it.

    It is ours where it was to become the target, or something that we had named.
    """
    for partial in (one for folder in folders for one in folder.glob(".*.partial")):
        found = _LEFT.fullmatch(partial.name)
        if found and (found["of"] == target.name or found["of"].startswith(NAMED)):
            with suppress(OSError), held(partial):  # somebody is at it, or it is not ours
                shutil.rmtree(partial) if partial.is_dir() else partial.unlink()
