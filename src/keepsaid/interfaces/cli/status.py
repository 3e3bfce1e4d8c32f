"""`keepsaid status`: what waits, what was answered, what is remembered, and whether a runtime is up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.interfaces.cli import program
from keepsaid.interfaces.cli.console import facts, on_terminal, session, show
from keepsaid.interfaces.cli.remote import Remote, elsewhere, running
from keepsaid.text.normal import duration, tallied
from keepsaid.values import frozen

if TYPE_CHECKING:
    from keepsaid.config import Home
    from keepsaid.services.status import Status


_WATCH_S = 2.0
_CLEAR = "\x1b[H\x1b[2J"


def status(
    check: Annotated[
        bool, typer.Option("--check", help="Print one line; exit code 5 if something needs attention.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again every two seconds, until Ctrl-C.")] = False,
) -> None:
    """Show whether keepsaid runs, what waits, and what needs attention."""
    while watch:
        if on_terminal() and not session().json:
            print(_CLEAR, end="")
        _show(brief=check)
        time.sleep(_WATCH_S)
    if _show(brief=check) and check:
        raise typer.Exit(program.WARNINGS)


def _show(*, brief: bool) -> int:
    """Print the status; returns how many things need attention."""
    current = session()
    if (other := elsewhere()) is not None:
        return _show_elsewhere(other, brief=brief)
    life = life_of(current.home)
    where: dict[str, Any] = {"runtime": _runtime_shape(life), "home": str(current.home.data)}
    found = current.read(lambda stores: stores.status.read())
    if found is None:
        sentence = f"{life.description}: nothing was ever stored here."
        lines = [] if brief else [facts([("home", where["home"])])]
        show({"sentence": sentence, "stored": False, **where}, sentence, *lines)
        return 0
    sentence, shape, lines = described(found, life.description, is_up=life.holder is not None)
    show(
        {"sentence": sentence, "stored": True, **shape, **where},
        sentence,
        *([] if brief else [*lines, facts([("home", where["home"])])]),
    )
    return len(shape["attention"])


def _show_elsewhere(other: Remote, *, brief: bool) -> int:
    """Print the status of an instance that is not on this machine."""
    shape = other.get("/v1/status")
    sentence = shape.pop("sentence").replace("Running", f"Running at {other.url}", 1)
    where = {"runtime": {"up": True, "pid": None, "url": other.url}, "home": None}
    show({"sentence": sentence, "stored": True, **shape, **where}, sentence, *([] if brief else _below(shape)))
    return len(shape["attention"])


def _below(shape: dict[str, Any]) -> list[str]:
    return [*map(_concern, shape["attention"]), facts(_lines(shape))]


def described(found: Status, process: str, *, is_up: bool) -> tuple[str, dict[str, Any], list[str]]:
    """The first line of a status, its JSON, and the text below the first line; `process` says what uses the home."""
    from keepsaid.interfaces.status_shape import status_shape  # noqa: PLC0415 - `--help` needs none of it

    shape = status_shape(found)
    return found.describe(process, works=is_up), shape, _below(shape)


def _concern(one: dict[str, str]) -> str:
    return f"! {one['what']}" + (f"\n  try  {one['command']}" if one["command"] else "")


@frozen
class HomeHolder:
    """Who works in a home: a runtime that listens, or a process that only holds the lock; `holder` is its number."""

    remote: Remote | None
    holder: int | None

    @property
    def description(self) -> str:
        """The beginning of a sentence that says which process uses the home."""
        if self.remote is not None:
            return f"Running at {self.remote.url} (pid {self.remote.pid})"
        if self.holder is None:
            return "Not running"
        return f"Process {self.holder or 'unknown'} holds this home and does not listen"


def life_of(home: Home) -> HomeHolder:
    """Who works in a home now."""
    from keepsaid.app.stores import held_by  # noqa: PLC0415

    remote = running(home)
    return HomeHolder(remote, remote.pid if remote else held_by(home))


def _runtime_shape(life: HomeHolder) -> dict[str, Any]:
    remote = life.remote
    return {"up": remote is not None, "pid": life.holder, "url": remote.url if remote else None}


def _depth(depth: dict[str, Any]) -> str:
    """The messages of a channel by state; those for a person only if there are any."""

    def part(aged: dict[str, Any], *states: str) -> str:
        counts = tallied({state: depth[state] for state in states}, states)
        return f"{counts}   oldest {duration(aged['oldest_age_ms'])}"

    waiting, asking = part(depth, "unrouted", "queued", "leased"), depth["for_person"]
    return f"{waiting}   {part(asking, 'review', 'dead')}" if asking["total"] else waiting


def _lines(shape: dict[str, Any]) -> list[tuple[str, str]]:
    unrouted, tokens, cost = shape["unrouted"], shape["tokens"], shape["cost_usd"]
    backlog, pruned = shape["backlog"], shape["pruned"]
    cost = "not known" if cost is None else f"${cost:.4f}"
    ago = "never" if pruned["last_run_age_ms"] is None else f"{duration(pruned['last_run_age_ms'])} ago"
    lines = [("waiting", f"{backlog['waiting']:,}   oldest {duration(backlog['oldest_age_ms'])}")]
    lines += [(f"  {depth['channel']}", _depth(depth)) for depth in shape["channels"]]
    lines += [("unrouted", f"{unrouted['total']:,}   oldest {duration(unrouted['oldest_age_ms'])}")]
    lines += [("process", _process(one)) for one in shape["processes"]]
    lines += [("line", f"{one['channel']} ({one['account']})   {one['state']}") for one in shape["lines"]]
    return [
        *lines,
        ("batches", tallied(shape["batches"], tuple(shape["batches"]))),
        ("outbox", tallied(shape["outbox"], tuple(shape["outbox"]))),
        ("tasks", tallied(shape["tasks"])),
        ("memory", f"{shape['memories']['total']:,}   {tallied(shape['memories']['kinds'])}"),
        ("episodes", f"{shape['episodes_due']:,} due"),
        ("schedules", f"next {shape['schedules']['next_at'] or '-'}"),
        ("turns", tallied(shape["turns"])),
        ("tokens", f"in {tokens['in']:,}   out {tokens['out']:,}   cost {cost}"),
        ("pruned", f"{pruned['messages']:,} messages   last run {ago}"),
        ("disk", f"{shape['disk']['free_bytes'] / 1e9:.1f} GB free{' beside the home' if shape['server'] else ''}"),
        *([("stores", shape["server"])] if shape["server"] else []),
    ]


def _process(one: dict[str, Any]) -> str:
    return f"{one['owner']}{'   leads' if one['leads'] else '   silent' if one['silent'] else ''}"
