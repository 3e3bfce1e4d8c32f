"""Options and arguments that several commands share: how many rows, a value of several, an id, all of stdin."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, fields
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from keepsaid.domain.ids import read
from keepsaid.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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
        raise typer.BadParameter(f"{value!r} is none of: {', '.join(names)}", param_hint=option)


def refused(what: str, hint: str) -> InputError:
    """The error for an input by which nothing was changed."""
    return InputError(what, safe="Nothing was changed.", hint=hint)


def id_of(kind: str, name: str, hint: str, what: str = "") -> int:
    """The number of an id that was typed. Raises InputError, which says `what`."""
    number = read(kind, name)
    if number is None:
        raise refused(what or f"there is no {kind} {name}", hint)
    return number


def from_stdin() -> str:
    """All of stdin, for an argument that is `-`; what is not UTF-8 is replaced."""
    return sys.stdin.buffer.read().decode("utf-8", "replace").removesuffix("\n")
