"""Given: the options of a command as the fields of a value, where they are many, and a text that comes by stdin."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def command_of(options: type[T], run: Callable[[T], None]) -> Callable[..., None]:
    """A command with an option for each field of `options`, as its annotation says; it calls `run` with the value."""
    hints = get_type_hints(options, include_extras=True)

    def command(**given: Any) -> None:
        run(options(**given))

    parameters = [
        inspect.Parameter(
            one.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=one.default, annotation=hints[one.name]
        )
        for one in fields(options)
    ]
    command.__name__, command.__doc__, command.__annotations__ = run.__name__, run.__doc__, hints
    command.__dict__["__signature__"] = inspect.Signature(parameters)
    return command


def from_stdin() -> str:
    """All of stdin, for an argument that is `-`; what is not UTF-8 is replaced."""
    return sys.stdin.buffer.read().decode("utf-8", "replace").removesuffix("\n")
