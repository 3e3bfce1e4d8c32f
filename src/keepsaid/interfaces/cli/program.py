"""The program: every command in its place, the options all of them share, and the one guard around them."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from keepsaid.interfaces.cli import (
    chat,
    config,
    data,
    doctor,
    inbox,
    init,
    logs,
    memory,
    serve,
    status,
    why,
)
from keepsaid.interfaces.cli.failure import INTERRUPTED, Misused, guarded
from keepsaid.interfaces.cli.output import envelope
from keepsaid.interfaces.cli.session import Session, begin

_SWITCHES = ("--json", "--quiet", "-q", "--verbose", "-v", "--no-color")
_VALUED = "--home"
_Misuse: type[Exception] = typer.BadParameter.__mro__[1]
"""What typer raises for a wrong command line: a class of click's, or of its own copy of click, by version."""

app = typer.Typer(
    name="keepsaid",
    help="Everything said is kept, and comes to mind when needed.",
    epilog="The options above may also stand after the command. `keepsaid --version` prints the version.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def shared(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
    home: Annotated[Path | None, typer.Option(help="Where everything is kept, instead of KEEPSAID_HOME.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print data only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print tracebacks of unexpected errors.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="Print without colour.")] = False,
) -> None:
    """Everything said is kept, and comes to mind when needed."""
    begin(Session(as_json, quiet, verbose, not no_color, home))


app.command("init")(init.init)
app.command("chat")(chat.chat)
app.command("serve")(serve.serve)
app.command("status")(status.status)
app.add_typer(inbox.app, name="inbox")
app.add_typer(memory.app, name="memory")
app.command("why")(why.why)
app.command("logs")(logs.logs)
app.add_typer(config.app, name="config")
app.command("doctor")(doctor.doctor)
app.add_typer(data.app, name="data")


def shared_first(arguments: list[str]) -> list[str]:
    """The command line with the shared options moved to its front, so that they may stand anywhere before `--`."""
    front: list[str] = []
    rest: list[str] = []
    left = iter(arguments)
    for argument in left:
        if argument == "--":
            rest += [argument, *left]
        elif argument in _SWITCHES or argument.startswith(f"{_VALUED}="):
            front.append(argument)
        elif argument == _VALUED:
            front += [argument, *(value for value in [next(left, None)] if value is not None)]
        else:
            rest.append(argument)
    return [*front, *rest]


def run(arguments: list[str]) -> int:
    """Run one command line; returns its exit code, and never raises."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    ordered = shared_first(arguments)
    options = ordered[: ordered.index("--")] if "--" in ordered else ordered
    as_json = "--json" in options
    if "--version" in options:
        return guarded(lambda: _version(as_json=as_json), as_json=as_json)
    asked = ordered if set(ordered) - set(_SWITCHES) else [*ordered, "--help"]
    return guarded(lambda: _run(asked), as_json=as_json)


def _run(arguments: list[str]) -> int:
    try:
        code = app(arguments, prog_name="keepsaid", standalone_mode=False)
    except typer.Abort:
        return INTERRUPTED
    except _Misuse as error:
        raise _misused(error) from error
    return code if isinstance(code, int) else 0


def _misused(error: Exception) -> Misused:
    context = getattr(error, "ctx", None)
    said = getattr(error, "format_message", error.__str__)()
    return Misused(said.strip().rstrip("."), hint=f"{context.command_path if context else 'keepsaid'} --help")


def _version(*, as_json: bool) -> int:
    from keepsaid import __version__  # noqa: PLC0415

    print(envelope({"version": __version__}) if as_json else f"keepsaid {__version__}")
    return 0
