"""`keepsaid memory`: what is remembered; the command line is the owner and hears everything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.domain.ids import moment, read
from keepsaid.domain.ids import show as name
from keepsaid.domain.memory import IMPORTANCE, Kind, Listener, Memory, Recalled
from keepsaid.domain.redaction import counted_kinds
from keepsaid.domain.visibility import Widened
from keepsaid.errors import InputError
from keepsaid.interfaces.cli.audit import audit
from keepsaid.interfaces.cli.forgetting import forget, forgotten
from keepsaid.interfaces.cli.given import from_stdin
from keepsaid.interfaces.cli.output import NOTHING, Table, age_ms, counted, duration, facts, show, told
from keepsaid.interfaces.cli.remote import either
from keepsaid.interfaces.cli.session import say, session
from keepsaid.interfaces.cli.upkeep import maintain, stats
from keepsaid.interfaces.cli.versions import add_to
from keepsaid.interfaces.cli.widen import widen
from keepsaid.interfaces.cli.wrong import wrong
from keepsaid.interfaces.shapes import memory_shape, widened_shape

if TYPE_CHECKING:
    from keepsaid.app.instance import Instance
    from keepsaid.app.stores import Reading

app = typer.Typer(help="What is remembered.", rich_markup_mode=None)
app.command("wrong")(wrong)
app.command("audit")(audit)
app.command("maintain")(maintain)
app.command("stats")(stats)
app.command("widen")(widen)
app.command("forget")(forget)
app.command("forgotten")(forgotten)
add_to(app)
_OWNER = Listener(None, everything=True)
_KINDS = ", ".join(Kind)
_ADDED = ", ".join(str(kind) for kind in IMPORTANCE)
_ROWS_MAX = 10_000
_FIELD_WIDTH = 14


@app.command("search")
def search(
    query: Annotated[str, typer.Argument(help="What to look for; any text will do.")],
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=_ROWS_MAX, help="How many.")] = 10,
    archived: Annotated[bool, typer.Option("--archived", help="Search what was archived instead.")] = False,
    as_of: Annotated[str, typer.Option(help="Only what held true then: a day (2026-05-04) or a time, UTC.")] = "",
) -> None:
    """Search memory; best match first, and what holds now before what held once."""
    at = _time(as_of)

    async def recalled(stores: Reading) -> Recalled:
        searched = stores.archive if archived else stores.recall
        return await searched.recall(_OWNER, query, limit, at)

    found = session().read(recalled, Recalled(()))
    hits = [
        {"leg": hit.leg, "rank": hit.rank, "score": round(hit.score, 4), "memory": memory_shape(hit.memory)}
        for hit in found.hits
    ]
    rows = tuple(
        (str(place), f"{hit.score:.3f}", f"{hit.leg} #{hit.rank}", *_cells(hit.memory))
        for place, hit in enumerate(found.hits, start=1)
    )
    shape = {"hits": hits, "missing": list(found.missing), "took_ms": round(found.took_ms, 2)}
    show(shape, Table(("#", "SCORE", "LEG", "ID", "KIND", "AGE", "FROM", "MEMORY"), rows))
    for missing in found.missing:
        say(f"left out: {missing}")
    if not found.hits:
        say("nothing matches" if session().stored() else NOTHING)


def _time(as_of: str) -> int | None:
    """A time in milliseconds UTC; a day stands for its end."""
    if not as_of:
        return None
    try:
        return moment(as_of, ends=True)
    except ValueError as error:
        raise typer.BadParameter(f"{as_of!r} is not {error}", param_hint="--as-of") from None


@app.command("ls")
def ls(
    kind: Annotated[str | None, typer.Option(help=f"Only memories of this kind: {_KINDS}.")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=_ROWS_MAX, help="How many.")] = 20,
) -> None:
    """List memories, newest first."""
    if kind is not None and kind not in list(Kind):
        raise typer.BadParameter(f"{kind!r} is none of: {_KINDS}", param_hint="--kind")
    kinds = () if kind is None else (Kind(kind),)

    async def newest(stores: Reading) -> Sequence[Memory]:
        return await stores.memories.find(_OWNER, kinds, limit)

    found: Sequence[Memory] = session().read(newest, ())
    table = Table(("ID", "KIND", "AGE", "FROM", "MEMORY"), tuple(_cells(memory) for memory in found))
    show({"memories": [memory_shape(memory) for memory in found]}, table)
    if not found:
        say("nothing is remembered yet" if session().stored() else NOTHING)


def _cells(memory: Memory) -> tuple[str, ...]:
    new = memory.new
    age = duration(age_ms(new.said_at))
    return name("memory", memory.id), str(new.kind), age, new.speaker or "-", new.text


@app.command("show")
def show_one(memory: Annotated[str, typer.Argument(help="A memory: mem_...")]) -> None:
    """Show one memory, where it came from and who may hear it."""
    number = read("memory", memory)

    async def named(stores: Reading) -> tuple[Memory | None, Sequence[Widened]]:
        if number is None:
            return None, ()
        return await stores.memories.get(_OWNER, number), await stores.memories.hearing.widened(_OWNER, number)

    nothing: tuple[Memory | None, Sequence[Widened]] = None, ()
    found, widened = session().read(named, nothing)
    if found is None:
        raise InputError(f"there is no memory {memory}", safe="Nothing was changed.", hint="keepsaid memory ls")
    shape = {**memory_shape(found), "widened": [widened_shape(one) for one in widened]}
    lines = [(field, _told(value)) for field, value in shape.items() if field != "text"]
    show({"memory": shape}, found.text, facts(lines, _FIELD_WIDTH))


def _told(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "; ".join(f"from {one['before']} by {one['by']}: {one['reason']}" for one in value)
    return ", ".join(map(str, value)) if isinstance(value, list) else told(value)


@app.command("add")
def add(
    text: Annotated[str, typer.Argument(help="What to remember; - reads it from stdin.")],
    kind: Annotated[str, typer.Option(help=f"What it is: {_ADDED}.")] = "fact",
) -> None:
    """Remember something; you hear it in your own direct chats. A secret in it is left out."""
    if kind not in list(IMPORTANCE):
        raise typer.BadParameter(f"{kind!r} is none of: {_ADDED}", param_hint="--kind")
    said = from_stdin() if text == "-" else text
    body = json.dumps({"text": said, "kind": kind}).encode()

    async def kept(instance: Instance) -> dict[str, Any]:
        from keepsaid.interfaces.notes import note  # noqa: PLC0415

        memory = note(said, kind, instance.clock.now_ms())
        left_out = counted_kinds(instance.redactor.marks(memory.text))
        lifted = await instance.memories.echoes.in_memory(memory)
        return {"id": name("memory", await instance.remember(memory)), "redacted": left_out, "lifted": lifted}

    noted, _ = either(lambda remote: dict(remote.post("/v1/memories", body)), kept)
    added, left_out = str(noted["id"]), dict(noted["redacted"])
    lifted = bool(noted.get("lifted"))
    show({"id": added, "redacted": left_out, "lifted": lifted}, f"{added}  remembered")
    if lifted:
        say("this had been forgotten; because you asked for it, it may be remembered again from now on")
    if left_out:
        kinds = ", ".join(counted(n, kind) for kind, n in left_out.items())
        say(f"left out: {kinds}; memory keeps no secrets")
