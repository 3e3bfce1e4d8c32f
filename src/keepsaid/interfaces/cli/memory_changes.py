"""Commands that change memories: edit, history, pin, merge, archive, restore, forget."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from keepsaid.domain.forgetting import Forgetting
from keepsaid.domain.ids import read, show, when
from keepsaid.domain.memory import Listener, Memory
from keepsaid.errors import KeepsaidError
from keepsaid.interfaces.cli import console, remote
from keepsaid.interfaces.shapes import Shape, forgetting_shape, memory_shape
from keepsaid.text.normal import counted
from keepsaid.values import frozen

OWNER = Listener(None, everything=True)
LIST = "keepsaid memory ls"
_WAIT_S = 20.0


@frozen
class Chosen:
    """What is to be forgotten, and how, as it was typed."""

    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Memories or messages: mem_..., msg_...")
    ] = None
    person: Annotated[str, typer.Option(help="All that a person said, and what is about this person.")] = ""
    conversation: Annotated[str, typer.Option(help="All of a conversation.")] = ""
    text: Annotated[str, typer.Option("--filter", help="All that contains this text.")] = ""
    undo_for: Annotated[str, typer.Option(help="Allow undo for this long: 30d, 12h, 45m.")] = ""
    yes: Annotated[bool, typer.Option("--yes", help="Delete; without it, only show what would be deleted.")] = False
    rewrite_backups: Annotated[
        bool,
        typer.Option(
            "--rewrite-backups",
            help="Also rewrite the backups that still hold it; alone, those that hold anything forgotten before.",
        ),
    ] = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is chosen."""
        return not (self.ids or self.person or self.conversation or self.text)


def _forget(chosen: Chosen) -> None:
    """Delete memories for good, with the messages, replies and everything derived from them.

    Without --yes nothing is changed: what would go is counted. What was forgotten is not learned again, from old
    messages, a redelivery, an import or a backup of this home.

    With --undo-for it is hidden at once and gone at the end of that time; until then `memory restore` brings it back.
    With --rewrite-backups the backups made from this home forget it too, and single copies of its stores are deleted.
    """
    if chosen.rewrite_backups and remote.elsewhere() is not None:
        raise typer.BadParameter("backups are on the machine of the home: run it there", param_hint="--rewrite-backups")
    if chosen.rewrite_backups and chosen.is_empty:
        _show_rewritten(_rewritten(_behind()))
        return
    where = {"person": chosen.person, "conversation": chosen.conversation, "filter": chosen.text}
    asked = {"ids": chosen.ids or [], **where, "undo_for": chosen.undo_for, "yes": chosen.yes}
    told, _ = remote.post("/v1/forget", asked)
    if not chosen.yes:
        rows = tuple((one["id"], one["state"], one["kind"], one["text"]) for one in told["memories"])
        table = console.Table(("ID", "STATE", "KIND", "MEMORY"), rows)
        console.show(told, f"would forget  {_counts(told['counts'])}", table)
        if (more := told["counts"].get("memories", 0) - len(rows)) > 0:
            console.say(f"and {counted(more, 'more memory', 'more memories')}")
        add = "nothing was changed; to forget it for good, add --yes"
        console.say(add if told["counts"] else "nothing that is stored has that id or text")
        return
    told = _waited(told)
    rewritten = _rewritten(told["backups"]) if chosen.rewrite_backups and told["state"] == "done" else {}
    told["backups"] = [path for path in told["backups"] if path not in rewritten]
    done = "forgotten" if told["state"] == "done" else f"{told['state']}, going on"
    console.show(told, f"{told['id']}  {done}: {_counts(told['counts'])}")
    _show_rewritten(rewritten)
    for backup in told["backups"]:
        console.say(f"a copy from before may still hold it: {backup}")
    if told["undo_until"]:
        console.say(f"it can be undone until {told['undo_until']}: keepsaid memory restore {told['id']}")
    if told["state"] != "done":
        console.say(f"the rest goes {_later(told)}; see: keepsaid memory forgotten")


forget = console.command_of(Chosen, _forget)


def _later(told: Shape) -> str:
    """When what is not gone yet goes."""
    if told.get("stopping"):
        return "at the next start"
    seen = None if remote.elsewhere() else console.session().read(lambda stores: stores.views.overview())
    if seen is not None and seen.processes and not any(one.leads for one in seen.processes):
        return "when a process leads, which none does now (keepsaid serve --role all)"
    return "when the turns that are running have ended"


