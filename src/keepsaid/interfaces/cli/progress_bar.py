"""Progress of a command that takes long: a bar on a terminal, else a line now and then (short: one function)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from keepsaid.interfaces.cli.console import say, session

_SAID_EVERY = 10

Tell = Callable[[int, int, str], None]
"""Hears how much is done, of how much, and what is going on."""


@contextmanager
def progress(total: int, noun: str) -> Iterator[Tell]:
    """Shows it on stderr; `noun` says what is counted: `kills`."""
    if session().quiet or not sys.stderr.isatty():
        said = -1

        def tell(done: int, total: int, what: str) -> None:
            nonlocal said
            if done // _SAID_EVERY > said or done == total:
                said = done // _SAID_EVERY
                say(f"{done:5} of {total} {noun}   {what}".rstrip())

        yield tell
        return
    from rich import console, progress  # noqa: PLC0415 - 0.1 s that pipes and scripts need not pay

    errors = console.Console(stderr=True, no_color=not session().colour)
    with progress.Progress(console=errors, transient=True) as bar:
        task = bar.add_task("starting", total=total)
        yield lambda done, _, what: bar.update(task, completed=done, description=what)
