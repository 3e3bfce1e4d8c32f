"""`keepsaid memory extract`: which sessions wait for the extraction of memories, and starting it now or again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from keepsaid.domain.ids import show, when
from keepsaid.interfaces.cli import console, remote
from keepsaid.interfaces.shapes import Shape, fields_of, lane_shape
from keepsaid.text.normal import counted

if TYPE_CHECKING:
    from keepsaid.app.instance import Instance
    from keepsaid.domain.session import CollectionLine

app = typer.Typer(help="Run and inspect the extraction of memories from what was said.", rich_markup_mode=None)
_STATES = ("marked", "claimed", "parked")
_FIND = "keepsaid memory extract ls"
Named = Annotated[str, typer.Argument(metavar="SESSION", help="A session, as `memory extract ls` shows: ses_...")]


@app.command("ls")
def ls(
    state: Annotated[str | None, typer.Option(help=f"Only sessions that are {', '.join(_STATES)}.")] = None,
    limit: console.Limit = 20,
) -> None:
    """List sessions that wait for extraction, next due first."""
    console.check_choice("--state", state, _STATES)
    states = _STATES if state is None else (state,)
    lines = console.session().read(lambda stores: stores.views.collections(states, limit)) or ()
    headings = ("SESSION", "STATE", "WHY", "READ", "MARK", "DUE", "TRIES", "CONVERSATION", "ERROR")
    console.show_rows({"sessions": [_shape(one) for one in lines]}, headings, map(_row, lines), "no session waits")


def _row(one: CollectionLine) -> tuple[str, ...]:
    read = str(one.read_until), str(one.marked or "-"), when(one.due_at) or "-", str(one.attempts)
    return show("session", one.session_id), one.state, one.reason or "-", *read, one.lane.conversation, one.error or "-"


def _shape(one: CollectionLine) -> Shape:
    fields = "state", "reason", "attempts", "error", "marked", "processed_until", "read_until"
    place = {"session": show("session", one.session_id), "lane": lane_shape(one.lane)}
    return {**place, **fields_of(one, *fields), "due_at": when(one.due_at)}


@app.command("run")
def run(thing: Annotated[str | None, typer.Argument(metavar="SESSION", help="Only this one: ses_...")] = None) -> None:
    """Extract memories now, even where few records wait; a running instance does it next."""
    number = None if thing is None else console.id_of("session", thing, _FIND)
    body = json.dumps({} if thing is None else {"session": thing}).encode()

    async def here(instance: Instance) -> tuple[int, int | None]:
        return await instance.collecting.mark(number), await instance.collecting.read_all()

    def there(runtime: remote.Remote) -> tuple[int, int | None]:
        return int(runtime.post("/v1/collection/run", body)["marked"]), None

    (marked, passages), up = remote.either(there, here)
    told = f"{counted(marked, 'session')} marked"
    told += "; the runtime reads next" if up else f", {counted(passages or 0, 'passage')} read"
    console.show({"marked": marked, "passages": passages}, told)


@app.command("requeue")
def requeue(thing: Named) -> None:
    """Extract from a parked session again; its attempts start from zero."""
    name = console.name_of("session", thing, _FIND)
    if not remote.post(f"/v1/collection/{name}/requeue")[0]["requeued"]:
        raise console.refused(f"{thing} is not parked", f"{_FIND} --state parked")
    console.show({"session": name, "requeued": True}, f"{name}  is read again")
