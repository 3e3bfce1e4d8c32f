"""The console: the options that commands share, how they read the stores of a home, and what they print."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from dataclasses import MISSING, Field, fields
from functools import cache
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from keepsaid.domain import ids
from keepsaid.errors import HomeError, InputError
from keepsaid.interfaces.cli.escapes import json_line, visible
from keepsaid.text.normal import cut, duration
from keepsaid.values import frozen

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from keepsaid.app.stores import ReadOnlyStores
    from keepsaid.config import Config, Home

    Stores = ReadOnlyStores
    """What the work of `CliSession.read` is given."""

T = TypeVar("T")


@frozen
class CliSession:
    """How one command was called."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    colour: bool = True
    root: Path | None = None
    url: str = ""
    """The address of an instance elsewhere; empty for that of the home."""

    @property
    def home(self) -> Home:
        """The home; raises HomeError when a file stands where a directory belongs, InputError with --url."""
        if self.url:
            what = "this command works with the files of a home, and --url names an instance elsewhere"
            raise InputError(what, safe="Nothing was done.", hint="run it on the machine of that instance")
        return self.here

    @property
    def here(self) -> Home:
        """The home on this machine, also where the command speaks to another instance."""
        from keepsaid.config import Home  # noqa: PLC0415 - the tree of settings costs 0.1 s, which `--help` saves

        home = Home.at(self.root)
        standing = next((place for place in (home.data, *home.data.parents) if place.exists()), None)
        if standing is not None and not standing.is_dir():
            raise HomeError(f"{standing} is a file; a home is a directory", hint="keepsaid --home DIR status")
        if not is_text(home.data):
            raise HomeError("the path of the home is not UTF-8", hint="keepsaid --home DIR status")
        return home

    def config(self) -> Config:
        """The settings as they stand; keys nobody reads are named on stderr. Raises ConfigError."""
        return _settings(self)

    def stored(self) -> bool:
        """Whether anything was ever stored in this home."""
        from keepsaid.app.store_place import place_of  # noqa: PLC0415

        return place_of(self.home, self.config()).exists()

    def read(self, work: Callable[[ReadOnlyStores], Awaitable[T]]) -> T | None:
        """What `work` reads of both stores, beside a runtime that may be writing them; None if nothing was stored."""
        import asyncio  # noqa: PLC0415

        from keepsaid.app.stores import reading  # noqa: PLC0415

        home, config = self.home, self.config()
        if not self.stored():
            return None

        async def opened() -> T:
            async with reading(home, config) as stores:
                return await work(stores)

        return asyncio.run(opened())

    def need(self, work: Callable[[ReadOnlyStores], Awaitable[T | None]], what: str, hint: str) -> T:
        """What `work` reads of both stores. Raises InputError, which says `what`, if there is nothing."""
        if (found := self.read(work)) is None:
            raise refused(what, hint)
        return found


