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
from keepsaid.interfaces.cli.new_extensions import KINDS, example
from keepsaid.text.normal import span_text

if TYPE_CHECKING:
    from keepsaid.extensions.discovery import FoundExtension

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
    _switch(name, "is enabled", on=True)


@app.command("disable")
def disable(name: Named) -> None:
    """Disable an extension from the next start on; its data is kept."""
    _switch(name, "is disabled", on=False)


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
    place, text = example(kind, name)
    file = session().home.extensions / place
    for folder in (session().home.extensions, file.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if name in _shapes() or file.exists():
        raise refused(f"there is an extension {name}", _LIST)
    replace_file(file, text)
    live = f"live   from the next start on; to leave it out: keepsaid ext disable {name}"
    show({"extension": name, "file": str(file)}, str(file), f"next   keepsaid ext check {name}", live)


@app.command("check")
def check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The id, or the path of a file or folder.")],
    send_to: Annotated[
        str, typer.Option("--send-to", metavar="CONVERSATION", help="Let its channel send a test message there.")
    ] = "",
) -> None:
    """Run one extension through the contract checks; exit code 6 when one fails.

    Nothing is sent without --send-to.
    """
    from keepsaid.extensions.discovery import ExtensionSource, found_at  # noqa: PLC0415
    from keepsaid.testing.extension_checks import Trial, checked  # noqa: PLC0415 - a shipped suite, loaded when asked for

    there = {one.id: one for one in found()}
    one = there.get(name) or (found_at(Path(name).resolve()) if Path(name).exists() else None)
    if one is None:
        raise refused(f"there is no extension {name}, and no such file", _LIST)
    if one.source == ExtensionSource.BUILT_IN:
        raise refused(f"{name} is built in; this is for what is not", _LIST)
    settings = {id_: section.config for id_, section in session().config().extensions.items()}
    with TemporaryDirectory() as data:
        told = asyncio.run(checked(Trial(one, Path(data), settings, tuple(_needed(one, there)), send_to=send_to)))
    rows = [f"{'FAILS' if amiss else 'ok':<6} {what}{': ' + amiss if amiss else ''}" for what, amiss in told.items()]
    show({"extension": one.id, "checks": told, "passed": not any(told.values())}, *rows)
    if one.manifest is not None and one.manifest.channel is not None:
        say(f"a test message was sent to {send_to}" if send_to else "sending was not tried: --send-to CONVERSATION")
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
            shape["notes"] = last.get("notes") or []
        shapes[one.id] = shape
    return shapes


def _why(one: Mapping[str, Any]) -> str:
    return f"{one['phase']}: {one['reason']}" if one["reason"] else "; ".join((*one["needs"], *one.get("notes", ())))


def _schedule(entry: Mapping[str, Any]) -> str:
    when = entry.get("cron") or f"every {span_text(int(entry['every_s'] * 1_000))}"
    return f"{entry['name']} ({when})"
