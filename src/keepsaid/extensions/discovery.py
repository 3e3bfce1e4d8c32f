"""Discovery: finds extensions by manifests and by scanning sources. None of their code is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from keepsaid.errors import ExtensionError
from keepsaid.extensions.manifest import FILE, Manifest, manifest_of, read_manifest
from keepsaid.text.normal import normalise
from keepsaid.values import frozen

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


@frozen
class ScannedClass:
    """A class as read from its source without importing it: declaration, kinds, subscriptions and schedules."""

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


def scan_source(source: bytes, named: str | None = None) -> ScannedClass:
    """Return the class with this name, or the one that is declared an extension. Raises ExtensionError."""
    if len(source) > _SOURCE_BYTES_MAX:
        raise ExtensionError("the source is too long to be read")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f": {error.msg} (line {error.lineno})" if isinstance(error, SyntaxError) else ""
        raise ExtensionError(f"the source is not Python: {type(error).__name__}{line}") from None
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    if named is not None:
        found = [node for node in classes if node.name == named]
    else:
        found = [node for node in classes if any(mark == "extension" for mark, _ in _marks(node))]
    if len(found) != 1:
        what = f"class {named}" if named else "class with @extension(...)"
        raise ExtensionError(f"the source has no {what}" if not found else f"the source has more than one {what}")
    return _outlined(found[0])


def _outlined(node: ast.ClassDef) -> ScannedClass:
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
    return ScannedClass(node.name, doc, given, tuple(sorted(kinds)), tuple(subscribes), tuple(schedules))


def _marks(node: ast.ClassDef | Function) -> Iterator[tuple[str, ast.Call | None]]:
    """The names of the decorators, with the calls that made them."""
    for one in node.decorator_list:
        called = one.func if isinstance(one, ast.Call) else one
        name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
        yield name, one if isinstance(one, ast.Call) else None


def _topics(call: ast.Call | None) -> Iterator[str]:
    if call is not None:
        given = [*call.args, *(one.value for one in call.keywords if one.arg == "topic")]
        yield from (str(_literal(one, "topic")) for one in given)


def _literals(call: ast.Call | None) -> dict[str, Any]:
    return {one.arg: _literal(one.value, one.arg) for one in (call.keywords if call else ()) if one.arg}


def _literal(node: ast.expr, name: str) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        what = f"line {node.lineno}: {name} must be a literal: it is read before anything is run"
        raise ExtensionError(what) from None


GROUP = "keepsaid.extensions"
"""The group of entry points by which packages offer extensions."""

_HIDDEN = (".", "_")


class ExtensionSource(StrEnum):
    """Where an extension comes from."""

    BUILT_IN = "built-in"
    FOLDER = "folder"
    PACKAGE = "package"


@frozen
class FoundExtension:
    """An extension that is there: what it says of itself, or what is wrong with that, and where its code is.

    `module` is what is imported for it, `place` its file or folder; `enabled` says whether it is wanted.
    """

    id: str
    source: ExtensionSource
    place: Path
    manifest: Manifest | None = None
    problem: str = ""
    enabled: bool = True


def in_folder(folder: Path) -> list[FoundExtension]:
    """Those in a folder, by name: `NAME.py`, or `NAME/` with a manifest; what is neither is left alone."""
    try:
        inside = sorted(one for one in folder.iterdir() if not one.name.startswith(_HIDDEN))
    except OSError:
        return []
    return [found_at(one) for one in inside if (one.is_file() and one.suffix == ".py") or (one / FILE).is_file()]


def found_at(place: Path) -> FoundExtension:
    if place.is_dir():
        return _read(place.name, ExtensionSource.FOLDER, place, partial(of_folder, place))
    return _read(place.stem, ExtensionSource.FOLDER, place, partial(of_file, place))


def in_packages(offered: Iterable[EntryPoint] | None = None) -> list[FoundExtension]:
    """Those that installed packages offer, by name."""
    points = sorted(entry_points(group=GROUP) if offered is None else offered, key=lambda one: one.name)
    return [_read(one.name, ExtensionSource.PACKAGE, Path(one.value), partial(of_entry_point, one)) for one in points]


def _read(name: str, source: ExtensionSource, place: Path, read: Callable[[], Manifest]) -> FoundExtension:
    try:
        manifest = read()
    except ExtensionError as error:
        return FoundExtension(normalise(name), source, place, problem=error.what)
    except OSError as error:
        return FoundExtension(normalise(name), source, place, problem=f"it cannot be read ({error.strerror})")
    return FoundExtension(manifest.id, source, place, manifest)


def of_file(file: Path) -> Manifest:
    """The manifest of an extension in one file. Raises ExtensionError, or OSError."""
    seen = scan_source(file.read_bytes())
    return _completed(seen.manifest("_" + re.sub(r"\W", "_", file.stem)), seen)


def of_folder(folder: Path) -> Manifest:
    """The manifest of an extension in a folder. Raises ExtensionError, or OSError."""
    data = _manifest_in(folder)
    module, _, named = str(data.get("entrypoint") or "").partition(":")
    if not named:
        return _completed(data, None)
    if (file := _module_file(folder, module.split("."))) is None:
        raise ExtensionError(f"there is no module for its entrypoint {data['entrypoint']}")
    return _completed(data, scan_source(file.read_bytes(), named))


def of_entry_point(point: EntryPoint) -> Manifest:
    """The manifest of an extension that a package offers: beside its module, or in the module itself."""
    parts = point.module.split(".")
    if (file := _installed(parts)) is None:
        raise ExtensionError(f"the module {point.module} is not installed")
    seen = scan_source(file.read_bytes(), point.attr)
    if (len(parts) > 1 or file.name == "__init__.py") and (file.parent / FILE).is_file():
        return _completed({"entrypoint": point.value, **_manifest_in(file.parent)}, seen)
    return _completed(seen.manifest(point.module), seen)


def _installed(parts: list[str]) -> Path | None:
    """The file of a module, found without importing what stands above it."""
    try:
        spec: ModuleSpec | None = find_spec(parts[0])
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if len(parts) == 1:
        return Path(spec.origin) if spec.origin else None
    for place in spec.submodule_search_locations or ():
        if (file := _module_file(Path(place), parts[1:])) is not None:
            return file
    return None


def _module_file(folder: Path, parts: list[str]) -> Path | None:
    base = folder.joinpath(*parts)
    return next((one for one in (base.with_suffix(".py"), base / "__init__.py") if one.is_file()), None)


def _manifest_in(folder: Path) -> Mapping[str, Any]:
    try:
        return read_manifest((folder / FILE).read_text("utf-8"))
    except UnicodeDecodeError:
        raise ExtensionError("the manifest is not UTF-8") from None


def _completed(data: Mapping[str, Any], seen: ScannedClass | None) -> Manifest:
    """The manifest, with what its class shows: what it provides, its subscribed and scheduled methods."""
    keys = dict(data)
    if seen is not None:
        keys.setdefault("provides", seen.kinds)
        events = dict(keys.get("events") or {})
        if seen.subscribes:
            keys["events"] = {**events, "subscribes": [*(events.get("subscribes") or ()), *seen.subscribes]}
        if seen.schedules:
            keys["schedules"] = [*(keys.get("schedules") or ()), *seen.schedules]
    if keys.get("agent"):
        keys["provides"] = tuple(sorted({*(keys.get("provides") or ()), "agent"}))
    return manifest_of(keys)


def unique(found: Iterable[FoundExtension]) -> Iterator[FoundExtension]:
    """Each id once; of two, the first stays, and the second says who has its name."""
    first: dict[str, FoundExtension] = {}
    for one in found:
        taken = first.setdefault(one.id, one)
        if taken is one:
            yield one
        else:
            why = f"its id {one.id} is taken: {taken.source} {taken.place.name}"
            id_ = f"{one.id}@{one.source}:{one.place.name}"
            yield FoundExtension(id_, one.source, one.place, None, why, one.enabled)
