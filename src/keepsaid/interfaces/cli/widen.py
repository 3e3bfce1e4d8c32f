"""`keepsaid memory widen`: what was said to few may be heard by more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.domain.ids import read
from keepsaid.domain.ids import show as name
from keepsaid.domain.visibility import Reach
from keepsaid.errors import InputError
from keepsaid.interfaces.cli.output import show
from keepsaid.interfaces.cli.remote import either
from keepsaid.interfaces.shapes import widened_shape

if TYPE_CHECKING:
    from keepsaid.app.instance import Instance

_TO = ", ".join(Reach)


def widen(
    memory: Annotated[str, typer.Argument(help="A memory: mem_...")],
    to: Annotated[str, typer.Option(help=f"How far it may be heard: {_TO}.")],
    reason: Annotated[str, typer.Option(help="Why; it is kept with the memory.")],
) -> None:
    """Let a memory be heard more widely: in its whole conversation, in its person's direct chats, or everywhere.

    Whoever hears it now hears it still. What came from outside stays in its lane.
    """
    memory_id = read("memory", memory)
    if memory_id is None:
        raise InputError(f"{memory} names no memory", safe="Nothing was changed.", hint="keepsaid memory ls")
    body = json.dumps({"to": to, "reason": reason}).encode()
    path = f"/v1/memories/{name('memory', memory_id)}/widen"

    async def done(instance: Instance) -> dict[str, Any]:
        from keepsaid.interfaces import people  # noqa: PLC0415

        return widened_shape(await people.widen(instance, memory_id, to, reason))

    told, _ = either(lambda remote: dict(remote.post(path, body)["widened"]), done)
    named = name("memory", memory_id)
    changed = "is heard as far already" if told["before"] == told["after"] else f"was {told['before']}"
    show({"memory": named, "widened": told}, f"{named}  {told['after']}  ({changed})")
