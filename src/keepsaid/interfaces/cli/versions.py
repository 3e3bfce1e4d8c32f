"""`keepsaid memory edit|history|pin|unpin|merge`: what was known when, put right by its owner; nothing is lost."""

from __future__ import annotations

from typing import Annotated

import typer

from keepsaid.domain.ids import read, when
from keepsaid.domain.ids import show as name
from keepsaid.domain.memory import Listener, Memory
from keepsaid.interfaces.cli.forgetting import undo
from keepsaid.interfaces.cli.options import id_of, refused
from keepsaid.interfaces.cli.output import Table, counted, show
from keepsaid.interfaces.cli.remote import post
from keepsaid.interfaces.cli.session import say, session
from keepsaid.interfaces.shapes import memory_shape

_OWNER = Listener(None, everything=True)
_LIST = "keepsaid memory ls"
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
    found = session().read(lambda stores: stores.memories.revisions.history(_OWNER, number))
    if not found:
        raise refused(f"there is no memory {memory}", _LIST)
    rows = tuple(map(_cells, found))
    shape = {"history": [memory_shape(one) for one in found]}
    show(shape, Table(("ID", "STATE", "SINCE", "UNTIL", "SOURCES", "MEMORY"), rows))


def _cells(memory: Memory) -> tuple[str, ...]:
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
    return id_of("memory", memory, _LIST)


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