def _behind() -> list[str]:
    """The backups from before the newest request to forget."""
    from keepsaid.app.backups import backups_of  # noqa: PLC0415

    newest = console.session().read(lambda stores: stores.views.forgettings.newest(1)) or ()
    home, config = console.session().home, console.session().config()
    return list(backups_of(home, config, newest[0].requested_at)) if newest else []


def _rewritten(paths: Sequence[str]) -> dict[str, str]:
    """What was done with the backups, by path; one that could not be rewritten is said and left out."""
    from keepsaid.app.backups import is_bare_copy  # noqa: PLC0415
    from keepsaid.interfaces.cli import data  # noqa: PLC0415

    done: dict[str, str] = {}
    for path in map(Path, paths):
        try:
            if is_bare_copy(path):
                path.unlink()
                done[str(path)] = "deleted, a copy of a store"
            elif (path / "manifest.json").is_file():
                data.rewrite(path)
                done[str(path)] = "rewritten"
            else:
                console.say(f"not rewritten: {path} is an export: delete it, and export again")
        except KeepsaidError as error:
            console.say(f"not rewritten: {path}: {error.what}")
    return done


def _show_rewritten(done: Mapping[str, str]) -> None:
    for path, how in done.items():
        console.say(f"{how}: {path}")


def _counts(counts: dict[str, int]) -> str:
    singular = {"memories": "memory", "replies": "reply", "summaries": "summary", "entities": "entity", "uses": "use"}
    singular["staged"] = "staged deed"
    said = [counted(n, singular.get(name, name.removesuffix("s")), name) for name, n in counts.items()]
    return ", ".join(said) or "nothing"


def _waited(told: Shape) -> Shape:
    """The receipt once all is gone, or as it stands after some seconds."""
    number = read("forgetting", str(told["id"]))
    if told["state"] == "done" or number is None or told.get("stopping"):
        return told
    _wait()
    found = console.session().read(lambda stores: stores.views.forgettings.one(number))
    return told if found is None else forgetting_shape(found, told["backups"])


def _wait() -> bool:
    """Wait for a runtime that is up to forget what it was asked to; whether nothing is left."""
    if (runtime := remote.running(console.session().home)) is None:
        return not console.session().read(lambda stores: stores.views.forgettings.unfinished())
    body = json.dumps({"wait_s": _WAIT_S}).encode()
    return bool(runtime.post("/v1/forget/settled", body)["settled"])


def forgotten(
    request: Annotated[str | None, typer.Argument(metavar="[ID]", help="One request: fgt_...")] = None,
    limit: console.Limit = 20,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until a running instance has finished the request.")
    ] = False,
) -> None:
    """List deletion requests, newest first, or show the receipt of one.

    What is `hidden` can still be brought back, until the time under UNDO UNTIL; what is `done` is gone.
    """
    if wait and not _wait():
        console.say("not all of it is gone yet")
    if request is not None:
        _one(request)
        return
    found = console.session().read(lambda stores: stores.views.forgettings.newest(limit)) or ()
    shapes = [forgetting_shape(one) for one in found]
    rows, empty = map(_request_cells, shapes, found), "nothing was asked to be forgotten"
    console.show_rows({"forgettings": shapes}, ("ID", "STATE", "AGE", "CHOSEN BY", "UNDO UNTIL", "WENT"), rows, empty)


def _request_cells(shape: Shape, one: Forgetting) -> tuple[str, ...]:
    until = shape["undo_until"] or "-"
    state = "hidden" if one.state == "done" and shape["undo_until"] else one.state
    return shape["id"], state, console.age(one.requested_at), one.how, until, _counts(shape["counts"])


def _one(request: str) -> None:
    from keepsaid.app.backups import backups_of  # noqa: PLC0415

    hint, no_such = "keepsaid memory forgotten", f"there is no {request}"
    number = console.id_of("forgetting", request, hint, no_such)
    found = console.session().need(lambda stores: stores.views.forgettings.one(number), no_such, hint)
    shape = forgetting_shape(found, backups_of(console.session().home, console.session().config(), found.requested_at))
    lines = [(name, console.render_value(value)) for name, value in shape.items() if name not in ("counts", "backups")]
    lines += [(name, str(n)) for name, n in shape["counts"].items()]
    lines += [("backup", path) for path in shape["backups"]]
    console.show({"forgetting": shape}, console.facts(lines, 14))


Named = Annotated[str, typer.Argument(help="A memory: mem_...")]
Several = Annotated[list[str], typer.Argument(metavar="ID...", help="Memories: mem_...")]


