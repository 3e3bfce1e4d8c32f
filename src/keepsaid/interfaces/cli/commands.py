"""The tree of commands: in which group each is, which commands it has below it, and how help is laid out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from keepsaid.interfaces.cli.examples import EXAMPLES

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = {
    "Talk": {
        "chat": "Chat in the terminal, send lines through a pipe, or ask once with -m",
        "serve": "Run the server until it is stopped",
        "mcp": "Serve memory to an MCP client over stdin and stdout",
    },
    "See": {
        "status": "Show whether keepsaid runs, what waits, and what needs attention",
        "why": "Explain one turn: what the model saw, and why",
        "doctor": "Check the installation, the stores and everything that needs attention",
    },
    "Memory": {
        "memory": "Search, correct, share and delete memories",
    },
    "Work": {
        "inbox": "Inspect and manage messages",
        "schedule": "Schedule messages, prompts and jobs",
    },
    "Set up": {
        "init": "Set up keepsaid and choose a model that replies",
        "channel": "Set up the channels that listen, and say who may talk there",
        "config": "Show, check and change the settings",
        "models": "List, test and download models; run a scripted one",
        "data": "Back up, restore, export, import, prune and move; show the log",
        "ext": "Manage extensions",
    },
}
"""The commands, as help groups them; each is in the module of its name: a function, or `app` if it has subcommands.