def is_text(path: Path) -> bool:
    """Whether a path is UTF-8; SQLite opens no other."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


@cache
def _settings(current: CliSession) -> Config:
    from keepsaid.config import load  # noqa: PLC0415

    config, warnings = load(current.home.config_file)
    for warning in warnings:
        say(f"warning: {warning}")
    return config


_current: ContextVar[CliSession] = ContextVar("session", default=CliSession())  # noqa: B039 - frozen


def session() -> CliSession:
    """The session of the command that runs."""
    return _current.get()


def begin(current: CliSession) -> None:
    """Let `current` be the session from here on."""
    _current.set(current)


def say(text: str, *, always: bool = False) -> None:
    """Talk to the person, on stderr, unless --quiet; what is refused is said `always`."""
    if always or not session().quiet:
        print(folded(text), file=sys.stderr, flush=True)


_BEGINNING = re.compile(r"\s*(?:(?:warning|error):|\S+ {2,})?\s*")


def folded(text: str) -> str:
    """What goes to stderr: on a terminal, lines longer than it is wide go on below, and no word is cut."""
    text = visible(text)
    if not sys.stderr.isatty():
        return text
    width, lines = max(_COLUMNS_MIN, get_terminal_size().columns - 1), list[str]()
    for line in text.split("\n"):
        begins = _BEGINNING.match(line)
        indent = min(begins.end() if begins else 0, width // 2) * " "
        lines += textwrap.wrap(
            line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False,
            replace_whitespace=False,
        ) or [""]  # fmt: skip
    return "\n".join(lines)


Options = TypeVar("Options", bound="DataclassInstance")
Limit = Annotated[int, typer.Option("-n", "--limit", min=1, max=10_000, help="How many.")]


def command_of(options: type[Options], run: Callable[[Options], None]) -> Callable[..., None]:
    """A command with an option for each field of `options`, as its annotation says; it calls `run` with the value."""
    hints = get_type_hints(options, include_extras=True)

    def command(**given: Any) -> None:
        run(options(**given))

    def parameter(one: Field[Any]) -> inspect.Parameter:
        default = inspect.Parameter.empty if one.default is MISSING else one.default
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Parameter(one.name, kind, default=default, annotation=hints[one.name])

    command.__name__, command.__doc__, command.__annotations__ = run.__name__, run.__doc__, hints
    command.__dict__["__signature__"] = inspect.Signature([parameter(one) for one in fields(options)])
    return command


def check_choice(option: str, value: str | None, known: Iterable[str]) -> None:
    """Raise BadParameter for a value that is none of those known; None is an option that was not given."""
    if value is not None and value not in (names := list(known)):
        raise typer.BadParameter(f"{value!r} is not one of: {', '.join(names)}", param_hint=option)


def refused(what: str, hint: str = InputError.hint) -> InputError:
    """The error for an input by which nothing was changed."""
    return InputError(what, safe="Nothing was changed.", hint=hint)


def id_of(kind: str, name: str, hint: str, what: str = "") -> int:
    """The number of an id that was typed. Raises InputError, which says `what`."""
    if (number := ids.read(kind, name)) is None:
        raise refused(what or f"there is no {kind} {name}", hint)
    return number


def name_of(kind: str, name: str, hint: str, what: str = "") -> str:
    """An id that was typed, as it is written everywhere. Raises InputError, which says `what`."""
    return ids.show(kind, id_of(kind, name, hint, what))


def from_stdin() -> str:
    """All of stdin, for an argument that is `-`; what is not UTF-8 is replaced."""
    return sys.stdin.buffer.read().decode("utf-8", "replace").removesuffix("\n")


SCHEMA_VERSION = 1
"""Version of the `--json` envelope."""

NOTHING = "nothing was ever stored here: keepsaid chat"
"""What is said of a home without stores."""

_TABLE_TEXT_MAX = 100
_LAST_MIN, _NARROW = 24, 72
_COLUMNS, _COLUMNS_MIN, _COLUMNS_MAX = 79, 40, 100
_GAP = 2


@frozen
class Table:
    """Rows under headings; the last column takes what width is left.

    Where a terminal is too narrow for all, the columns `optional` are left out, the first of them first.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    optional: tuple[str, ...] = ()

    def fitting(self, room: int, length: Callable[[str], int] = len) -> Table:
        """The table with as many of its optional columns as fit into `room` columns of the terminal."""
        table = self
        for heading in self.optional:
            widths = [max(map(length, column)) for column in zip(*table.shown, strict=True)]
            if sum(widths[:-1]) + _GAP * len(widths) + _LAST_MIN <= room:
                break
            at = table.headings.index(heading)
            rows = tuple((*row[:at], *row[at + 1 :]) for row in table.rows)
            table = Table((*table.headings[:at], *table.headings[at + 1 :]), rows)
        return table

    @property
    def shown(self) -> list[tuple[str, ...]]:
        """The headings and the rows, each cell on one line."""
        return [self.headings, *(tuple(map(one_line, row)) for row in self.rows)]

    def lines(self) -> list[str]:
        """The table as aligned text."""
        rows = self.shown
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def envelope(shape: dict[str, Any]) -> str:
    """The JSON that programs read, on one line."""
    return json_line({"schema_version": SCHEMA_VERSION, **shape})