def edit_one(
    memory: Named,
    text: Annotated[str, typer.Argument(help="The corrected text.")],
    value: Annotated[str, typer.Option(help="The new value, for a fact about one attribute: Porto.")] = "",
) -> None:
    """Correct a memory. The former text is kept as past; `history` shows it.

    Your word outranks what is learned from anything said before it.
    """
    edited = _name(memory)
    told, _ = remote.post(f"/v1/memories/{edited}/edit", {"text": text, "value": value})
    console.show({"edited": edited, **told}, f"{told['id']}  replaces {edited}")


def history(memory: Named) -> None:
    """Show every version of a memory: when it was valid, and where it came from."""
    number = console.id_of("memory", memory, LIST)
    if not (found := console.session().read(lambda stores: stores.memories.revisions.history(OWNER, number))):
        raise console.refused(f"there is no memory {memory}", LIST)
    headings, rows = ("ID", "STATE", "SINCE", "UNTIL", "SOURCES", "MEMORY"), tuple(map(_cells, found))
    now = int(time.time() * 1_000)
    console.show({"history": [memory_shape(one, now) for one in found]}, console.Table(headings, rows))


def _cells(memory: Memory) -> tuple[str, ...]:
    since, until = when(memory.holds_from), when(memory.valid_to)
    sources = ", ".join(one.name for one in memory.new.sources)
    state = memory.state_at(int(time.time() * 1_000))
    return show("memory", memory.id), state, since or "-", until or "-", sources or "-", memory.text


def pin_one(memory: Named) -> None:
    """Pin a memory, so that it never fades."""
    _pin(memory, pinned=True)


def unpin(memory: Named) -> None:
    """Unpin a memory."""
    _pin(memory, pinned=False)


def _pin(memory: str, *, pinned: bool) -> None:
    name = _name(memory)
    remote.post(f"/v1/memories/{name}/pin", {"pinned": pinned})
    console.show({"id": name, "pinned": pinned}, f"{name}  {'' if pinned else 'un'}pinned")


def archive(memories: Several) -> None:
    """Archive memories: they are no longer recalled, but `search --archived` still finds them."""
    _put_away(memories, back=False)


def restore(
    memories: Annotated[list[str], typer.Argument(metavar="ID...", help="Memories: mem_..., or a request: fgt_...")],
) -> None:
    """Restore an archived memory, or undo a deletion while that is possible."""
    if len(memories) == 1 and memories[0].startswith("fgt_"):
        console.id_of("forgetting", memories[0], "keepsaid memory forgotten", f"there is no {memories[0]}")
        told, _ = remote.post("/v1/forget/undo", {"id": memories[0]})
        console.show(told, f"{told['id']}  undone; what was forgotten is remembered again")
        return
    _put_away(memories, back=True)


def _put_away(memories: list[str], *, back: bool) -> None:
    told, _ = remote.post("/v1/memories/archive", {"ids": [_name(one) for one in memories], "back": back})
    console.show(told, *(f"{one}  {_brought_back(one) if back else 'archived'}" for one in told["ids"]))


def _brought_back(memory: str) -> str:
    """That a memory is there again, and that another is current where that is so."""
    number = read("memory", memory)
    if console.session().url or number is None:
        return "brought back"
    found = console.session().read(lambda stores: stores.memories.get(OWNER, number))
    state = "active" if found is None else found.state_at(int(time.time() * 1_000))
    return "brought back" if state == "active" else f"brought back as {state}: keepsaid memory history {memory}"


def merge_all(
    memory: Named,
    others: Annotated[list[str], typer.Argument(help="Duplicates: mem_...")],
    anyway: Annotated[bool, typer.Option("--anyway", help="Merge them also if their words differ.")] = False,
) -> None:
    """Merge duplicates into one memory, which gets their sources; the duplicates are no longer found.

    All must be current, visible to the same people and share half of their words; otherwise nothing is changed.
    """
    kept, merged = _name(memory), [_name(one) for one in others]
    remote.post(f"/v1/memories/{kept}/merge", {"others": merged, "anyway": anyway})
    said = f"{kept} now has the sources of {counted(len(merged), 'duplicate')}"
    console.show({"id": kept, "merged": merged}, said)
    console.say(f"to list its sources: keepsaid memory show {kept}")


def _name(memory: str) -> str:
    return console.name_of("memory", memory, LIST)


def add_to(app: typer.Typer) -> None:
    """Put the commands into an app."""
    app.command("forget")(forget)
    app.command("forgotten")(forgotten)
    app.command("edit")(edit_one)
    app.command("history")(history)
    app.command("pin")(pin_one)
    app.command("unpin")(unpin)
    app.command("merge")(merge_all)
    app.command("archive")(archive)
    app.command("restore")(restore)
