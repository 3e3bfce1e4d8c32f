"""Progress: how far something long has come, as a bar on a terminal and as a line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from keepsaid.interfaces.cli.session import say, session

_SAID_EVERY = 10

Tell = Callable[[int, int, str], None]
"""Hears how much is done, of how much, and what is going on."""


@contextmanager
def progress(total: int, noun: str) -> Iterator[Tell]:
    """Shows it on stderr; `noun` says what is counted: `kills`."""
    if session().quiet or not sys.stderr.isatty():
        yield _plain(noun)
        return
    from rich.console import Console  # noqa: PLC0415 - 0.1 s that pipes and scripts need not pay
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True, no_color=not session().colour), transient=True) as bar:
        task = bar.add_task("starting", total=total)
        yield lambda done, _, what: bar.update(task, completed=done, description=what)


def _plain(noun: str) -> Tell:
    """Says a line now and then, and one at the end."""
    said = -1

    def tell(done: int, total: int, what: str) -> None:
        nonlocal said
        if done // _SAID_EVERY > said or done == total:
            said = done // _SAID_EVERY
            say(f"{done:5} of {total} {noun}   {what}".rstrip())

    return tell