def show(shape: dict[str, Any], *parts: str | Table) -> None:
    """Print data: the shape under --json, else the parts."""
    if session().json:
        print(envelope(shape), flush=True)
        return
    for part in parts:
        if isinstance(part, str):
            print(visible(part))
        elif on_terminal():
            _print_rich(part)
        else:
            print("\n".join(part.lines()))
    sys.stdout.flush()


def show_rows(
    shape: dict[str, Any],
    headings: tuple[str, ...],
    rows: Iterable[tuple[str, ...]],
    empty: str,
    optional: tuple[str, ...] = (),
) -> None:
    """Print rows as data; if there are none, say `empty`, or that nothing was ever stored."""
    table = Table(headings, tuple(rows), optional)
    show(shape, table)
    if not table.rows:
        say(empty if session().stored() else NOTHING)


_LISTED = 20


def say_more(count: int, limit: int) -> None:
    """Say that a list ended at its limit, unless somebody asked for few."""
    if count == limit >= _LISTED:
        say(f"only the newest {limit}; more: -n {10 * limit}")


def on_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def coloured() -> bool:
    """Whether colour is wanted: a terminal, without NO_COLOR or --no-color."""
    return on_terminal() and session().colour and not os.environ.get("NO_COLOR")


def _print_rich(table: Table) -> None:
    from rich import cells, console, text  # noqa: PLC0415 - 0.1 s that pipes and scripts need not pay
    from rich import table as tables  # noqa: PLC0415

    table = table.fitting(console.Console().width, cells.cell_len)
    rows = table.shown
    widths = [max(map(cells.cell_len, column)) for column in zip(*rows, strict=True)]
    before = sum(widths[:-1]) + _GAP * (len(widths) - 1)
    # Ids are there to be copied: what does not fit is cut from the last column, and never below what can be read.
    room = console.Console().width
    least = _LAST_MIN if room > _NARROW else _LAST_MIN // 2
    widths[-1] = max(least, min(widths[-1], room - before - _GAP))
    page = console.Console(width=before + widths[-1] + _GAP, no_color=not coloured(), highlight=False)
    drawn = tables.Table(box=None, pad_edge=False, header_style="bold" if coloured() else "", padding=(0, _GAP, 0, 0))
    for heading, width in zip(table.headings, widths, strict=True):
        drawn.add_column(heading, no_wrap=True, overflow="ellipsis", width=width)
    for row in rows[1:]:
        drawn.add_row(*map(text.Text, row))
    page.print(drawn)


def one_line(text: str) -> str:
    """The text on one line, cut where a table would be too wide."""
    return cut(" ".join(visible(text).split()), _TABLE_TEXT_MAX)


def now_ms() -> int:
    """Now, in milliseconds UTC."""
    return int(time.time() * 1_000)


def age_ms(at: int | None) -> int | None:
    """Milliseconds since a time in milliseconds UTC."""
    return None if at is None else max(0, now_ms() - at)


def age(at: int | None) -> str:
    """The span since a time in milliseconds UTC, for people."""
    return duration(age_ms(at))


def facts(pairs: Iterable[tuple[str, str]], width: int = 11) -> str:
    """Lines of a name and what is to be said about it; on a terminal, folded where they are wider than it."""
    if on_terminal():
        return wrapped(pairs, width)
    return "\n".join(f"{name.ljust(width)} {value}".rstrip() for name, value in pairs)


def render_value(value: object) -> str:
    """Render a JSON value for the terminal: None and "" as a dash, booleans as `yes` and `no`."""
    if value is None or value == "":
        return "-"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def json_text(value: object) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def columns() -> int:
    """How many columns text may take: those of the terminal, up to a width that reads well; 79 in a pipe."""
    return min(max(_COLUMNS_MIN, get_terminal_size().columns - 1), _COLUMNS_MAX) if on_terminal() else _COLUMNS


def wrapped(pairs: Iterable[tuple[str, str]], width: int = 11) -> str:
    """Facts in the width of the terminal: what is longer goes on below, under itself; no word is cut."""
    room = columns() - width - 1
    lines = []
    for name, value in pairs:
        parts = textwrap.wrap(value, room, break_long_words=False, break_on_hyphens=False) or [""]
        lines += [f"{'' if place else name:{width}} {part}".rstrip() for place, part in enumerate(parts)]
    return "\n".join(lines)
