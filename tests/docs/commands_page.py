"""The page of every command, made from the program's own definitions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from tests.docs.markdown import lines_of, table
from typer import Typer
from typer.models import OptionInfo, ParameterInfo

from keepsaid.interfaces.cli import program
from keepsaid.interfaces.cli.commands import NOUNS, application, plugin_commands
from keepsaid.interfaces.cli.examples import EXAMPLES
from keepsaid.interfaces.cli.program import shared
from keepsaid.interfaces.cli.talk import HELP

_HEAD = """\
# Commands

`keepsaid COMMAND --help` prints the same. Data goes to stdout, messages to stderr; `--json` prints one
JSON object with a `schema_version` instead of text. Every command works with and without a running
server: reading commands open the files read-only, writing commands ask the server, or take the
lock of the home themselves.
"""

_SHARED = "These may come before or after the command:\n"

_CHAT = """\
A line that is exactly one of these is a command. Any other line is a message, also if it begins with a
slash. `//` before the name of a command sends the line as a message.
"""

_CODES = (
    (0, "success"),
    (program.FAILED, "failure; stderr says what happened, whether data is safe, and what to run"),
    (program.USAGE, "the command line was not understood"),
    (program.NOT_RUNNING, "no server is running, or it stopped answering"),
    (program.NOT_CONFIGURED, "a setting is wrong or missing"),
    (program.WARNINGS, "a check found warnings (`config validate`, `doctor`)"),
    (program.ERRORS, "a check found errors (`doctor`)"),
    (program.INTERRUPTED, "interrupted at the keyboard"),
    (program.TERMINATED, "`chat -m` got SIGTERM before there was a reply"),
)

_VALUES = {str: "TEXT", int: "NUMBER", Path: "PATH"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """An option or argument of a command, as it is typed."""

    name: str
    info: ParameterInfo
    kind: Any
    default: Any

    @property
    def is_option(self) -> bool:
        """Whether it has a name on the command line."""
        return isinstance(self.info, OptionInfo)

    @property
    def typed(self) -> str:
        """How it is written: `-n, --limit NUMBER`, or `ID`."""
        if not self.is_option:
            return self.info.metavar or self.name.upper()
        # Inside Annotated, typer takes the first name for the default.
        names = [one for one in (self.info.default, *(self.info.param_decls or ())) if isinstance(one, str)]
        names = sorted(names or [f"--{self.name.replace('_', '-')}"], key=len)
        value = "" if self.kind is bool else f" {self.info.metavar or _VALUES[self.kind]}"
        return f"{', '.join(names)}{value}"

    @property
    def is_needed(self) -> bool:
        """Whether the command cannot do without it."""
        return self.default is inspect.Parameter.empty

    @property
    def usual(self) -> str:
        """Its default."""
        if self.is_needed:
            return "required"
        return "" if self.default in (None, False, "") else f"`{self.default}`"


def page() -> str:
    """The whole page."""
    shown = [_HEAD, "## Exit codes\n", table(["code", "meaning"], [[str(code), said] for code, said in _CODES])]
    shown += ["## Options of every command\n", _SHARED, _options(shared)]
    made = application([], shared)
    groups = {group.name: group.typer_instance for group in made.registered_groups}
    commands = {one.name: one.callback for one in made.registered_commands}
    for noun in (*NOUNS, *plugin_commands()):
        group, command = groups.get(noun), commands.get(noun)
        if group is not None:
            shown += _group(noun, group)
        elif command is not None:
            shown += _command(f"keepsaid {noun}", command, "##")
        if noun == "chat":
            shown += [_CHAT, table(["line", "meaning"], [[f"`{name}`", meaning] for name, meaning in HELP.items()])]
    return lines_of("\n".join(shown))


def _group(noun: str, group: Typer) -> Iterator[str]:
    yield f"## keepsaid {noun}\n"
    yield f"{group.info.help}\n"
    yield from _commands(noun, group)


def _commands(line: str, group: Typer) -> Iterator[str]:
    for one in group.registered_commands:
        assert one.callback is not None, f"{one.name} does nothing"
        yield from _command(f"keepsaid {line} {one.name}", one.callback, "###")
    for inner in group.registered_groups:
        assert inner.typer_instance is not None, f"{inner.name} has no commands"
        yield from _commands(f"{line} {inner.name}", inner.typer_instance)


def parameters(callback: Callable[..., Any]) -> Iterator[Parameter]:
    """The options and arguments of a command, in order."""
    hints = get_type_hints(callback, include_extras=True)
    for name, given in inspect.signature(callback).parameters.items():
        kind, info = hints[name], None
        if get_origin(kind) is Annotated:
            kind, *extras = get_args(kind)
            info = next((one for one in extras if isinstance(one, ParameterInfo)), None)
        assert info is not None, f"{callback.__name__}: {name} is neither option nor argument"
        inner = [one for one in get_args(kind) if one is not type(None)]
        yield Parameter(name, info, inner[0] if inner else kind, given.default)


def _command(line: str, callback: Callable[..., Any], heading: str) -> Iterator[str]:
    yield f"{heading} {line}\n"
    yield f"{inspect.getdoc(callback)}\n"
    told = list(parameters(callback))
    usage = [one.typed if one.is_needed else f"[{one.typed}]" for one in told if one.is_needed or not one.is_option]
    if usage:
        yield f"`{' '.join([line, *usage])}`\n"
    if told:
        yield _options(callback)
    if examples := EXAMPLES.get(line.removeprefix("keepsaid ")):
        shown = ", ".join(f"`keepsaid {one}`" for one in examples)
        yield f"Example{'s' if len(examples) > 1 else ''}: {shown}\n"


def _options(callback: Callable[..., Any]) -> str:
    rows = [[f"`{one.typed}`", one.usual, str(one.info.help)] for one in parameters(callback)]
    return table(["option or argument", "default", "meaning"], rows)
