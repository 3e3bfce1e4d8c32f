"""`keepsaid collect`: which sessions wait to be read, reading them now, and reading a parked one again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.domain.ids import read, when
from keepsaid.domain.ids import show as name
from keepsaid.errors import InputError
from keepsaid.interfaces.cli.output import NOTHING, Table, counted, show
from keepsaid.interfaces.cli.remote import either, post
from keepsaid.interfaces.cli.session import say, session

if TYPE_CHECKING:
    from keepsaid.app.instance import Instance
    from keepsaid.app.stores import ReadOnlyStores
    from keepsaid.domain.session import CollectionLine

app = typer.Typer(help="What was said becomes memory: sessions that wait to be read.", rich_markup_mode=None)
_STATES = ("marked", "claimed", "parked")
_ROWS_MAX = 10_000
_FIND = "keepsaid collect ls"
Named = Annotated[str, typer.Argument(metavar="SESSION", help="A session, as `collect ls` shows: ses_...")]


@app.command("ls")
def ls(
    state: Annotated[str | None, typer.Option(help=f"Only sessions that are {', '.join(_STATES)}.")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=_ROWS_MAX, help="How many.")] = 20,
) -> None:
    """List sessions with unread records, those first that are due first."""
    if state is not None and state not in _STATES:
        raise typer.BadParameter(f"{state!r} is none of: {', '.join(_STATES)}", param_hint="--state")
    wanted = _STATES if state is None else (state,)

    async def found(stores: ReadOnlyStores) -> Sequence[CollectionLine]:
        return await stores.views.collections(wanted, limit)

    lines: Sequence[CollectionLine] = session().read(found, [])
    headings = ("SESSION", "STATE", "WHY", "READ", "MARK", "DUE", "TRIES", "CONVERSATION", "ERROR")
    show({"sessions": [_shape(one) for one in lines]}, Table(headings, tuple(map(_row, lines))))
    if not lines:
        say("no session waits" if session().stored() else NOTHING)


def _row(one: CollectionLine) -> tuple[str, ...]:
    due = when(one.due_at) or "-"
    place = name("session", one.session_id), one.state, one.reason or "-", str(one.read_until), str(one.marked or "-")
    return (*place, due, str(one.attempts), one.lane.conversation, one.error or "-")


def _shape(one: CollectionLine) -> dict[str, Any]:
    lane = one.lane
    place = {"channel": lane.channel, "account": lane.account, "conversation": lane.conversation, "key": lane.key}
    marks = {"marked": one.marked, "processed_until": one.processed_until, "read_until": one.read_until}
    stands = {"state": one.state, "reason": one.reason, "attempts": one.attempts, "error": one.error}
    due = when(one.due_at)
    return {"session": name("session", one.session_id), "lane": place, **stands, **marks, "due_at": due}


@app.command("run")
def run(
    thing: Annotated[str | None, typer.Argument(metavar="SESSION", help="Only this one: ses_...")] = None,
) -> None:
    """Read what is unread now, whether or not six records wait; a running instance reads it next."""
    number = None if thing is None else _session_of(thing)
    body = json.dumps({} if thing is None else {"session": thing}).encode()

    async def here(instance: Instance) -> tuple[int, int | None]:
        return await instance.collecting.mark(number), await instance.collecting.read_all()

    (marked, passages), up = either(lambda remote: (int(remote.post("/v1/collection/run", body)["marked"]), None), here)
    told = f"{counted(marked, 'session')} marked"
    told += "; the runtime reads next" if up else f", {counted(passages or 0, 'passage')} read"
    show({"marked": marked, "passages": passages}, told)


@app.command("requeue")
def requeue(thing: Named) -> None:
    """Read a parked session again; its attempts count anew."""
    number = _session_of(thing)
    if not post(f"/v1/collection/{name('session', number)}/requeue")[0]["requeued"]:
        raise InputError(f"{thing} is not parked", safe="Nothing was changed.", hint=f"{_FIND} --state parked")
    show({"session": name("session", number), "requeued": True}, f"{name('session', number)}  is read again")


def _session_of(thing: str) -> int:
    number = read("session", thing)
    if number is None:
        raise InputError(f"there is no session {thing}", safe="Nothing was changed.", hint=_FIND)
    return number
