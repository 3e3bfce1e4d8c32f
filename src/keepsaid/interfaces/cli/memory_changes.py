"""Commands that change memories: edit, history, pin, merge, archive, restore, forget."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from keepsaid.domain.forgetting import Forgetting
from keepsaid.domain.ids import read, when
from keepsaid.domain.ids import show as name
from keepsaid.domain.memory import Listener, Memory
from keepsaid.interfaces.cli.console import (
    Limit,
    Table,
    age_ms,
    command_of,
    counted,
    duration,
    facts,
    id_of,
    refused,
    render_value,
    say,
    session,
    show,
    show_rows,
)
from keepsaid.interfaces.cli.remote import post, running
from keepsaid.interfaces.shapes import memory_shape
from keepsaid.values import frozen

_WAIT_S = 20.0
_PATH = "/v1/forget"


@frozen
class Chosen:
    """What is to be forgotten, and how, as it was typed."""

    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Memories or messages: mem_..., msg_...")
    ] = None
    person: Annotated[str, typer.Option(help="All that a person said, and what is about this person.")] = ""
    conversation: Annotated[str, typer.Option(help="All of a conversation.")] = ""
    text: Annotated[str, typer.Option("--filter", help="All that contains this text.")] = ""
    undo_for: Annotated[str, typer.Option(help="Keep it aside for so long, and let it be undone: 30d, 12h, 45m.")] = ""
    yes: Annotated[bool, typer.Option("--yes", help="Forget it; without this only say what would go.")] = False


def _forget(chosen: Chosen) -> None:
    """Forget for good: memories, what was said there, the replies, and all that was made of it.

    Without --yes nothing is changed: what would go is counted. What was forgotten is not learned again, from old
    messages, a redelivery, an import or a backup of this home.

    With --undo-for it is hidden at once and gone at the end of that time; until then `memory restore` brings it back.
    """
    where = {"person": chosen.person, "conversation": chosen.conversation, "filter": chosen.text}
    asked = {"ids": chosen.ids or [], **where, "undo_for": chosen.undo_for, "yes": chosen.yes}
    told, _ = post(_PATH, asked)
    if not chosen.yes:
        _would_go(told)
        return
    told = _waited(told)
    show(told, _receipt(told))
    for backup in told["backups"]:
        say(f"a backup from before still holds it: {backup}")
    if told["undo_until"]:
        say(f"it can be undone until {told['undo_until']}: keepsaid memory restore {told['id']}")
    if told["state"] != "done":
        when = "at the next start" if told.get("stopping") else "when the turns that are running have ended"
        say(f"the rest goes {when}; see: keepsaid memory forgotten")


forget = command_of(Chosen, _forget)


def _would_go(told: dict[str, Any]) -> None:
    rows = tuple((one["id"], one["kind"], one["text"]) for one in told["memories"])
    show(told, f"would forget  {_counts(told['counts'])}", Table(("ID", "KIND", "MEMORY"), rows))
    say("nothing was changed; to forget it for good, add --yes" if told["counts"] else "there is nothing like that")


def _counts(counts: dict[str, int]) -> str:
    singular = {"memories": "memory", "replies": "reply", "summaries": "summary", "entities": "entity", "uses": "use"}
    singular["staged"] = "staged deed"
    said = [counted(n, singular.get(name, name.removesuffix("s")), name) for name, n in counts.items()]
    return ", ".join(said) or "nothing"


def _receipt(told: dict[str, Any]) -> str:
    done = "forgotten" if told["state"] == "done" else f"{told['state']}, going on"
    return f"{told['id']}  {done}: {_counts(told['counts'])}"


def _waited(told: dict[str, Any]) -> dict[str, Any]:
    """The receipt once all is gone, or as it stands after some seconds."""
    from keepsaid.interfaces.transfer import forgetting_shape  # noqa: PLC0415 - `--help` needs none of it

    number = read("forgetting", str(told["id"]))
    if told["state"] == "done" or number is None or told.get("stopping"):
        return told
    _wait()
    found = session().read(lambda stores: stores.views.forgettings.one(number))
    return told if found is None else forgetting_shape(found, told["backups"])


def _wait() -> bool:
    """Wait for a runtime that is up to forget what it was asked to; whether nothing is left."""
    remote = running(session().home)
    if remote is None:
        return not session().read(lambda stores: stores.views.forgettings.unfinished())
    body = json.dumps({"wait_s": _WAIT_S}).encode()
    return bool(remote.post("/v1/forget/settled", body)["settled"])


def undo(request: str) -> None:
    """Put back what a request took."""
    told, _ = post("/v1/forget/undo", {"id": request})
    show(told, f"{told['id']}  undone; what was forgotten is remembered again")


def forgotten(
    request: Annotated[str | None, typer.Argument(metavar="[ID]", help="One request: fgt_...")] = None,
    limit: Limit = 20,
    wait: Annotated[bool, typer.Option("--wait", help="First wait until a runtime has done what is asked.")] = False,
) -> None:
    """List what was asked to be forgotten, newest first, or show the receipt of one request."""
    from keepsaid.interfaces.transfer import forgetting_shape  # noqa: PLC0415 - `--help` needs none of it

    if wait and not _wait():
        say("not all of it is gone yet")
    if request is not None:
        _one(request)
        return
    found = session().read(lambda stores: stores.views.forgettings.newest(limit)) or ()
    shapes = [forgetting_shape(one) for one in found]
    rows, empty = map(_request_cells, shapes, found), "nothing was asked to be forgotten"
    show_rows({"forgettings": shapes}, ("ID", "STATE", "AGE", "CHOSEN BY", "UNDO UNTIL", "WENT"), rows, empty)


def _request_cells(shape: dict[str, Any], one: Forgetting) -> tuple[str, ...]:
    age, until = duration(age_ms(one.requested_at)), shape["undo_until"] or "-"
    return shape["id"], one.state, age, one.how, until, _counts(shape["counts"])


def _one(request: str) -> None:
    from keepsaid.app.services import backups_of  # noqa: PLC0415
    from keepsaid.interfaces.transfer import forgetting_shape  # noqa: PLC0415

    hint, no_such = "keepsaid memory forgotten", f"there is no {request}"
    number = id_of("forgetting", request, hint, no_such)
    found = session().read(lambda stores: stores.views.forgettings.one(number))
    if found is None:
        raise refused(no_such, hint)
    shape = forgetting_shape(found, backups_of(session().home, session().config()))
    lines = [(name, render_value(value)) for name, value in shape.items() if name not in ("counts", "backups")]
    lines += [(name, str(n)) for name, n in shape["counts"].items()]
    lines += [("backup", path) for path in shape["backups"]]
    show({"forgetting": shape}, facts(lines, 14))


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
