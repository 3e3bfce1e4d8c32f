"""Folders that are there whole or not at all: what was killed while it made one leaves nothing for good."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from keepsaid.errors import HomeError
from keepsaid.interfaces.cli.session import is_text

_LEFT = re.compile(r"\.(?P<of>.+)\.[a-z0-9_]{8}\.partial")
NAMED = "keepsaid-"
"""How folders begin that are named by us, with the time behind it."""


@contextmanager
def whole(made: Path) -> Iterator[Path]:
    """A new folder that takes the place of `made` when the block ends well, and is gone when it does not.

    An empty folder that is there stays the one it is: it may be a mount, or the one a shell stands in.
    Raises HomeError.
    """
    if not is_text(made):
        raise HomeError("the path is not UTF-8", safe="Nothing was written.", hint="choose another name")
    clear(made)
    inside, partial = made.is_dir(), None
    try:
        made.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(".partial", f".{made.name}.", made if inside else made.parent))
        with _held(partial):
            yield partial
            if inside:
                for child in list(partial.iterdir()):
                    child.rename(made / child.name)
            else:
                partial.rename(made)
    except OSError as error:
        raise HomeError(f"{made} cannot be written ({error.strerror})", safe="The source was not touched.") from error
    finally:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)


def clear(made: Path) -> None:
    """Remove what was left by who made this folder, or one beside it that we named, and was killed."""
    for folder in (*made.parent.glob(".*.partial"), *made.glob(".*.partial")):
        found = _LEFT.fullmatch(folder.name)
        if found and folder.is_dir() and (found["of"] == made.name or found["of"].startswith(NAMED)):
            with suppress(OSError), _held(folder):  # somebody is at it, or it is not ours
                shutil.rmtree(folder)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """A lock for as long as we live, so that nobody takes the folder for left; raises OSError where another has it."""
    number = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(number)
