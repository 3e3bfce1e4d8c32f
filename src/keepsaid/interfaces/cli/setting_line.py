"""The setting line: one key in the text of a config file, all else of which stays as it was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from keepsaid.config.durable import write_file
from keepsaid.errors import ConfigError, HomeError

Path_ = tuple[str, ...]


def with_setting(text: str, path: Path_, value: Any, written: str) -> str:
    """The text with the key at `path` set to `value`, `written` as YAML; comments, order and every other key stay.

    A file whose form leaves no place for one line is written anew, without its comments.
    Raises ConfigError when what stands above the key holds no keys.
    """
    keys = yaml.safe_load(text)
    wanted = _merged(keys if isinstance(keys, dict) else {}, path, value)
    edited = _edited(text, path, written)
    return edited if _means(edited, wanted) else yaml.safe_dump(wanted, sort_keys=False, allow_unicode=True)


def replace_file(file: Path, text: str) -> None:
    """Write a file for its owner alone, whole or not at all, on the disk when this returns. Raises HomeError."""
    file = file.resolve()  # a link to the file stays a link
    try:
        write_file(file, text)
    except OSError as error:
        raise HomeError(f"{file} cannot be written ({error.strerror})", safe="The file was not changed.") from error


def _merged(keys: dict[str, Any], path: Path_, value: Any) -> dict[str, Any]:
    first, *rest = path
    if not rest:
        return {**keys, first: value}
    inner = keys.get(first) or {}
    if not isinstance(inner, dict):
        raise ConfigError(f"{first} must hold keys and values")
    return {**keys, first: _merged(inner, tuple(rest), value)}


def _edited(text: str, path: Path_, written: str) -> str:
    """The text with one place changed, which may have been the wrong one."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(node, yaml.MappingNode) or node.flow_style or _pair(node, path[0]) is None:
        return _appended(text, path, written)
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


def _appended(text: str, path: Path_, written: str) -> str:
    ended = text if not text or text.endswith("\n") else f"{text}\n"
    return f"{ended}{path[0]}:{_block(path[1:], written, 2)}\n"


def _block(path: Path_, written: str, indent: int) -> str:
    *above, last = path
    lines = [f"\n{' ' * (indent + 2 * depth)}{key}:" for depth, key in enumerate(above)]
    return "".join([*lines, f"\n{' ' * (indent + 2 * len(above))}{last}: {written}"])


def _flow(path: Path_, written: str) -> str:
    *above, last = path
    return "".join(f"{key}: {{" for key in above) + f"{last}: {written}" + "}" * len(above)


def _put(text: str, node: yaml.Node, written: str) -> str:
    return text[: node.start_mark.index] + written + text[node.end_mark.index :]


def _pair(node: yaml.MappingNode, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    return next(((name, value) for name, value in node.value if name.value == key), None)


def _means(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return bool(yaml.safe_load(text) == wanted)
    except (yaml.YAMLError, ValueError, LookupError, AttributeError):
        return False
