"""Declare: what an extension in one file is marked with, in literals, so that it is read without being run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Required, TypedDict, TypeVar, Unpack, overload

from keepsaid.domain.turn import ToolClass

API = 1
"""The version of what extensions are written against."""

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])
MARK = "__keepsaid__"
"""Where a method carries its mark."""


@dataclass(frozen=True, slots=True)
class ToolMark:
    """A method that the model may call: what calling again would do, its seconds, and the characters it may return."""

    kind: ToolClass = ToolClass.UNSAFE
    limit_s: float = 30.0
    chars_max: int = 20_000
    name: str = ""


@dataclass(frozen=True, slots=True)
class ContextMark:
    """A method that adds to prompts; a lower priority comes earlier, memory stands at 100."""

    priority: int = 50


class Declared(TypedDict, total=False):
    """What a class is declared with.

    `config` says by key what may be set (`type`, `default`, `required`, `description` ...), `secrets` by name which
    environment variable holds one, `channel` how its channel is treated (`priority`, `trust`, `window_ms` ...).
    """

    id: Required[str]
    version: str
    api: int
    name: str
    depends_on: Sequence[str]
    config: Mapping[str, Mapping[str, Any]]
    secrets: Mapping[str, str]
    channel: Mapping[str, Any]


def extension(**keys: Unpack[Declared]) -> Callable[[C], C]:
    """Make a class an extension. Every argument is a literal: it is read before anything of the file is run."""

    def marked(one: C) -> C:
        setattr(one, MARK, dict(keys))
        return one

    return marked


@overload
def tool(method: F) -> F: ...


@overload
def tool(*, kind: str = ..., limit_s: float = ..., chars_max: int = ..., name: str = ...) -> Callable[[F], F]: ...


def tool(
    method: F | None = None, *, kind: str = "unsafe", limit_s: float = 30.0, chars_max: int = 20_000, name: str = ""
) -> F | Callable[[F], F]:
    """Offer a method to the model: its name, its docstring, and a schema from its parameters and their types.

    `kind` says what calling it again would do: `pure`, `idempotent`, `checkable` or, by default, `unsafe`: it is never
    called a second time when nobody knows what came of the first.
    """
    mark = ToolMark(ToolClass(kind), limit_s, chars_max, name)

    def marked(one: F) -> F:
        setattr(one, MARK, mark)
        return one

    return marked if method is None else marked(method)


def context(*, priority: int = 50) -> Callable[[F], F]:
    """Let a method add to prompts: it is given the batch that is answered, and returns a text, or None for nothing."""
    mark = ContextMark(priority)

    def marked(one: F) -> F:
        setattr(one, MARK, mark)
        return one

    return marked


def on(topic: str) -> Callable[[F], F]:  # noqa: ARG001 - read off the source
    """Tell a method of every event of a topic, or of a pattern such as `memory.*`, at least once."""
    return lambda one: one


def schedule(*, name: str = "", cron: str = "", every_s: float = 0.0) -> Callable[[F], F]:  # noqa: ARG001 - as above
    """Run a method by a cron line of five fields, or every so many seconds; what it returns is told to the owner."""
    return lambda one: one
