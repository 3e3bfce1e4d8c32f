"""The YAML document of a config file: its keys, the line of each, and what is wrong with a file that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from keepsaid.errors import ConfigError
from keepsaid.values import frozen

Key = tuple[str, ...]
"""The path of a setting: `("buffer", "window_ms")`; items of a list are numbered from 0."""

EDIT = "keepsaid config edit"
"""The command that helps with any error of the file."""

_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
_OF_YAML = ("tag:yaml", "<")
"""Prefixes of names that belong to YAML. Every other quoted name comes from the file."""

_COLON = "a colon where no key can stand; quote the value, or correct the indentation"
_IN_PLAIN_WORDS = (
    (re.compile(r"found character '\\t' .*"), "found a tab; YAML takes spaces only"),
    (re.compile(r"found character ('.*') that cannot start any token"), r"a value cannot begin with \1 unless quoted"),
    (re.compile(r"mapping values are not allowed here"), _COLON),
    (re.compile(r"could not find expected ':'"), 'a key without ":"'),
    (re.compile(r"expected <block end>, but found .*"), "the indentation does not match the lines above"),
    (re.compile(r"'<stream end>'"), "the end of the file"),
)
"""Messages of PyYAML, and ours."""

_VALUES_MAX = 50_000
"""Values that one file may hold when every alias is expanded: a few lines of nested aliases can mean billions."""

_UNREADABLE = (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError)
"""Errors of PyYAML: `!!bool maybe` is a KeyError of its own, `2031-02-31` a ValueError."""


@frozen
class ConfigDocument:
    """The keys of a config file as written, before variables are expanded, and the line of each key."""

    path: Path
    keys: Mapping[str, Any]
    lines: Mapping[Key, int]

    def place(self, key: Key) -> str:
        """Return `FILE:LINE` of a key, or of the nearest key above it that the file has."""
        near = (self.lines[key[:length]] for length in range(len(key), 0, -1) if key[:length] in self.lines)
        line = next(near, None)
        return str(self.path) if line is None else f"{self.path}:{line}"

    def value(self, key: Key) -> Any:
        """Return what the file has at a key. Raises LookupError if it has nothing there."""
        found: Any = self.keys
        for part in key:
            found = found[int(part)] if isinstance(found, list) and part.isdigit() else found[part]
        return found


def read_document(path: Path) -> ConfigDocument:
    """Read a file; a missing one has no keys. Raises ConfigError with line and column, quoting no value."""
    try:
        return parse_document(path.read_text("utf-8"), path)
    except (FileNotFoundError, NotADirectoryError):
        return ConfigDocument(path, {}, {})
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None


def parse_document(text: str, path: Path) -> ConfigDocument:
    """Parse the text that a file has or will have. Raises ConfigError with line and column, quoting no value."""
    try:
        return _parsed(text, path)
    except _UNREADABLE as error:
        # An error of YAML quotes the file, and with it secrets; so does its cause.
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> ConfigError:
    hint = "keepsaid config path" if isinstance(error, OSError) else EDIT
    return ConfigError(f"{path} cannot be read: {_fault(error)}", hint=hint)


def _fault(error: Exception) -> str:
    """Say what is wrong with a file and where, without quoting its values."""
    if isinstance(error, yaml.MarkedYAMLError):
        problem = error.problem or error.context or "it is not YAML"
        for theirs, ours in _IN_PLAIN_WORDS:
            problem = theirs.sub(ours, problem)
        problem = _QUOTED.sub(_masked, problem)
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
    return f"it is not YAML ({type(error).__name__})"


def _masked(quoted: re.Match[str]) -> str:
    """Keep single characters and names of YAML; replace everything else."""
    name = quoted.group()[1:-1]
    return quoted.group() if len(name) < 2 or name.startswith(_OF_YAML) else "..."


class _Loader(yaml.SafeLoader):
    """YAML in which a key that is repeated is an error: the first of two sections would be lost silently."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError):
            kind = node.tag.rpartition(":")[2]
            raise yaml.constructor.ConstructorError(None, None, f"not a valid {kind}", node.start_mark) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the values of a mapping."""
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, "this key is set twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _parsed(text: str, path: Path) -> ConfigDocument:
    loader = _Loader(text)
    try:
        if (root := loader.get_single_node()) is None:
            return ConfigDocument(path, {}, {})
        if _expanded_size(root, {}) > _VALUES_MAX:
            raise ConfigError(f"{path} holds more than {_VALUES_MAX:,} values once its aliases are expanded", hint=EDIT)
        parsed = loader.construct_document(root)
    finally:
        loader.dispose()
    if parsed is None:
        return ConfigDocument(path, {}, {})
    if not isinstance(parsed, dict):
        raise ConfigError(f"{path} must hold keys and values, not a {type(parsed).__name__}", hint=EDIT)
    return ConfigDocument(path, {str(key): one for key, one in parsed.items()}, dict(_places(root, ())))


def _expanded_size(node: yaml.Node, known: dict[int, int]) -> int:
    """Count the values of a node with its aliases expanded; one that contains itself exceeds every limit."""
    if id(node) not in known:
        known[id(node)] = _VALUES_MAX
        inner: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            inner = node.value
        elif isinstance(node, yaml.MappingNode):
            inner = [one for pair in node.value for one in pair]
        known[id(node)] = 1 + sum(_expanded_size(one, known) for one in inner)
    return known[id(node)]


def _places(node: yaml.Node, at: Key) -> Iterator[tuple[Key, int]]:
    """Yield the line of every key and list item; merged keys have the line of their anchor."""
    if isinstance(node, yaml.MappingNode):
        for name, inner in node.value:
            key = (*at, str(name.value))
            yield key, name.start_mark.line + 1
            yield from _places(inner, key)
    elif isinstance(node, yaml.SequenceNode):
        for place, inner in enumerate(node.value):
            key = (*at, str(place))
            yield key, inner.start_mark.line + 1
            yield from _places(inner, key)
