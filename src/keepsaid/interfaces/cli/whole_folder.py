"""Folders that are there whole or not at all: what was killed while it made one leaves nothing for good."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keepsaid.config.durable import sync, sync_tree
from keepsaid.errors import HomeError
from keepsaid.interfaces.cli.session import is_text
from keepsaid.interfaces.partials import clear, held, partial_of


@contextmanager
def whole(made: Path) -> Iterator[Path]:
    """A new folder that takes the place of `made`, on the disk, when the block ends well, and is gone when it does not.

    An empty folder that is there stays the one it is: it may be a mount, or the one a shell stands in.
    Raises HomeError.
    """
    if not is_text(made):
        raise HomeError("the path is not UTF-8", safe="Nothing was written.", hint="choose another name")
    clear(made, made.parent, made)
    inside, partial = made.is_dir(), None
    try:
        made.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = partial_of(made, made if inside else made.parent)
        partial.mkdir(mode=0o700)
        with held(partial):
            yield partial
            sync_tree(partial)
            if inside:
                for child in list(partial.iterdir()):
                    child.rename(made / child.name)
                sync(made)
            else:
                partial.rename(made)
                sync(made.parent)
    except OSError as error:
        raise HomeError(f"{made} cannot be written ({error.strerror})", safe="The source was not touched.") from error
    finally:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)
