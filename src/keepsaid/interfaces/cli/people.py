"""`keepsaid people`, and `memory edit|history|pin|unpin|merge`: what was known when, put right by a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from keepsaid.domain.ids import read, when
from keepsaid.domain.ids import show as name
from keepsaid.domain.memory import Listener, Memory
from keepsaid.domain.visibility import Person, SeenIdentity
from keepsaid.errors import InputError
from keepsaid.interfaces.cli.forgetting import undo
from keepsaid.interfaces.cli.output import NOTHING, Table, age_ms, counted, duration, show
from keepsaid.interfaces.cli.remote import post
from keepsaid.interfaces.cli.session import say, session
from keepsaid.interfaces.shapes import memory_shape, person_shape, seen_shape

if TYPE_CHECKING:
    from keepsaid.app.stores import ReadOnlyStores


app = typer.Typer(help="Who is one person under several identities.", rich_markup_mode=None)
_ROWS_MAX = 10_000
_WHO = "CHANNEL:ACCOUNT:SENDER as `keepsaid people ls` shows it, or owner."


@app.command("ls")
def ls(
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=_ROWS_MAX, help="How many identities.")] = 100,
) -> None:
    """List identities that something is remembered from, and which of them are one person.

    What somebody is called identifies nobody: two of the same name are two until you join them.
    """

    async def known(stores: ReadOnlyStores) -> tuple[Sequence[Person], Sequence[SeenIdentity]]:
        return await stores.memories.people.everybody(), await stores.memories.people.seen(limit)

    nobody: tuple[Sequence[Person], Sequence[SeenIdentity]] = (), ()
    people, seen = session().read(known, nobody)
    spoke = {one.name: one for one in seen}
    joined = {one.name: person.id for person in people for one in person.identities}
    rows = [_cells(joined[name], name, spoke.get(name)) for name in joined]
    rows += [_cells("-", one.name, one) for one in seen if one.name not in joined]
    shape = {"people": [person_shape(one) for one in people], "seen": [seen_shape(one) for one in seen]}
    show(shape, Table(("PERSON", "IDENTITY", "CALLED", "MEMORIES", "LAST"), tuple(rows)))
    if not rows:
        say("nobody has said anything yet" if session().stored() else NOTHING)


def _cells(person: str, name: str, spoke: SeenIdentity | None) -> tuple[str, ...]:
    if spoke is None:
        return person, name, "-", "0", "-"
    return person, name, spoke.called or "-", str(spoke.memories), duration(age_ms(spoke.last_at))


@app.command("join")
def join(names: Annotated[list[str], typer.Argument(help=f"Two or more: {_WHO}")]) -> None:
    """Make one person of several identities: in their direct chats they hear what is for each of them.

    Whoever you join with owner hears what you hear in your direct chats. No stored memory changes; `split` undoes it.
    """
    person = post("/v1/people/join", {"names": names})[0]["person"]
    told = ", ".join(str(one["name"]) for one in person["identities"])
    show({"person": person}, f"{person['id']}  {told}")


@app.command("split")
def split(name: Annotated[str, typer.Argument(help=_WHO)]) -> None:
    """Let one identity be a person alone again; it hears nothing of the others from this moment on."""
    alone = post("/v1/people/split", {"name": name})[0]["split"]
    show({"split": alone}, f"{alone}  is a person alone")


_OWNER = Listener(None, everything=True)
Named = Annotated[str, typer.Argument(help="A memory: mem_...")]
Several = Annotated[list[str], typer.Argument(metavar="ID...", help="Memories: mem_...")]


def edit_one(
    memory: Named,
    text: Annotated[str, typer.Argument(help="What it is to say from now on.")],
    value: Annotated[str, typer.Option(help="Its value, where it says one thing about someone: Porto.")] = "",
) -> None:
    """Put a memory right. What it said before is kept as past, and `history` shows it.

    Your word outranks what is learned from anything said before it.
    """
    number = _number(memory)

    told, _ = post(f"/v1/memories/{name('memory', number)}/edit", {"text": text, "value": value})
    show({"edited": name("memory", number), **told}, f"{told['id']}  stands in place of {name('memory', number)}")


def history(memory: Named) -> None:
    """Show all that was known of the same thing: since when and until when it held, and where it came from."""
    number = _number(memory)

    async def versions(stores: ReadOnlyStores) -> Sequence[Memory]:
        return await stores.memories.truth.history(_OWNER, number)

    found: Sequence[Memory] = session().read(versions, ())
    if not found:
        raise _nothing(memory)
    rows = tuple(_cells_versions(one) for one in found)
    shape = {"history": [memory_shape(one) for one in found]}
    show(shape, Table(("ID", "STATE", "SINCE", "UNTIL", "SOURCES", "MEMORY"), rows))


def _cells_versions(memory: Memory) -> tuple[str, ...]:
    since, until = when(memory.holds_from), when(memory.valid_to)
    sources = ", ".join(f"{one.kind}:{one.ref}" for one in memory.new.sources)
    return name("memory", memory.id), memory.state, since or "-", until or "-", sources or "-", memory.text


def pin_one(memory: Named) -> None:
    """Pin a memory: it never fades."""
    _pin(memory, pinned=True)


def unpin(memory: Named) -> None:
    """Take the pin out of a memory."""
    _pin(memory, pinned=False)


def _pin(memory: str, *, pinned: bool) -> None:
    number = _number(memory)
    post(f"/v1/memories/{name('memory', number)}/pin", {"pinned": pinned})
    show({"id": name("memory", number), "pinned": pinned}, f"{name('memory', number)}  {'' if pinned else 'un'}pinned")


def archive(memories: Several) -> None:
    """Put memories away: they come to mind no more, and are found where the archive is searched."""
    _put_away(memories, back=False)


def restore(
    memories: Annotated[list[str], typer.Argument(metavar="ID...", help="Memories: mem_..., or a request: fgt_...")],
) -> None:
    """Bring back what was archived, or all that a request had forgotten while that can be undone."""
    if len(memories) == 1 and read("forgetting", memories[0]) is not None and memories[0].startswith("fgt_"):
        undo(memories[0])
        return
    _put_away(memories, back=True)


def _put_away(memories: list[str], *, back: bool) -> None:
    numbers = [_number(one) for one in memories]
    told, _ = post("/v1/memories/archive", {"ids": [name("memory", one) for one in numbers], "back": back})
    what = "brought back" if back else "archived"
    show(told, *(f"{one}  {what}" for one in told["ids"]))


def merge_all(
    memory: Named,
    others: Annotated[list[str], typer.Argument(help="Memories that say the same: mem_...")],
) -> None:
    """Have one memory stand for others that say the same, with their sources; they are kept, and found no more."""
    number, numbers = _number(memory), [_number(one) for one in others]
    names = [name("memory", one) for one in numbers]
    post(f"/v1/memories/{name('memory', number)}/merge", {"others": names})
    show(
        {"id": name("memory", number), "merged": names},
        f"{name('memory', number)}  stands for {counted(len(names), 'other')}",
    )
    say(f"keepsaid memory history {name('memory', number)} shows them")


def _number(memory: str) -> int:
    number = read("memory", memory)
    if number is None:
        raise _nothing(memory)
    return number


def _nothing(memory: str) -> InputError:
    return InputError(f"there is no memory {memory}", safe="Nothing was changed.", hint="keepsaid memory ls")


def add_to(app: typer.Typer) -> None:
    """Put the commands into an app."""
    for called, command in (
        ("edit", edit_one),
        ("history", history),
        ("pin", pin_one),
        ("unpin", unpin),
        ("merge", merge_all),
        ("archive", archive),
        ("restore", restore),
    ):
        app.command(called)(command)
