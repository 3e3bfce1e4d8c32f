"""`keepsaid memory entities`: the people, places, organisations and things that memories mention."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keepsaid.errors import InputError
from keepsaid.interfaces.cli import console, remote
from keepsaid.interfaces.shapes import entity_page_shape, entity_shape
from keepsaid.text.normal import counted

if TYPE_CHECKING:
    from keepsaid.domain.entities import Entity, EntityPage

app = typer.Typer(help="List, show and merge what memories mention.", rich_markup_mode=None)
_ROWS_MAX = 10_000
_LIST = "keepsaid memory entities ls"
_WHICH = "A name, or a key as `keepsaid memory entities ls` shows it."


@app.command("ls")
def ls(
    kind: Annotated[str, typer.Option(help="Only these: person, place, organisation or thing.")] = "",
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=_ROWS_MAX, help="How many entities.")] = 50,
) -> None:
    """List what memories mention by name, the most mentioned first.

    Names are found by capital letters and facts without a model, and named by the model that extracts, if there is one.
    """
    from keepsaid.services.entities import EntityService, kind_in  # noqa: PLC0415 - `--help` needs none of it

    kind_in(kind)

    async def listed(stores: console.Stores) -> Sequence[Entity]:
        return await EntityService(stores.memories).list(kind, limit)

    found = console.session().read(listed) or ()
    rows = [(one.kind, one.names[0], str(one.memories), console.age(one.last_at), one.key) for one in found]
    shape = {"entities": [entity_shape(one) for one in found]}
    console.show_rows(shape, ("KIND", "NAME", "MEMORIES", "LAST", "KEY"), rows, "no memory mentions anything by name")


@app.command("show")
def show(name: Annotated[str, typer.Argument(help=_WHICH)]) -> None:
    """Show the page of an entity: facts that hold, facts that held before, and messages, each with its source."""
    from keepsaid.services.entities import EntityService, markdown  # noqa: PLC0415

    async def read(stores: console.Stores) -> tuple[Sequence[EntityPage], int]:
        return await EntityService(stores.memories).pages(name), stores.clock.now_ms()

    found = console.session().read(read)
    if found is None:
        raise InputError(f"no memory mentions {name!r}", hint=_LIST)
    pages, at = found
    lines = [line for n, page in enumerate(pages) for line in (*([""] if n else []), *markdown(page))]
    console.show({"pages": [entity_page_shape(one, at) for one in pages]}, *lines)


@app.command("merge")
def merge(
    into: Annotated[str, typer.Argument(help=_WHICH)], other: Annotated[str, typer.Argument(help=_WHICH)]
) -> None:
    """Make one entity of two that are the same: mentions of the second become mentions of the first.

    No memory changes. Later mentions by either name count for the entity that stays. It cannot be taken back.
    """
    told = remote.post("/v1/entities/merge", {"into": into, "other": other})[0]
    console.show(told, f"{told['entity']['key']}  {counted(told['moved'], 'mention')} moved")


@app.command("export")
def export(
    folder: Annotated[Path, typer.Argument(help="Where the pages are written; it is made if it is not there.")],
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=_ROWS_MAX, help="How many entities.")] = 1_000,
) -> None:
    """Write a Markdown page for each entity, and an index. They hold what people said: only you can read the files."""
    from keepsaid.app.backups import note_backup  # noqa: PLC0415 - `--help` needs none of it
    from keepsaid.services.entities import EntityService, write_pages  # noqa: PLC0415

    async def read(stores: console.Stores) -> Sequence[EntityPage]:
        return await EntityService(stores.memories).all_pages(limit)

    pages = console.session().read(read)
    if not pages:
        raise InputError("no memory mentions anything by name", safe="Nothing was written.", hint=_LIST)
    home, place, now = console.session().home, folder.resolve(), console.now_ms()
    write_pages(folder, pages, lambda: note_backup(home, place, now))
    console.show({"folder": str(folder), "pages": len(pages)}, f"exported  {folder}   {counted(len(pages), 'page')}")
