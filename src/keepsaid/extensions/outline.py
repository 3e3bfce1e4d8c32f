"""Outlines: what the source of an extension shows of its class, without a line of it being run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from keepsaid.errors import ExtensionError

_BY_METHOD = {
    "send": "channel",
    "channels": "channel",
    "stream": "streaming",
    "hooks": "hook",
    "tools": "tool",
    "contribute": "context",
    "execute": "schedule",
    "invoke": "agent",
    "embedder": "embedder",
    "extractor": "extractor",
    "needs": "setup",
}
_BY_MARK = {"tool": "tool", "context": "context", "schedule": "schedule"}
_SOURCE_BYTES_MAX = 4_000_000

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Outline:
    """A class as its source shows it: what it was declared with, its kinds, and who is told or run when."""

    name: str
    doc: str
    given: Mapping[str, Any] | None
    kinds: tuple[str, ...]
    subscribes: tuple[Mapping[str, str], ...]
    schedules: tuple[Mapping[str, Any], ...]

    def manifest(self, module: str) -> dict[str, Any]:
        """The keys of a manifest for a class that is declared in its own file."""
        keys: dict[str, Any] = {key: value for key, value in (self.given or {}).items() if value not in (None, "")}
        keys.setdefault("api", 1)
        keys |= {"entrypoint": f"{module}:{self.name}", "description": self.doc.partition("\n")[0]}
        return keys


def outline(source: bytes, named: str | None = None) -> Outline:
    """The class with this name, or the one that is declared an extension. Raises ExtensionError."""
    if len(source) > _SOURCE_BYTES_MAX:
        raise ExtensionError("the source is too long to be read")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        raise ExtensionError(f"the source is no Python: {type(error).__name__}{line}") from None
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    if named is not None:
        found = [node for node in classes if node.name == named]
    else:
        found = [node for node in classes if any(mark == "extension" for mark, _ in _marks(node))]
    if len(found) != 1:
        what = f"class {named}" if named else "class with @extension(...)"
        raise ExtensionError(f"the source has no {what}" if not found else f"the source has more than one {what}")
    return _outlined(found[0])


def _outlined(node: ast.ClassDef) -> Outline:
    given = next((_literals(call) for mark, call in _marks(node) if mark == "extension"), None)
    methods = [one for one in node.body if isinstance(one, Function)]
    marks = [(method, mark, call) for method in methods for mark, call in _marks(method)]
    by_mark = {_BY_MARK[mark] for _, mark, _ in marks if mark in _BY_MARK}
    kinds = by_mark | {_BY_METHOD[one.name] for one in methods if one.name in _BY_METHOD}
    subscribes = [
        {"topic": topic, "handler": "custom", "method": method.name}
        for method, mark, call in marks
        if mark == "on"
        for topic in _topics(call)
    ]
    schedules = [
        {"name": method.name, "method": method.name, **{key: value for key, value in _literals(call).items() if value}}
        for method, mark, call in marks
        if mark == "schedule"
    ]
    doc = ast.get_docstring(node) or ""
    return Outline(node.name, doc, given, tuple(sorted(kinds)), tuple(subscribes), tuple(schedules))


def _marks(node: ast.ClassDef | Function) -> Iterator[tuple[str, ast.Call | None]]:
    """The names of the decorators, with the calls that made them."""
    for one in node.decorator_list:
        called = one.func if isinstance(one, ast.Call) else one
        name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
        yield name, one if isinstance(one, ast.Call) else None


def _topics(call: ast.Call | None) -> Iterator[str]:
    for one in call.args if call else ():
        yield str(_literal(one, "topic"))
    yield from (str(_literal(one.value, "topic")) for one in (call.keywords if call else ()) if one.arg == "topic")


def _literals(call: ast.Call | None) -> dict[str, Any]:
    return {one.arg: _literal(one.value, one.arg) for one in (call.keywords if call else ()) if one.arg}


def _literal(node: ast.expr, name: str) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise ExtensionError(
            f"line {node.lineno}: {name} must be a literal: it is read before anything is run"
        ) from None
