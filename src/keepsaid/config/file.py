"""The config file: reads it, fills in variables and files, names unknown keys, and compares two trees of settings."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_settings import SettingsError

from keepsaid.config.secret_file import PREFIX, read_secret
from keepsaid.config.section import FORMER, with_current_keys
from keepsaid.config.settings import CHANNELS, ENV_PREFIX, Config, ignored
from keepsaid.errors import ConfigError

_VARIABLE = re.compile(r"\$\{(file:[^}]+|[A-Za-z_][A-Za-z0-9_]*)\}")
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
_OF_YAML = ("tag:yaml", "<")
"""How names begin that are YAML's own; what else an error quotes is the file's."""

_OURS = "Value error, "
"""What pydantic puts before the words of our own checks."""

_VALUES_MAX = 50_000
"""Values one file may hold with every alias written out: a few lines of aliases of aliases can mean billions."""

_UNREADABLE = (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError)
"""What PyYAML raises: `!!bool maybe` is a KeyError of its own, `2031-02-31` a ValueError."""

Key = tuple[str, ...]


def load(path: Path, settings: Mapping[str, Any] | None = None) -> tuple[Config, list[str]]:
    """Read the config file, if there is one; returns the tree and warnings about keys that change nothing.

    `settings` replaces whole top-level sections. Raises ConfigError naming file (or variable) and key when a
    value is wrong or a variable is not set.
    """
    given = settings or {}
    data = {**read(path), **given}
    current = with_current_keys(data)
    try:
        config = Config(**{name: value for name, value in current.items() if name in Config.model_fields})
    except ValidationError as error:
        raise ConfigError(_first(error, path, given)) from error
    except SettingsError as error:
        hint = f"set one key at a time, e.g. {ENV_PREFIX}BUFFER__WINDOW_MS=0"
        raise ConfigError(f"environment: {error}; a whole section is written as JSON", hint=hint) from error
    # Nothing writes a file without a byte, but a lost disk cache leaves one.
    missing = "every setting has its default; restore the file from a backup, or run keepsaid init"
    emptied = [f"{path} is empty: {missing}"] if path.is_file() and path.stat().st_size == 0 else []
    unknown = [f"{path}: {_misnamed(key, near, '.'.join)}" for key, near in _unknown(data, Config)]
    useless = [f"{path}: {'.'.join(key)} is ignored: {why}" for key, why in _useless(current)]
    return config, [*emptied, *unknown, *useless, *_unheard(config), *_variables_of_no_use()]


def read(path: Path) -> dict[str, Any]:
    """The keys of the file with `${VARIABLE}` and `${file:PATH}` filled in; empty when there is no file."""
    try:
        parsed = _parsed(path.read_text("utf-8"), path)
        return {} if parsed is None else {str(key): _expanded(one, f"{key}", path) for key, one in parsed.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, *_UNREADABLE) as error:
        # The text of an error of YAML quotes the file, and with it secrets; so does its cause.
        raise ConfigError(f"{path} cannot be read: {_fault(error)}") from None


def _fault(error: Exception) -> str:
    """What is wrong with a file and where, in no words of the file."""
    if isinstance(error, yaml.MarkedYAMLError):
        problem = _QUOTED.sub(_masked, error.problem or error.context or "it is not YAML")
        mark = error.problem_mark or error.context_mark
        return f"{problem} (line {mark.line + 1}, column {mark.column + 1})" if mark else problem
    if isinstance(error, yaml.reader.ReaderError):
        return f"{error.reason}: #x{error.character:04x} (position {error.position})"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 (byte {error.start})"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return f"a value in it is not what it looks like, or what its tag says ({type(error).__name__})"


def _masked(quoted: re.Match[str]) -> str:
    """One character, or what YAML calls something, stays."""
    name = quoted.group()[1:-1]
    return quoted.group() if len(name) < 2 or name.startswith(_OF_YAML) else "..."


class _Loader(yaml.SafeLoader):
    """YAML where no key stands twice: of two sections the first would be lost without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The values of a mapping."""
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, "the same key stands here twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _parsed(text: str, path: Path) -> dict[Any, Any] | None:
    loader = _Loader(text)
    try:
        if (root := loader.get_single_node()) is None:
            return None
        if _unfolded(root, {}) > _VALUES_MAX:
            raise ConfigError(f"{path} holds more than {_VALUES_MAX:,} values once its aliases are written out")
        parsed = loader.construct_document(root)
    finally:
        loader.dispose()
    if parsed is not None and not isinstance(parsed, dict):
        raise ConfigError(f"{path} must hold keys and values, not a {type(parsed).__name__}")
    return parsed


def _unfolded(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node stands for; one that holds itself stands for more than is allowed."""
    if id(node) not in known:
        known[id(node)] = _VALUES_MAX
        inner: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            inner = node.value
        elif isinstance(node, yaml.MappingNode):
            inner = [one for pair in node.value for one in pair]
        known[id(node)] = 1 + sum(_unfolded(one, known) for one in inner)
    return known[id(node)]


