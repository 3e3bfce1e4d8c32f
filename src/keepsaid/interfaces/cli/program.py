"""The program: every command in its place, and the one guard around them, which says each error in a sentence."""

from __future__ import annotations

import logging
import os
import re
import sys
import traceback
from collections.abc import Callable
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from keepsaid.errors import ConfigError, HomeError, InputError, KeepsaidError, NotRunning, installation
from keepsaid.interfaces.cli.commands import plugin_commands, tree, walk
from keepsaid.interfaces.cli.console import CliSession, begin, command_of, envelope, folded, say, session
from keepsaid.interfaces.cli.escapes import VisibleRecord, visible
from keepsaid.text.normal import normalise
from keepsaid.values import frozen

FAILED, USAGE, NOT_RUNNING, NOT_CONFIGURED, WARNINGS, ERRORS, INTERRUPTED, TERMINATED = 1, 2, 3, 4, 5, 6, 130, 143
"""Exit codes, besides 0; 5 and 6 are the findings of a check."""


class Misused(KeepsaidError):
    """The command line was not understood."""

    code = "KS-USE"
    safe = "Nothing was done."
    hint = "keepsaid --help"


class Unexpected(KeepsaidError):
    """An error nobody foresaw: a bug."""

    code = "KS-BUG"
    safe = "What was acknowledged before is on disk."


def exit_code(error: KeepsaidError) -> int:
    """The exit code of an error."""
    if isinstance(error, Misused):
        return USAGE
    if isinstance(error, NotRunning):
        return NOT_RUNNING
    return NOT_CONFIGURED if isinstance(error, ConfigError) else FAILED


def tell(error: KeepsaidError, *, as_json: bool) -> None:
    """Say what happened, whether data is safe and what to run."""
    if as_json:
        print(envelope({"error": error.as_json()}), flush=True)
    else:
        lines = (f"error: {error.what}  [{error.code}]", f"  safe  {error.safe}", f"  try   {error.hint}")
        print(folded("\n".join(lines)), file=sys.stderr, flush=True)


def unexpected(error: Exception) -> Unexpected:
    """The error as people see it; its traceback stands in the log under a short id."""
    import secrets  # noqa: PLC0415 - needed when something broke

    short = secrets.token_hex(3)
    if session().verbose:
        print(visible("".join(traceback.format_exception(error))), file=sys.stderr)
    where = "in the log" if _logged(error, short) else "nowhere: the log cannot be written (-v prints it)"
    name = type(error).__name__
    return Unexpected(
        f"an unexpected {name}; its traceback is {where} as {short}", hint="keepsaid data logs --level error"
    )


def _logged(error: Exception, short: str) -> bool:
    from keepsaid.interfaces.cli.logs import append  # noqa: PLC0415 - needed when something broke

    raised = type(error), error, error.__traceback__
    record = logging.LogRecord("keepsaid.cli", logging.ERROR, "", 0, "unexpected error %s", (short,), raised)
    try:
        append(session().home.log_file, record)
    except (OSError, HomeError):
        return False
    return True


def guarded(command: Callable[[], int], *, as_json: bool) -> int:
    """Run a command; returns its exit code, and never raises."""
    try:
        return command()
    except KeepsaidError as error:
        tell(error, as_json=as_json)
        return exit_code(error)
    except (KeyboardInterrupt, EOFError):
        return INTERRUPTED
    except BrokenPipeError:
        return FAILED
    except Exception as error:  # noqa: BLE001  # guard: CLI entry - people get a sentence, the log a traceback
        bug = unexpected(error)
        tell(bug, as_json=as_json)
        return exit_code(bug)


_TESTKIT = ("bench", "selftest")
"""Commands of the testkit; without it, they print what to install."""

_FORMER = {
    ("prove",): ("selftest",),
    ("collect",): ("memory", "extract"),
    ("extract",): ("memory", "extract"),
    ("people",): ("memory", "people"),
    ("lanes",): ("inbox", "lanes"),
    ("task",): ("inbox", "tasks"),
    ("tools",): ("ext", "tools"),
    ("events",): ("ext", "events"),
    ("logs",): ("data", "logs"),
    ("memory", "wrong"): ("memory", "flag"),
    ("memory", "widen"): ("memory", "share"),
    ("inbox", "undrop"): ("inbox", "requeue"),
}
"""Commands by the names they had in the release before; they are taken for one release more."""

_SWITCHES = ("--json", "--quiet", "-q", "--verbose", "-v", "--no-color")
_VALUED = {"--home": "a directory", "--url": "an address"}
_PATHS = (["data"], ["bench"], ["inbox", "routes"], ["inbox", "replay"])
"""Commands whose arguments are paths: bytes of the file system, not text."""

_COMPLETION = "_KEEPSAID_COMPLETE"
"""The variable by which a shell asks for completions; it gives no arguments."""

