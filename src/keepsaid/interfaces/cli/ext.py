"""`keepsaid ext`: lists, shows, enables, disables, makes and checks extensions."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.interfaces.cli import program
from keepsaid.interfaces.cli.console import Table, check_choice, facts, refused, say, session, show

if TYPE_CHECKING:
    from keepsaid.extensions.discovery import FoundExtension

_CHANNEL = '''"""{title}: a folder as a medium. A file NAME.txt is a message, NUMBER.answer is a reply."""

import asyncio

from keepsaid.extensions import Incoming, Reply, extension


@extension(id="{id}", version="0.1", channel={{"window_ms": 0}})
class {cls}:
    """Hears files, and answers with files."""

    async def initialize(self, context):
        self.folder = context.data

    async def listen(self, inbox):
        while True:
            for file in sorted(self.folder.glob("*.txt")):
                # It is on disk when this returns; the id keeps it from being taken in twice.
                await inbox.put(Incoming(file.read_text("utf-8"), "me", "{id}", external_id=file.name))
                file.unlink()
            await asyncio.sleep(1)

    async def send(self, reply: Reply):
        (self.folder / f"{{reply.id}}.answer").write_text(reply.draft.text, "utf-8")
'''

_TOOL = '''"""{title}: a tool for the model."""

import random

from keepsaid.extensions import extension, tool


@extension(id="{id}", version="0.1", config={{"sides_max": {{"type": "integer", "default": 100, "minimum": 2}}}})
class {cls}:
    """Rolls dice."""

    async def initialize(self, context):
        self.sides_max = context.config["sides_max"]

    @tool(kind="idempotent", limit_s=5, chars_max=100, name="{name}_roll")
    async def roll(self, sides: int = 6) -> str:
        """Roll one die with this number of sides, and return the result."""
        return str(random.randint(1, max(1, min(sides, self.sides_max))))
'''

_CONTEXT = '''"""{title}: a text for prompts."""

from datetime import datetime

from keepsaid.extensions import context, extension


@extension(id="{id}", version="0.1")
class {cls}:
    """Tells the model what day it is."""

    @context(priority=20)
    async def today(self, claimed):
        # Memory stands at 100. None adds nothing; what takes longer than half a second is left out.
        return f"Today is {{datetime.now():%A}}."
'''

KINDS: Mapping[str, str] = {"channel": _CHANNEL, "tool": _TOOL, "context": _CONTEXT}
"""What can be begun, each with its example."""


def example(kind: str, id_: str) -> str:
    """The source of a new extension."""
    words = id_.replace("_", "-").split("-")
    cls = "".join(word.capitalize() for word in words) or "Mine"
    return KINDS[kind].format(id=id_, cls=cls, title=" ".join(words).capitalize(), name=id_.replace("-", "_"))


app = typer.Typer(help="Manage extensions.", rich_markup_mode=None)
Named = Annotated[str, typer.Argument(metavar="NAME", help="The id, as `ext ls` shows it.")]
_ID = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_LIST = "keepsaid ext ls"


@app.command("ls")
def ls() -> None:
    """List extensions and their last known state. No extension code is run."""
    shapes = list(_shapes().values())
    rows = tuple(
        (one["id"], one["version"] or "-", one["source"], one["state"], " ".join(one["provides"]) or "-", _why(one))
        for one in shapes
    )
    show({"extensions": shapes}, Table(("EXTENSION", "VERSION", "FROM", "STATE", "PROVIDES", "WHY"), rows))
    if not shapes:
        say(f"no extensions: put one into {session().home.extensions}, or: keepsaid ext new channel my-channel")


@app.command("show")
def show_one(name: Named) -> None:
    """Show one extension: its manifest and its last known state."""
    one = _named(name)
    lines = [
        ("extension", f"{one['id']}  {one['version'] or ''}  {one['name']}".rstrip()),
        ("about", one["description"] or "-"),
        ("from", f"{one['source']}  {one['place']}"),
        ("state", one["state"] + (f"  {_why(one)}" if _why(one) else "")),
        *(("note", note) for note in one.get("notes", ())),
        ("provides", " ".join(one["provides"]) or "-"),
        ("needs", " ".join(one["depends_on"]) or "-"),
        ("tools", " ".join(one.get("tools", ())) or "-"),
        ("subscribes", " ".join(sub["topic"] for sub in one["subscribes"]) or "-"),
        ("schedules", "  ".join(_schedule(entry) for entry in one["schedules"]) or "-"),
        ("settings", " ".join(one["config"]) or "-"),
        ("reads", " ".join(one.get("reads", ())) or "-"),
        ("secrets", " ".join(f"{key} ({variable})" for key, variable in one["secrets"].items()) or "-"),
    ]
    show({"extension": one}, facts(lines), *([one["trace"].rstrip()] if one["trace"] else []))


@app.command("enable")
def enable(name: Named) -> None:
    """Enable an extension from the next start on."""
    _switch(name, "is let in", on=True)


@app.command("disable")
def disable(name: Named) -> None:
    """Disable an extension from the next start on; its data is kept."""
    _switch(name, "is let in no more", on=False)


@app.command("new")
def new(
    kind: Annotated[str, typer.Argument(help=f"One of: {', '.join(KINDS)}.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its id: small letters, digits, - and _.")],
) -> None:
    """Create a working example in the extensions folder, ready to be changed."""
    from keepsaid.interfaces.cli.config import replace_file  # noqa: PLC0415

    check_choice("KIND", kind, KINDS)
    if not _ID.fullmatch(name):
        raise typer.BadParameter(f"{name!r} is not an id; use small letters, digits, - and _", param_hint="NAME")
    session().home.make()
    file = session().home.extensions / f"{name}.py"
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if name in _shapes() or file.exists():
        raise refused(f"there is an extension {name}", _LIST)
    replace_file(file, example(kind, name))
    show({"extension": name, "file": str(file)}, str(file), f"next   keepsaid ext check {name}")


@app.command("check")
def check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The id, or the path of a file or folder.")],
) -> None:
    """Run one extension through the contract checks; exit code 6 when one fails."""
    from keepsaid.extensions.discovery import ExtensionSource, found_at  # noqa: PLC0415
    from keepsaid.testing.extension_checks import Trial, checked  # noqa: PLC0415 - a shipped suite, loaded when asked for

    there = {one.id: one for one in found()}
    one = there.get(name) or (found_at(Path(name).resolve()) if Path(name).exists() else None)
    if one is None:
        raise refused(f"there is no extension {name}, and no such file", _LIST)
    if one.source == ExtensionSource.BUILT_IN:
        raise refused(f"{name} is built in; this is for what is not", _LIST)
    needed = _needed(one, there)
    if inside := [other.id for other in needed if other.source == ExtensionSource.BUILT_IN]:
        what = f"{name} depends on {', '.join(inside)}, which is built in and works in a runtime alone"
        raise refused(what, f"keepsaid serve, then keepsaid ext show {one.id}")
    settings = {id_: section.config for id_, section in session().config().extensions.items()}
    with TemporaryDirectory() as data:
        told = asyncio.run(checked(Trial(one, Path(data), settings, tuple(needed))))
    rows = [f"{'FAILS' if amiss else 'ok':<6} {what}{': ' + amiss if amiss else ''}" for what, amiss in told.items()]
    show({"extension": one.id, "checks": told, "passed": not any(told.values())}, *rows)
    if any(told.values()):
        raise typer.Exit(program.ERRORS)


def _needed(one: FoundExtension, there: Mapping[str, FoundExtension]) -> list[FoundExtension]:
    """What an extension depends on, and what that does: nothing else is tried beside it."""
    needed: dict[str, FoundExtension] = {}
    ahead = list(one.manifest.depends_on) if one.manifest else []
    while ahead:
        other = there.get(ahead.pop())
        if other is not None and other.id not in needed:
            needed[other.id] = other
            ahead += other.manifest.depends_on if other.manifest else ()
    return list(needed.values())


def _switch(name: str, done: str, *, on: bool) -> None:
    from keepsaid.interfaces.cli.config import replace_file, with_setting  # noqa: PLC0415

    one, file = _named(name), session().home.config_file
    session().home.make()
    text = file.read_bytes().decode("utf-8") if file.exists() else ""
    replace_file(file, with_setting(text, ("extensions", one["id"], "enabled"), on, str(on).lower()))
    show({"extension": one["id"], "enabled": on}, f"{one['id']}  {done} from the next start on")


def found() -> list[FoundExtension]:
    """What there is in this home."""
    from keepsaid.app.builtin.parts import built_in  # noqa: PLC0415
    from keepsaid.app.extending import found_in  # noqa: PLC0415
    from keepsaid.extensions.discovery import unique  # noqa: PLC0415

    config = session().config()
    return list(unique((*built_in(config), *found_in(session().home, config))))


def _named(name: str) -> Mapping[str, Any]:
    shapes = _shapes()
    if name not in shapes:
        raise refused(f"there is no extension {name}", _LIST)
    return shapes[name]


def _shapes() -> dict[str, dict[str, Any]]:
    """The extensions by id, with the last known status of each."""
    from keepsaid.extensions import loaded  # noqa: PLC0415

    fared = loaded.read(session().home.extensions_file)
    shapes = {}
    for one in found():
        shape = loaded.found_shape(one)
        last = fared.get(one.id)
        if last is not None and one.enabled and not one.problem:
            shape |= {key: last.get(key) for key in ("state", "phase", "reason", "trace", "needs", "tools", "took_ms")}
        shapes[one.id] = shape
    return shapes


def _why(one: Mapping[str, Any]) -> str:
    return f"{one['phase']}: {one['reason']}" if one["reason"] else "; ".join((*one["needs"], *one.get("notes", ())))


def _schedule(entry: Mapping[str, Any]) -> str:
    when = entry.get("cron") or f"every {entry['every_s']:g} s"
    return f"{entry['name']} ({when})"
