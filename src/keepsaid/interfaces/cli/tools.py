"""`keepsaid tools`: what others serve to the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import typer

from keepsaid.interfaces.cli.output import Table, say, show
from keepsaid.interfaces.cli.session import session
from keepsaid.ports.tool_source import Served

app = typer.Typer(help="What others serve to the agent.", rich_markup_mode=None)


@app.callback()
def tools() -> None:
    """What others serve to the agent."""


@app.command("ls")
def ls() -> None:
    """Ask every server of `tools.mcp` for what it has, and say what of it may be used.

    Each is started, or called, anew; a runtime beside it is not asked. Exits 0 also when a server cannot be reached.
    """
    from keepsaid.app.tools import asked  # noqa: PLC0415 - help is shown without

    told = asyncio.run(asked(session().config()))
    rows = [_cells(name, one) for name, served, _ in told for one in served]
    rows += [(name, "-", "-", "-", trouble) for name, _, trouble in told if trouble]
    shape = [_shape(*one) for one in told]
    show({"servers": shape}, Table(("SERVER", "TOOL", "ALLOWED", "CLASS", "ABOUT"), tuple(rows)))
    if not told:
        say("no server is named in tools.mcp")


def _cells(server: str, one: Served) -> tuple[str, ...]:
    first, _, _ = one.description.partition("\n")
    return server, one.name, "yes" if one.allowed else "no", one.kind, first


def _shape(server: str, served: Sequence[Served], trouble: str) -> dict[str, Any]:
    tools = [{"name": one.name, "allowed": one.allowed, "class": one.kind, "about": one.description} for one in served]
    return {"name": server, "trouble": trouble or None, "tools": tools}