_Misuse: type[Exception] = typer.BadParameter.__mro__[1]
"""What typer raises for a wrong command line: a class of click's, or of its own copy of click, by version."""


@frozen
class SharedOptions:
    """Options that every command has."""

    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False
    home: Annotated[Path | None, typer.Option(help="Directory with all data, instead of KEEPSAID_HOME.")] = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print data only.")] = False
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print tracebacks of unexpected errors.")] = False
    no_color: Annotated[bool, typer.Option("--no-color", help="Print without colour.")] = False
    url: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Speak to the instance at this address; KEEPSAID_TOKEN is its operator token."
        ),
    ] = ""


def _begin(given: SharedOptions) -> None:
    """Everything said is kept, and comes to mind when needed."""
    begin(CliSession(given.as_json, given.quiet, given.verbose, not given.no_color, given.home, given.url))


shared = command_of(SharedOptions, _begin)


def shared_first(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The shared options of a command line, which may stand anywhere before `--`, and the rest of it."""
    front, rest, left = list[str](), list[str](), iter(arguments)
    for argument in left:
        if argument == "--":
            rest += [argument, *left]
        elif argument in _SWITCHES or (argument.partition("=")[0] in _VALUED and "=" in argument):
            front.append(argument)
        elif argument in _VALUED:
            front += [argument, *islice(left, 1)]
        else:
            rest.append(argument)
    return front, rest


def _storable(rest: list[str]) -> list[str]:
    """The arguments with every text as it can be stored: what was not UTF-8 is replaced, except in paths."""
    return rest if rest[:1] in _PATHS or rest[:2] in _PATHS else [normalise(argument) for argument in rest]


def run(arguments: list[str]) -> int:
    """Run one command line; returns its exit code, and never raises."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(VisibleRecord())
    front, rest = shared_first(arguments)
    rest = _storable(rest)
    as_json = "--json" in front
    return guarded(lambda: _run(front, rest or ["--help"], as_json=as_json), as_json=as_json)


def _run(front: list[str], rest: list[str], *, as_json: bool) -> int:
    if rest[0] == "--version":
        from keepsaid import __version__  # noqa: PLC0415 - all of the library

        print(envelope({"version": __version__}) if as_json else f"keepsaid {__version__}")
        return 0
    for option, value in zip(front, [*front, ""][1:], strict=True):
        name, has_value, joined = option.partition("=")
        if name in _VALUED and not (joined if has_value else value):
            raise Misused(f"{name} needs {_VALUED[name]}")  # an empty one would be the directory one stands in
    rest = _named_as_now(rest)
    noun = rest[0]
    if noun in _TESTKIT and noun not in plugin_commands():
        raise Misused(
            f"{noun} comes with a distribution of its own", hint=installation(folder="./keepsaid/packages/testkit")
        )
    called = tree([] if _COMPLETION in os.environ else rest, shared)
    try:
        code = called([*front, *rest], prog_name="keepsaid", standalone_mode=False)
    except typer.Abort:
        return INTERRUPTED
    except _Misuse as error:
        said = getattr(error, "format_message", error.__str__)()
        raise Misused(_plain(said.strip().rstrip(".")), hint=_help(called, rest)) from error
    except InputError as error:
        if error.hint == InputError.hint:  # nobody said what to run instead
            error.hint = _help(called, rest)
        raise
    return code if isinstance(code, int) else 0


_TYPED = (
    (r"Input should be a valid integer\b.*", "expected an integer"),
    (r"Input should be a valid number\b.*", "expected a number"),
    (r"Input should be greater than or equal to (\S+)", r"expected at least \1"),
    (r"Input should be less than or equal to (\S+)", r"expected at most \1"),
)
"""What typer says of numbers, and our words for it."""


def _plain(what: str) -> str:
    for theirs, ours in _TYPED:
        what = re.sub(theirs, ours, what)
    return what


def _named_as_now(rest: list[str]) -> list[str]:
    """A command line with a command's former name replaced; says so."""
    for former, now in _FORMER.items():
        if tuple(rest[: len(former)]) == former:
            old, new = " ".join(former), " ".join(now)
            say(f"`keepsaid {old}` is called `keepsaid {new}` now, and its old name will go in the next release")
            return [*now, *rest[len(former) :]]
    return rest


def _help(called: Any, rest: list[str]) -> str:
    """What tells how to write the command of a command line; of one that stands below another, where it stands."""
    words, below = ["keepsaid"], getattr(called, "commands", {})
    paths = [] if rest[0] in below else [path for path, _ in walk(tree([], shared)) if path[-1] == rest[0]]
    if len(paths) == 1:
        return " ".join([*words, *paths[0], "--help"])
    for word in rest:
        if word not in below:
            break
        words.append(word)
        below = getattr(below[word], "commands", {})
    return " ".join([*words, "--help"])
