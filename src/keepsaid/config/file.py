"""The config file: reads it, expands variables, names unknown keys, and compares two trees of settings."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from keepsaid.config.channels import CHANNELS, LISTENING, ignored
from keepsaid.config.document import ConfigDocument, Key, read_document
from keepsaid.config.environment import from_environment, merged
from keepsaid.config.fields import variable_name
from keepsaid.config.home import EXTENSIONS
from keepsaid.config.secret_file import PREFIX, read_secret
from keepsaid.config.section import FORMER, with_current_keys
from keepsaid.config.settings import ENV_PREFIX, Config
from keepsaid.errors import ConfigError

_REFERENCE = re.compile(r"\$\{(file:[^}]+|[A-Za-z_][A-Za-z0-9_]*)\}")
_BY_PROGRAM = "set by the program"

Unset = tuple[Key, str, str]
"""A key of the file whose value cannot be filled in, why, and the variable that is not set, if that is why."""


def load(
    path: Path, settings: Mapping[str, Any] | None = None, source: ConfigDocument | None = None
) -> tuple[Config, list[str]]:
    """Read the config file, if there is one; returns the settings and warnings about keys that change nothing.

    `settings` replaces whole top-level sections; `source` is the file that they were read from, if any. Raises one
    ConfigError that names key, value and place (file and line, or variable) of everything that cannot be used.
    """
    return load_document(read_document(path), settings, source)


def load_document(
    document: ConfigDocument, settings: Mapping[str, Any] | None = None, source: ConfigDocument | None = None
) -> tuple[Config, list[str]]:
    """Return the settings of a document that was read or is about to be written; otherwise like `load`."""
    path, given = document.path, settings or {}
    data, unset = expanded(document)
    data, unset = {**data, **given}, [one for one in unset if one[0][0] not in given]
    current = with_current_keys(data)

    def place(key: Key) -> str:
        if key[0] in given:
            return source.place(key) if source else _BY_PROGRAM
        return document.place(key)

    known = {name: value for name, value in current.items() if name in Config.model_fields}
    wanted = merged(known, from_environment())
    try:
        config = Config(**wanted)
    except ValidationError as error:
        keys = {**document.keys, **{name: source.keys[name] if source else one for name, one in given.items()}}
        lines = {**document.lines, **(source.lines if source else {})}
        raise _refused(error, unset, ConfigDocument(path, keys, lines), place) from None  # its text quotes values
    if unset:
        raise _refused(None, unset, document, place)
    # Nothing writes a file without a byte, but a lost disk cache leaves one.
    missing = "every setting has its default; restore the file from a backup, or run keepsaid init"
    emptied = [f"{path} is empty: {missing}"] if path.is_file() and path.stat().st_size == 0 else []
    unknown = [f"{_misnamed(key, near, '.'.join)}  ({place(key)})" for key, near in _unknown(data, Config)]
    useless = [f"{'.'.join(key)} is ignored: {why}  ({place(key)})" for key, why in _useless(current)]
    return config, [*emptied, *unknown, *useless, *_unheard(config, path.parent / EXTENSIONS), *_variables_of_no_use()]


def _refused(
    error: ValidationError | None,
    unset: list[Unset],
    document: ConfigDocument,
    place: Callable[[Key], str],
) -> ConfigError:
    from keepsaid.config import faults  # noqa: PLC0415 - needed where something is wrong, and nowhere else

    found = [faults.Fault(key, why, place(key), needs=name) for key, why, name in unset]
    if error is not None:
        wrong = faults.faults_of(error, document, place)
        found += [fault for fault in wrong if fault.variable or fault.key not in {key for key, *_ in unset}]
    return faults.refuse(found)


def read(path: Path) -> ConfigDocument:
    """Read a file with `${VARIABLE}` and `${file:PATH}` expanded; a missing file has no keys. Raises ConfigError."""
    document = read_document(path)
    keys, unset = expanded(document)
    if unset:
        raise _refused(None, unset, document, document.place)
    return ConfigDocument(path, keys, document.lines)


def expanded(document: ConfigDocument) -> tuple[dict[str, Any], list[Unset]]:
    """Return the keys of a document with its references expanded, and those that refer to what is not there.

    `${VARIABLE}` is a variable of the environment, `${file:PATH}` the content of a file, relative to the document's.
    """
    unset: list[Unset] = []

    def content(name: str, key: Key) -> str:
        if not name.startswith(PREFIX):
            if name not in os.environ:
                unset.append((key, f"the environment variable {name} is not set", name))
            return os.environ.get(name, "")
        try:
            return read_secret(name.removeprefix(PREFIX), document.path.parent)
        except ConfigError as error:
            unset.append((key, error.what, ""))
            return ""

    def fill(value: Any, key: Key) -> Any:
        if isinstance(value, dict):
            return {str(name): fill(inner, (*key, str(name))) for name, inner in value.items()}
        if isinstance(value, list):
            return [fill(inner, (*key, str(place))) for place, inner in enumerate(value)]
        if not isinstance(value, str):
            return value
        before = len(unset)
        filled = _REFERENCE.sub(lambda match: content(match[1], key), value)
        return filled if len(unset) == before else value

    return {name: fill(inner, (name,)) for name, inner in document.keys.items()}, unset


def _misnamed(key: Key, near: Key | None, written: Callable[[Key], str]) -> str:
    if near and any(near[-1] == former.get(key[-1]) for former in FORMER.values()):
        return f"{written(key)} is called {written(near)} now; the former name is accepted in this release"
    meant = f"; did you mean {written(near)}?" if near else ""
    if len(key) == 2 and key[0] == "channels":
        return f"{written(key)} is a channel of your own{meant}"
    return f"unknown key {written(key)} is ignored{meant}"


def _unknown(data: Mapping[Any, Any], model: type[BaseModel], above: Key = ()) -> Iterator[tuple[Key, Key | None]]:
    """Every key nobody reads, with the nearest that somebody does."""
    for name, value in data.items():
        key = (*above, str(name))
        if (field := model.model_fields.get(key[-1])) is None:
            former = FORMER.get(above[0], {}) if above else {}
            near = [former[key[-1]]] if key[-1] in former else get_close_matches(key[-1], model.model_fields, 1)
            yield key, (*above, near[0]) if near else None
        else:
            yield from _unknown_inside(value, field.annotation, key)


_BUILT_IN = (*CHANNELS, *LISTENING)
"""Channels that have a name of their own here."""


def _unknown_inside(value: object, annotation: Any, above: Key) -> Iterator[tuple[Key, Key | None]]:
    kinds = [one for one in (annotation, *get_args(annotation)) if isinstance(one, type) and issubclass(one, BaseModel)]
    if not kinds:
        return
    if kinds[0] is annotation:
        if isinstance(value, Mapping):
            yield from _unknown(value, kinds[0], above)
        return
    several = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in several:
        key = (*above, str(name))
        if above == ("channels",) and name not in _BUILT_IN and (near := get_close_matches(key[-1], _BUILT_IN, 1)):
            yield key, (*above, near[0])
        if isinstance(inner, Mapping):
            yield from _unknown(inner, kinds[0], key)


def _useless(data: Mapping[Any, Any]) -> Iterator[tuple[Key, str]]:
    """Every setting of a channel that has no use for it, and why."""
    channels = data.get("channels")
    for name, given in channels.items() if isinstance(channels, Mapping) else ():
        for setting, why in ignored(str(name)).items():
            if isinstance(given, Mapping) and setting in given:
                yield ("channels", str(name), setting), why


def _is_named_in(extensions: Path, name: str) -> bool:
    """Whether the source or manifest of an extension has a name in it. Nothing of it is run."""
    for file in (*extensions.glob("*.py"), *extensions.glob("*/manifest.yaml")):
        with suppress(OSError):
            if name in file.read_text("utf-8", "replace"):
                return True
    return False


def _unheard(config: Config, extensions: Path) -> Iterator[str]:
    """A warning for every owner of a channel that is not there, and that no extension seems to bring."""
    there = {*config.channels, *config.extensions, *config.listening}
    for name in sorted({one.channel for one in config.owner} - there):
        if _is_named_in(extensions, name):
            continue
        near = get_close_matches(name, config.channels, 1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        yield f"owner: nobody is recognised on {name!r}: there is no such channel{meant}"


def _variables_of_no_use() -> Iterator[str]:
    """A warning for every variable of ours that changes nothing."""
    for name in sorted(os.environ):
        bare = name.upper().removeprefix(ENV_PREFIX).lower()
        if bare == name.lower() or bare == "home" or "bench" in bare:
            continue
        data: Any = None
        for part in reversed(bare.split("__")):
            data = {part: data}
        for key, near in _unknown(data, Config):
            yield f"environment: {_misnamed(key, near, variable_name)}"
        for key, why in _useless(with_current_keys(data)):
            yield f"environment: {variable_name(key)} is ignored: {why}"


def changed(before: Any, after: Any, at: Key = ()) -> Iterator[Key]:
    """The keys of settings that are not the same; a list is one setting."""
    if before == after:
        return
    if isinstance(before, BaseModel) and isinstance(after, BaseModel):
        # a setting called keys makes a model look like a mapping, which it is not
        before, after = dict(iter(before)), dict(iter(after))
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted({*before, *after}, key=str):
            yield from changed(before.get(name), after.get(name), (*at, str(name)))
    else:
        yield at


def taken(before: Any, after: Any, wanted: Callable[[Key], bool], at: Key = ()) -> Any:
    """The settings of `before`, and those of `after` whose keys are wanted."""
    if before == after or wanted(at):
        return after
    if isinstance(before, BaseModel) and isinstance(after, BaseModel):
        parts = {name: taken(one, getattr(after, name), wanted, (*at, name)) for name, one in before}
        return before.model_copy(update=parts)
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        kept = {name: taken(one, after.get(name), wanted, (*at, str(name))) for name, one in before.items()}
        new = {name: one for name, one in after.items() if name not in before and wanted((*at, str(name)))}
        return {**{name: one for name, one in kept.items() if one is not None or before[name] is None}, **new}
    return before


def within(key: Key, patterns: tuple[str, ...]) -> bool:
    """Whether a key is one of the patterns or below it: `routes`, `channels.*.unmatched`."""
    split = [pattern.split(".") for pattern in patterns]
    pairs = (zip(key, wanted, strict=False) for wanted in split if len(key) >= len(wanted))
    return any(all(part in ("*", name) for name, part in pair) for pair in pairs)
