"""The help of every command as it is printed in 80 columns: kept in a file, so that a change is read by a person."""

from __future__ import annotations

from functools import cache

from keepsaid.interfaces.cli.commands import tree, walk
from keepsaid.interfaces.cli.program import shared

COLUMNS = 80


@cache
def page() -> str:
    """The help of the program and of every command below it."""
    root = tree([], shared)
    context = {"terminal_width": COLUMNS - 2, "help_option_names": ["-h", "--help"]}
    parts = [root.make_context("keepsaid", [], resilient_parsing=True, **context).get_help()]
    for path, command in walk(root):
        name = " ".join(("keepsaid", *path))
        parts.append(command.make_context(name, [], resilient_parsing=True, **context).get_help())
    return f"\n\n{'-' * COLUMNS}\n".join(part.strip() for part in parts) + "\n"
