"""Edits of a config file: sets or removes one key, so that comments, order and every other key stay."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from keepsaid.config.document import EDIT, Key
from keepsaid.config.home import write_file
from keepsaid.errors import ConfigError, HomeError

_PLAIN = re.compile(r"[A-Za-z][\w./@-]*(?::[\w./@-]+)*")
"""Text that may need no quotes in YAML."""


def with_setting(text: str, path: Key, value: Any, written: str = "") -> str:
    """Return the text with the key at `path` set to `value`, which may be given as YAML in `written`.

    A file whose form has no place for one line is written again without its comments.
    Raises ConfigError when something above the key holds no keys.
    """
    wanted = _merged(_keys(text), path, value)
    edited = _edited(text, path, written or as_yaml(value))
    return edited if _means(edited, wanted) else _dumped(wanted)


def without_setting(text: str, path: Key) -> str:
    """Return the text without the key at `path`, and without sections that would be left empty.

    The same text when the key is not there. Comments elsewhere stay, as in `with_setting`.
    """
    keys = _keys(text)
    found: Any = keys
    highest = path
    for depth, part in enumerate(path):
        if not isinstance(found, dict) or part not in found:
            return text
        if len(found) > 1 or not depth:
            highest = path[: depth + 1]
        found = found[part]
    wanted = _removed(keys, highest)
    edited = _cut(text, highest)
    return edited if _means(edited, wanted) else _dumped(wanted)


def with_model(text: str, name: str) -> str:
    """Return the text with `models.chat` set to `name`. Raises ConfigError when `models` holds no keys."""
    return with_setting(text, ("models", "chat"), name)


def as_yaml(value: Any) -> str:
    """Return a value as YAML on one line; text has quotes where YAML would read something else."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and yaml.safe_load(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)


def replace_file(file: Path, text: str) -> None:
    """Write a file for its owner alone, whole or not at all, on the disk when this returns. Raises HomeError."""
    file = file.resolve()  # a link to the file stays a link
    try:
        write_file(file, text)
    except OSError as error:
        raise HomeError(f"{file} cannot be written ({error.strerror})", safe="The file was not changed.") from error


def replace_config(file: Path, text: str) -> None:
    """Replace a config file and keep the former one beside it as `.bak`. Raises HomeError.

    A file without a byte is what a lost disk cache leaves, so that one without settings says that it has none.
    """
    if file.exists():
        replace_file(file.with_name(f"{file.name}.bak"), file.read_bytes().decode("utf-8"))
    replace_file(file, text or "# Every setting has its default.\n")


def _keys(text: str) -> dict[str, Any]:
    keys = yaml.safe_load(text)
    return keys if isinstance(keys, dict) else {}


def _dumped(keys: dict[str, Any]) -> str:
    return yaml.safe_dump(keys, sort_keys=False, allow_unicode=True) if keys else ""


def _merged(keys: dict[str, Any], path: Key, value: Any) -> dict[str, Any]:
    first, *rest = path
    if not rest:
        return {**keys, first: value}
    inner = keys.get(first) or {}
    if not isinstance(inner, dict):
        raise ConfigError(f"{first} must hold keys and values", hint=EDIT)
    return {**keys, first: _merged(inner, tuple(rest), value)}


def _removed(keys: dict[str, Any], path: Key) -> dict[str, Any]:
    first, *rest = path
    if not rest:
        return {name: one for name, one in keys.items() if name != first}
    return {**keys, first: _removed(keys[first], tuple(rest))}


def _edited(text: str, path: Key, written: str) -> str:
    """Return the text with one place changed; the caller checks that it was the right one."""
    node = _composed(text)
    if not isinstance(node, yaml.MappingNode) or node.flow_style or _pair(node, path[0]) is None:
        ended = text if not text or text.endswith("\n") else f"{text}\n"
        return f"{ended}{path[0]}:{_block(path[1:], written, 2)}\n"
    for depth, key in enumerate(path):
        pair, rest = _pair(node, key), path[depth + 1 :]
        if pair is None:
            first = node.value[0][0].start_mark
            between = ", " if node.flow_style else "\n" + " " * first.column
            return f"{text[: first.index]}{_flow(path[depth:], written)}{between}{text[first.index :]}"
        name, inner = pair
        if not rest:
            return _put(text, inner, written if inner.end_mark.index > inner.start_mark.index else f" {written}")
        if not isinstance(inner, yaml.MappingNode):
            return _put(text, inner, _block(rest, written, name.start_mark.column + 2))
        if not inner.value:
            return _put(text, inner, f"{{{_flow(rest, written)}}}")
        node = inner
    return text


def _cut(text: str, path: Key) -> str:
    """Return the text without one key; the caller checks that nothing else is missing."""
    node = _composed(text)
    for key in path[:-1]:
        pair = _pair(node, key)
        node = pair[1] if pair else None
    if not isinstance(node, yaml.MappingNode) or (pair := _pair(node, path[-1])) is None:
        return text
    start, end = pair[0].start_mark.index, _end(text, pair[1])
    if not node.flow_style:
        return text[: text.rfind("\n", 0, start) + 1] + text[text.find("\n", end) + 1 or len(text) :]
    at = node.value.index(pair)
    if at + 1 < len(node.value):
        return text[:start] + text[node.value[at + 1][0].start_mark.index :]
    return text[: _end(text, node.value[at - 1][1]) if at else start] + text[end:]


def _end(text: str, node: yaml.Node) -> int:
    """Return the index after the last character of a value; PyYAML counts comments below a block as part of it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(text, last[1] if isinstance(last, tuple) else last)
    end = int(node.end_mark.index)
    while end > node.start_mark.index and text[end - 1].isspace():
        end -= 1
    return end


def _block(path: Key, written: str, indent: int) -> str:
    if not path:
        return f" {written}"
    *above, last = path
    lines = [f"\n{' ' * (indent + 2 * depth)}{key}:" for depth, key in enumerate(above)]
    return "".join([*lines, f"\n{' ' * (indent + 2 * len(above))}{last}: {written}"])


def _flow(path: Key, written: str) -> str:
    *above, last = path
    return "".join(f"{key}: {{" for key in above) + f"{last}: {written}" + "}" * len(above)


def _put(text: str, node: yaml.Node, written: str) -> str:
    return text[: node.start_mark.index] + written + text[_end(text, node) :]


def _pair(node: yaml.Node | None, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next(((name, value) for name, value in pairs if name.value == key), None)


def _composed(text: str) -> yaml.Node | None:
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _means(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return bool((yaml.safe_load(text) or {}) == wanted)
    except (yaml.YAMLError, ValueError, LookupError, AttributeError):
        return False
