"""`keepsaid memory people`: who is one person under several identities."""

from __future__ import annotations

from typing import Annotated

import typer

from keepsaid.domain.visibility import SeenIdentity
from keepsaid.interfaces.cli import console, remote
from keepsaid.interfaces.shapes import people_shape

app = typer.Typer(help="Link identities that belong to the same person.", rich_markup_mode=None)
_ROWS_MAX = 10_000
_WHO = "CHANNEL:ACCOUNT:SENDER as `keepsaid memory people ls` shows it, or owner."


@app.command("ls")
def ls(
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=_ROWS_MAX, help="How many identities.")] = 100,
) -> None:
    """List known identities, and which of them are joined as one person.

    What somebody is called identifies nobody: two of the same name are two until you join them.
    """
    from keepsaid.services.people import PeopleList, list_people  # noqa: PLC0415 - `--help` needs none of it

    found = console.session().read(lambda stores: list_people(stores.memories, limit)) or PeopleList((), ())
    spoke = {one.name: one for one in found.seen}
    joined = {one.name: person.id for person in found.people for one in person.identities}
    rows = [_cells(joined[name], name, spoke.get(name)) for name in joined]
    rows += [_cells("-", one.name, one) for one in found.seen if one.name not in joined]
    console.show_rows(
        people_shape(found), ("PERSON", "IDENTITY", "CALLED", "MEMORIES", "LAST"), rows, "nobody has said anything yet"
    )


def _cells(person: str, name: str, spoke: SeenIdentity | None) -> tuple[str, ...]:
    said = ("-", "0", "-") if spoke is None else (spoke.called or "-", str(spoke.memories), console.age(spoke.last_at))
    return person, name, *said


@app.command("join")
def join(names: Annotated[list[str], typer.Argument(help=f"Two or more identities: {_WHO}")]) -> None:
    """Join identities of the same person: their direct chats share memories.

    Whoever you join with owner hears what you hear in your direct chats. No stored memory changes; `split` undoes it.
    """
    person = remote.post("/v1/people/join", {"names": names})[0]["person"]
    told = ", ".join(str(one["name"]) for one in person["identities"])
    console.show({"person": person}, f"{person['id']}  {told}")


@app.command("split")
def split(name: Annotated[str, typer.Argument(help=_WHO)]) -> None:
    """Separate one identity from its person; it no longer shares memories with the others."""
    alone = remote.post("/v1/people/split", {"name": name})[0]["split"]
    console.show({"split": alone}, f"{alone}  is a person alone")
