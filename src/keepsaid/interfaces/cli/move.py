"""`keepsaid data move`: takes both stores from files into a database, or back, and changes the one setting."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from keepsaid.config import Config
from keepsaid.config.document import parse_document
from keepsaid.config.edits import replace_config, with_setting, without_setting
from keepsaid.config.fields import variable_setting
from keepsaid.config.file import load_document
from keepsaid.errors import ConfigError
from keepsaid.interfaces.cli.console import now_ms, say, session, show
from keepsaid.text.normal import counted, without_logins

if TYPE_CHECKING:
    from keepsaid.app.moving import StoresMoved

FILES = "files"
_URL = ("store", "url")


def move(
    to: Annotated[
        str,
        typer.Option("--to", metavar="URL", help="postgresql://..., or '${VARIABLE}' that holds it, or files."),
    ],
) -> None:
    """Move both stores into a database of PostgreSQL, or back into files.

    Copies every row, compares every row, and then sets store.url. While keepsaid runs, the rows
    are only copied: stop it and run the command again, which copies what changed since. If the
    command is killed, the stores in use stay the ones that were; run it again.
    """
    from keepsaid.app.moving import MoveOrder, move_stores  # noqa: PLC0415 - `--help` needs none of it

    home, config = session().home, session().config()
    if variable := variable_setting(_URL):
        what = f"the environment variable {variable} says where the stores are, and wins over the config file"
        raise ConfigError(what, safe="Nothing was changed.", hint=f"unset {variable}, set store.url and run it again")
    file = home.config_file
    text = file.read_bytes().decode("utf-8") if file.exists() else ""
    parse_document(text, file)
    if to != FILES and not to.startswith(("postgresql://", "postgres://", "${")):
        raise typer.BadParameter("it is neither postgresql://... nor files", param_hint="--to")
    changed = without_setting(text, _URL) if to == FILES else with_setting(text, _URL, to)
    wanted = _changed_config(changed, file)
    if "://" in to and urlsplit(to).password:
        say("warning: the history of your shell may keep the password; ~/.pgpass or '${VARIABLE}' avoids that")
    with _shown_meanwhile() as tell:
        order = MoveOrder(wanted, lambda: replace_config(file, changed), now_ms(), tell)
        moved = asyncio.run(move_stores(home, config, order))
    _show(moved, without_logins(to), file)


@contextmanager
def _shown_meanwhile() -> Iterator[Callable[[str], object]]:
    """Show on a terminal what is done."""
    if session().quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 - 0.1 s that pipes and scripts need not pay

    with Console(stderr=True, no_color=not session().colour).status("opening both places") as status:
        yield status.update


def _changed_config(text: str, file: Path) -> Config:
    """Return the settings of the changed file. Raises ConfigError with the file as it was."""
    try:
        return load_document(parse_document(text, file))[0]
    except ConfigError as error:
        error.safe = f"{file} was not changed."
        raise


def _show(moved: StoresMoved, to: str, file: Path) -> None:
    rows, changed = sum(one.rows for one in moved.tables), sum(one.changed for one in moved.tables)
    tables = [{"table": one.table, "rows": one.rows, "hash": one.hash} for one in moved.tables]
    shape = {"to": to, "switched": not moved.working, "rows": rows, "tables": tables}
    if moved.working:
        show(
            {**shape, "working": list(moved.working), "kept": []},
            f"copied   {counted(changed, 'row')} to {to}; {counted(rows, 'row')} are there now",
            f"not switched: {', '.join(moved.working)} works with the stores",
        )
        say("try: stop it, and run this command again; only what changed since is copied then")
        return
    kept = [str(path) for path in moved.kept]
    left = kept or [f"the schema keepsaid in {moved.former}"]
    show(
        {**shape, "working": [], "kept": kept},
        f"moved    {counted(rows, 'row')} to {to}; each was read again and compared",
        f"wrote    {file}",
        *(f"kept     {one}: what is forgotten from now on stays in it until you delete it" for one in left),
    )
    say("try: keepsaid doctor")
