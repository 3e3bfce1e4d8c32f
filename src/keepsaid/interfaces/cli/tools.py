"""`keepsaid ext tools`: tools that MCP servers provide, and the texts of theirs that the owner accepts."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.domain.trust import Described, ToolStanding
from keepsaid.errors import ToolError
from keepsaid.interfaces.cli.console import Table, on_terminal, say, session, show
from keepsaid.ports.model import Served
from keepsaid.text.normal import counted

if TYPE_CHECKING:
    from keepsaid.app.channels import QueriedServer

app = typer.Typer(help="Manage tools of MCP servers.", rich_markup_mode=None)


@app.callback()
def tools() -> None:
    """Manage tools of MCP servers."""


@app.command("ls")
def ls() -> None:
    """List the tools of every server in `tools.mcp`, and which of them may be used.

    Starts or calls each server. A tool is offered to the model once it is allowed by the config and its
    text is accepted. Exits 0 also when a server cannot be reached.
    """
    from keepsaid.app.channels import query_servers  # noqa: PLC0415 - help is shown without

    current = session()
    told = asyncio.run(query_servers(current.home, current.config()))
    rows = [_cells(one.name, *each) for one in told for each in one.served]
    rows += [(one.name, *"----", one.trouble) for one in told if one.trouble]
    shape = {"servers": [_shape(one) for one in told]}
    show(shape, Table(("SERVER", "TOOL", "ALLOWED", "TEXT", "CLASS", "ABOUT"), tuple(rows)))
    if not told:
        say("no server is named in tools.mcp")
    for one in told:
        if one.waiting:
            say(f"{counted(len(one.waiting), 'tool')} not offered; to accept: keepsaid ext tools accept {one.name}")


@app.command("accept")
def accept(
    server: Annotated[str, typer.Argument(help="The name of the server in `tools.mcp`.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Accept without asking.")] = False,
) -> None:
    """Show the texts of a server's tools that are new or changed, and accept them.

    The model is shown the description of a tool and the schema of its arguments. Hostile ones can steer it, so a tool
    is not offered until you accept its text, and not again after its server changes it. Asks on a terminal; elsewhere
    nothing is accepted without --yes. A running instance offers the tools from its next turn on.
    """
    from keepsaid.app import channels as served  # noqa: PLC0415 - help is shown without

    current = session()
    one = asyncio.run(served.query_server(current.home, current.config(), server))
    if one.trouble:
        safe, hint = "Nothing was accepted.", "keepsaid ext tools ls"
        raise ToolError(f"{server} cannot be asked for its tools: {one.trouble}", safe=safe, hint=hint)
    blocks = [line for each in one.waiting for line in _block(server, *each)]
    given = yes or (bool(blocks) and _agreed(server, blocks))
    if given and one.waiting:
        served.accept(current.home, one)
    names = [each.name for each, _ in one.waiting]
    shape = {"server": server, "accepted": names if given else [], "waiting": [] if given else names}
    many = counted(len(names), "tool")
    told = f"accepted: {many} of {server}" if given else f"{many} of {server} not accepted"
    show(shape | {"tools": _shape(one)["tools"]}, *blocks, told if names else f"no text of {server} waits")
    if names and not given:
        say(f"nothing was accepted; if these texts are what you expect: keepsaid ext tools accept {server} --yes")


def _agreed(server: str, blocks: list[str]) -> bool:
    """Ask on a terminal, after the texts; False elsewhere."""
    if session().json or not (sys.stdin.isatty() and on_terminal()):
        return False
    for line in blocks:
        say(line)
    blocks.clear()
    return typer.confirm(f"Accept these texts of {server}?", err=True)


def _block(server: str, one: Served, standing: ToolStanding) -> Iterator[str]:
    from keepsaid.app.channels import accepted_before  # noqa: PLC0415 - help is shown without

    yield f"{server}__{one.name}  ({standing})"
    if (before := accepted_before(session().home, server, one.name)) is not None:
        yield from _text("was", before)
    yield from _text("now", one.text)


def _text(when: str, text: Described) -> Iterator[str]:
    """A text as data: each of its lines is set in, so that none looks like ours."""
    yield f"  {when}:"
    yield from (f"    | {line}" for line in text.description.splitlines())
    yield f"    | arguments: {json.dumps(text.schema, ensure_ascii=False)}"


def _cells(server: str, one: Served, standing: ToolStanding) -> tuple[str, ...]:
    first, _, _ = one.description.partition("\n")
    return server, one.name, "yes" if one.allowed else "no", str(standing) if one.allowed else "-", one.kind, first


def _shape(one: QueriedServer) -> dict[str, Any]:
    tools = [
        {
            "name": each.name,
            "allowed": each.allowed,
            "text": str(standing),
            "class": each.kind,
            "about": each.description,
            "arguments": dict(each.schema),
        }
        for each, standing in one.served
    ]
    return {"name": one.name, "trouble": one.trouble or None, "tools": tools}
