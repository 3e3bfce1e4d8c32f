"""`keepsaid data`: backup beside a running instance, restore, and what to do after a file of the stores was lost."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from keepsaid.config.durable import sync, sync_tree
from keepsaid.domain.retention import Prunable
from keepsaid.errors import HomeBusy, HomeError, StoreError
from keepsaid.interfaces.cli.bundle import export, import_
from keepsaid.interfaces.cli.output import SCHEMA_VERSION, counted, show
from keepsaid.interfaces.cli.remote import post
from keepsaid.interfaces.cli.session import is_text, say, session
from keepsaid.interfaces.partials import clear, held, partial_of

if TYPE_CHECKING:
    from keepsaid.config import Home


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


def accept_loss(
    yes: Annotated[bool, typer.Option("--yes", help="Accept it, instead of only naming what is lost.")] = False,
) -> None:
    """Go on with what is left when a database or its log was lost, or belongs to another home.

    Names what is lost and, with --yes, accepts the files as they are. A missing file is created
    empty; nothing is deleted. If you have the lost file or a backup, use that instead.
    """
    from keepsaid.app.stores import accept_stores, alone, pair_trouble  # noqa: PLC0415

    home, config = session().home, session().config()
    trouble = pair_trouble(home, config)
    if trouble is None:
        show({"accepted": False, "lost": None}, "nothing is lost: the stores are as keepsaid left them")
        return
    if "accept-loss" not in trouble.hint:
        raise trouble
    if not yes:
        show({"accepted": False, "lost": trouble.what}, f"{trouble.what}.", trouble.safe)
        say("to go on with what is left: keepsaid data accept-loss --yes")
        return
    home.make()
    with alone(home, config) as is_alone:
        if not is_alone:
            raise HomeBusy("another process is running this home")
        accept_stores(home, config)
    show({"accepted": True, "lost": trouble.what}, f"accepted: {trouble.what}")
    say("try: keepsaid status")


app = typer.Typer(help="Back up, restore, export, import and prune.", rich_markup_mode=None)
app.command("export")(export)
app.command("import")(import_)
app.command("accept-loss")(accept_loss)
_MANIFEST = "manifest.json"
_STORES = {"buffer": "buffer.db", "memory": "memory.db"}
_COUNTS = ("messages", "batches", "keys")