Each has the first sentence of its own help, so that help of the whole program imports none of them.
"""

NOUNS = tuple(chain.from_iterable(GROUPS.values()))
"""The names of the commands, in the order of help."""

BELOW = {
    "inbox": ("lanes", "tasks"),
    "memory": ("people", "entities", "extract"),
    "ext": ("tools", "events", "connect"),
    "data": ("logs",),
}
"""Commands that stand below another one, each in the module of its name."""

_FIRST = {"memory": ("search", "ls", "show", "add", "edit", "forget", "restore")}
"""Commands that help lists before the others below the same one."""

_ENTRY_POINTS = "keepsaid.commands"
_OTHERS = "From other packages"
_WIDTH_MAX = 100
_INDENT = 2
_HELP_OPTIONS = ("-h", "--help")

_METAVAR_OF = {
    "channel": "NAME", "sender": "NAME", "conversation": "NAME", "account": "NAME", "topic": "NAME", "person": "NAME",
    "since": "TIME", "until": "TIME", "as_of": "TIME", "state": "STATE", "kind": "KIND", "host": "ADDRESS",
    "timezone": "ZONE", "root": "DIR", "home": "DIR", "undo_for": "TIME", "memory": "ID", "turn": "ID",
}  # fmt: skip
"""What help writes for the value of an option or an argument, by its name."""


class HelpGroup(TyperGroup):
    """A command with subcommands, whose help lists them by group, each with a whole sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section for each group that has commands here."""
        known = {name: command for name, command in self.commands.items() if not command.hidden}
        sections = {title: tuple(names) for title, names in GROUPS.items()} if ctx.parent is None else {}
        sections[_OTHERS if sections else "Commands"] = tuple(
            name for name in known if name not in chain(*sections.values())
        )
        width = max(map(len, known), default=0)
        for title, names in sections.items():
            rows = [(name.ljust(width), _first_sentence(known[name].help or "")) for name in names if name in known]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class HelpCommand(TyperCommand):
    """A command whose help names its arguments as they are typed."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The parts of the usage line: `[OPTIONS]`, then each argument, in brackets if it may be left out."""
        arguments = [one for one in self.get_params(ctx) if one.param_type_name == "argument"]
        return ["[OPTIONS]", *(_typed(one) for one in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                is_argument = parameter.param_type_name == "argument"
                name, text = (str(parameter.metavar), record[1]) if is_argument else record
                sections["Arguments" if is_argument else "Options"].append((name, _RANGE.sub(r"\1 to \2", text)))
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _typed(argument: Any) -> str:
    """An argument as it is typed: `ID`, `[ID]`, `ID...`."""
    several = "..." if argument.nargs != 1 and not argument.metavar.endswith("...") else ""
    typed = f"{argument.metavar}{several}"
    return typed if argument.required or typed.startswith("[") else f"[{typed}]"


_RANGE = re.compile(r"(\d{1,19})<=x<=(\d{1,19})")


def _first_sentence(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def tree(words: list[str], options: Callable[..., None]) -> Any:
    """The program as far as a command line of `words` needs it; for help of the whole program, all of it.

    `options` declares the options of every command. A command that starts does not import the others.
    """
    root = get_command(application(words, options))
    for path, command in ((), root), *walk(root):
        _describe(path, command)
    return root


def application(words: list[str], options: Callable[..., None]) -> typer.Typer:
    """The commands that a command line of `words` needs, as they are declared."""
    first = words[0] if words else ""
    made = typer.Typer(
        name="keepsaid",
        add_completion=first not in NOUNS,
        cls=HelpGroup,
        epilog="These options may also follow the command. `keepsaid --version` prints the version.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": [*_HELP_OPTIONS], "max_content_width": _WIDTH_MAX},
    )
    made.callback()(options)
    lent = {} if first in NOUNS else plugin_commands()
    wanted = (first,) if first in NOUNS or first in lent else (*NOUNS, *lent)
    if first in _HELP_OPTIONS:
        for noun, sentence in chain.from_iterable(names.items() for names in GROUPS.values()):
            made.command(noun, help=sentence)(_not_built)
        wanted = tuple(lent)
    for noun in wanted:
        _add(made, noun, lent[noun].load() if noun in lent else _own(noun), words[1:])
    return made


def _not_built() -> None:
    """A command that is only listed."""


def _add(above: typer.Typer, name: str, command: Any, words: list[str]) -> None:
    """Add a command, and of those below it the ones that `words` name; all of them if `words` name none."""
    if not isinstance(command, typer.Typer):
        above.command(name, cls=HelpCommand)(command)
        return
    group = typer.Typer(help=command.info.help, rich_markup_mode=None)
    order = {first: place for place, first in enumerate(_FIRST.get(name, ()))}
    for one in sorted(command.registered_commands, key=lambda one: order.get(str(one.name), len(order))):
        if one.callback is not None:
            group.command(one.name, cls=HelpCommand)(one.callback)
    for inner in command.registered_groups:
        _add(group, str(inner.name), inner.typer_instance, [])
    below, own = BELOW.get(name, ()), {str(one.name) for one in command.registered_commands}
    first = words[0] if words else ""
    for noun in (first,) if first in below else () if first in own else below:
        _add(group, noun, _own(noun), words[1:])
    above.add_typer(group, name=name, cls=HelpGroup)


def _own(noun: str) -> Any:
    module = import_module(f"keepsaid.interfaces.cli.{noun}")
    return getattr(module, "app", None) or getattr(module, noun)


def plugin_commands() -> dict[str, EntryPoint]:
    """Commands of other distributions, by name: entry points of the group `keepsaid.commands`."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - looks at every distribution; our own need none

    return {found.name: found for found in entry_points(group=_ENTRY_POINTS) if found.name not in NOUNS}


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command below one, with its path."""
    for name, inner in getattr(command, "commands", {}).items():
        yield (*path, name), inner
        yield from walk(inner, (*path, name))


def _describe(path: tuple[str, ...], command: Any) -> None:
    """Give a command its examples, and its options names for their values that a person understands."""
    for parameter in command.params:
        if parameter.metavar is None:
            is_number = isinstance(parameter.default, int)
            is_argument = parameter.param_type_name == "argument"
            usual = parameter.name.upper() if is_argument else "N" if is_number else "TEXT"
            parameter.metavar = _METAVAR_OF.get(parameter.name, usual)
    if lines := EXAMPLES.get(" ".join(path)):
        shown = "\n".join(f"{' ' * _INDENT}keepsaid {line}" for line in lines)
        command.epilog = f"\b\nExample{'s' if len(lines) > 1 else ''}:\n{shown}"
