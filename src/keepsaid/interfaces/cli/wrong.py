"""`keepsaid memory wrong`: a memory was wrong for a turn; it is left out there from now on, and that is kept."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from keepsaid.domain.ids import read
from keepsaid.domain.ids import show as name
from keepsaid.errors import InputError
from keepsaid.interfaces.cli.output import show
from keepsaid.interfaces.cli.remote import either
from keepsaid.interfaces.judging import judge


def wrong(
    memory: Annotated[str, typer.Argument(help="A memory that a turn was shown: mem_...")],
    turn: Annotated[str, typer.Option(help="The turn that was shown it: trn_...; `keepsaid why` names it.")],
    undo: Annotated[bool, typer.Option("--undo", help="Take it back: it may come to mind again.")] = False,
) -> None:
    """Say that a memory was wrong for a turn: it is left out of the next turns there.

    The memory stays, and searches find it. What you said is kept, and `keepsaid why` shows it.
    """
    memory_id, turn_id = read("memory", memory), read("turn", turn)
    if memory_id is None or turn_id is None:
        no = f"{memory} names no memory" if memory_id is None else f"{turn} names no turn"
        raise InputError(no, safe="Nothing was changed.", hint="keepsaid why")
    body = json.dumps({"turn": name("turn", turn_id), "undo": undo}).encode()
    path = f"/v1/memories/{name('memory', memory_id)}/wrong"
    done, _ = either(
        lambda remote: bool(remote.post(path, body)["done"]),
        lambda instance: judge(instance, memory_id, turn_id, undo=undo),
    )
    named = {"memory": name("memory", memory_id), "turn": name("turn", turn_id)}
    if not done:
        what = "was not said to be wrong for" if undo else "was not shown to"
        raise InputError(
            f"{named['memory']} {what} {named['turn']}",
            safe="Nothing was changed.",
            hint=f"keepsaid why --memory {named['memory']}",
        )
    told = "may come to mind there again" if undo else "is left out there from the next turn on"
    show({**named, "wrong": not undo}, f"{named['memory']}  {told}")