def _expanded(value: Any, key: str, path: Path) -> Any:
    if isinstance(value, dict):
        return {str(name): _expanded(inner, f"{key}.{name}", path) for name, inner in value.items()}
    if isinstance(value, list):
        return [_expanded(inner, f"{key}.{n}", path) for n, inner in enumerate(value)]
    if not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        if name.startswith(PREFIX):
            return _secret(name.removeprefix(PREFIX), key, path)
        if name not in os.environ:
            hint = f"export {name}=..., or take the line out of {path}"
            raise ConfigError(f"{path}: {key} needs the environment variable {name}, which is not set", hint=hint)
        return os.environ[name]

    return _VARIABLE.sub(fill, value)


def _secret(name: str, key: str, path: Path) -> str:
    try:
        return read_secret(name, path.parent)
    except ConfigError as error:
        raise ConfigError(f"{path}: {key}: {error.what}", hint=error.hint) from None


def _first(error: ValidationError, path: Path, settings: Mapping[str, Any]) -> str:
    """The first thing that is wrong, and where it was set: the environment wins over settings and file."""
    one = error.errors(include_url=False, include_input=False)[0]
    key = tuple(str(part) for part in one["loc"])
    named = {name.upper() for name in os.environ}
    former = (name for name, now in FORMER.get("".join(key[:1]), {}).items() if key[-1] == now)
    keys = (key, *((*key[:-1], name) for name in former))
    variables = (_variable(one[:length]) for one in keys for length in range(len(one), 0, -1))
    variable = next((name for name in variables if name in named), None)
    source = f"environment: {variable}" if variable else "settings" if key[:1] and key[0] in settings else str(path)
    more = error.error_count() - 1
    return f"{source}: {'.'.join(key)}: {one['msg'].removeprefix(_OURS)}" + (f" (and {more} more)" if more else "")


def _variable(key: Key) -> str:
    return f"{ENV_PREFIX}{'__'.join(key)}".upper()


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
        if above == ("channels",) and name not in CHANNELS and (near := get_close_matches(key[-1], CHANNELS, 1)):
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


def _unheard(config: Config) -> Iterator[str]:
    """A warning for every owner of a channel that is not there."""
    for name in sorted({one.channel for one in config.owner} - config.channels.keys()):
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
            yield f"environment: {_misnamed(key, near, _variable)}"
        for key, why in _useless(with_current_keys(data)):
            yield f"environment: {_variable(key)} is ignored: {why}"


def changed(before: Any, after: Any, at: Key = ()) -> Iterator[Key]:
    """The keys of settings that are not the same; a list is one setting."""
    if before == after:
        return
    if isinstance(before, BaseModel) and isinstance(after, BaseModel):
        before, after = dict(before), dict(after)
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
