"""Values of any type that is written in an annotation, with a given text wherever they hold text."""

from __future__ import annotations

import inspect
import types
import typing
from collections import abc
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from functools import cache, partial
from typing import Any

_NUMBER = 10_000
_PIECE_CHARS = 8
_DEPTH_MAX = 12
_PLAIN: dict[object, object] = {
    int: _NUMBER,
    float: 1.0,
    bool: False,
    type(None): None,
    datetime: datetime(2026, 11, 23, tzinfo=UTC),
    date: date(2026, 11, 23),
    timedelta: timedelta(days=1),
    tzinfo: UTC,
    Decimal: Decimal(1),
}
_MANY = (list, tuple, set, frozenset, abc.Sequence, abc.Iterable, abc.Collection, abc.Iterator, abc.Set)
_TEXTS = (str, bytes, str | None, bytes | None)
_NAMED = (dict, abc.Mapping, abc.MutableMapping)


class Unmade(Exception):
    """No value of this type can be made here: it stands for something outside, or for code."""


class Maker:
    """Makes values that hold one text; with `in_pieces`, a sequence holds it in short pieces, each different.

    `in_pieces` then says whether there was such a sequence.
    """

    def __init__(self, text: str, *, in_pieces: bool = False) -> None:
        self.text = text
        self._cut = in_pieces
        self.in_pieces = False
        self.held = False

    def value(self, wanted: Any, depth: int = 0) -> Any:
        """A value of this type; raises Unmade."""
        if depth > _DEPTH_MAX:
            raise Unmade("it contains itself")
        if wanted in (str, bytes, Any, object, inspect.Parameter.empty) or isinstance(wanted, typing.TypeVar):
            self.held = True
            return self.text.encode("utf-8", "surrogatepass") if wanted is bytes else self.text
        if isinstance(wanted, abc.Hashable) and wanted in _PLAIN:
            return _PLAIN[wanted]
        origin = typing.get_origin(wanted)
        if origin is not None:
            return self._generic(origin, typing.get_args(wanted), depth + 1)
        return self._object(wanted, depth + 1)

    def _generic(self, origin: Any, args: tuple[Any, ...], depth: int) -> Any:
        if origin in (typing.Union, types.UnionType):
            return self._one_of(args, depth)
        if origin is typing.Annotated:
            return self.value(args[0], depth)
        if origin is typing.Literal:
            return args[0]
        if origin in _NAMED:
            return {"text": self.text, "body": {"text": self.text}} if args[0] is str else {}
        if origin in _MANY:
            return self._several(origin, args, depth)
        raise Unmade(str(origin))

    def _one_of(self, choices: tuple[Any, ...], depth: int) -> Any:
        """The first that can be made, text before others."""
        for wanted in sorted(choices, key=lambda one: (one not in (str, bytes), one is type(None))):
            try:
                return self.value(wanted, depth)
            except Unmade:
                continue
        raise Unmade(str(choices))

    def _several(self, origin: Any, args: tuple[Any, ...], depth: int) -> Any:
        if origin is tuple and args and args[-1] is not Ellipsis:
            return tuple(self.value(one, depth) for one in args)
        kind = args[0] if args else str
        made = self._pieces() if kind is str and self._cut else [self.value(kind, depth)]
        self.held = self.held or kind is str
        if origin in (list, tuple, set, frozenset):
            return origin(made)
        return iter(made) if origin is abc.Iterator else made

    def _pieces(self) -> list[str]:
        self.in_pieces = True
        text, step, own = self.text, _PIECE_CHARS, self.text[-_PIECE_CHARS:]
        return [f"{at}{own}{text[at : at + step]}" for at in range(0, len(text), step)]

    def _object(self, wanted: Any, depth: int) -> Any:
        if not inspect.isclass(wanted) or getattr(wanted, "_is_protocol", False):
            raise Unmade(str(wanted))
        if issubclass(wanted, Enum):
            return next(iter(wanted))
        hints = _hints(typing.cast("Any", wanted))
        if is_dataclass(wanted):
            return wanted(**{name: self.value(hints[name], depth) for name in _needed(typing.cast("Any", wanted))})
        names = getattr(wanted, "_fields", None)
        if issubclass(wanted, tuple) and names is not None:
            return wanted(*(self.value(hints[name], depth) for name in names))
        raise Unmade(str(wanted))


@cache
def _hints(of: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(of)
    except AttributeError:  # a name that only the stubs of a library have, such as `apsw.SQLiteValue`
        return {}


@cache
def _needed(of: Any) -> tuple[str, ...]:
    every = [one for one in fields(of) if one.init]
    return tuple(one.name for one in every if one.default is MISSING and one.default_factory is MISSING)


@cache
def _parameters(function: abc.Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(function).parameters.values())


def bound(function: abc.Callable[..., Any], maker: Maker) -> abc.Callable[[], Any]:
    """The function with every argument it needs; raises Unmade. Where none of them is text, with those that may be."""
    hints, every = _hints(function), _parameters(function)
    given, named = _given([one for one in every if one.default is one.empty], hints, maker)
    if not maker.held:
        texts = [one for one in every if one.default is not one.empty and hints.get(one.name) in _TEXTS]
        named |= {one.name: maker.value(hints[one.name]) for one in texts}
    return partial(function, *given, **named)


def _given(
    needed: abc.Sequence[inspect.Parameter], hints: abc.Mapping[str, Any], maker: Maker
) -> tuple[list[Any], dict[str, Any]]:
    given: list[Any] = []
    named: dict[str, Any] = {}
    for one in needed:
        if one.kind is one.KEYWORD_ONLY:
            named[one.name] = maker.value(hints.get(one.name, Any))
        elif one.kind is not one.VAR_KEYWORD:
            given.append(maker.value(hints.get(one.name, Any)))
    return given, named
