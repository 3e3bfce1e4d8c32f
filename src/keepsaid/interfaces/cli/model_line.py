"""The model line: `models.chat` in the text of a config file, all else of which stays as it was written."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from keepsaid.errors import ConfigError

_PLAIN = re.compile(r"[A-Za-z][\w./@-]*(?::[\w./@-]+)*")
"""Names that YAML reads as text without quotes."""


def with_model(text: str, name: str) -> str:
    """The text with `models.chat` set to `name`; comments, order and every other key stay.

    A file whose form leaves no place for one line is written anew, without its comments.
    Raises ConfigError when `models` holds no keys.
    """
    keys = yaml.safe_load(text)
    keys = keys if isinstance(keys, dict) else {}
    models = keys.get("models") or {}
    if not isinstance(models, dict):
        raise ConfigError("models must hold keys and values")
    wanted = {**keys, "models": {**models, "chat": name}}
    edited = _edited(text, name if _PLAIN.fullmatch(name) else json.dumps(name))
    return edited if _means(edited, wanted) else yaml.safe_dump(wanted, sort_keys=False, allow_unicode=True)


def _edited(text: str, name: str) -> str:
    """The text with one place changed, which may have been the wrong one."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        return _appended(text, name)
    models = _value(root, "models")
    if models is None:
        return _appended(text, name)
    if not isinstance(models, yaml.MappingNode):
        return _put(text, models, f"\n  chat: {name}")
    if not models.value:
        return _put(text, models, f"{{chat: {name}}}")
    chat = _value(models, "chat")
    if chat is not None:
        return _put(text, chat, name if chat.end_mark.index > chat.start_mark.index else f" {name}")
    first = models.value[0][0].start_mark
    between = ", " if models.flow_style else "\n" + " " * first.column
    return f"{text[: first.index]}chat: {name}{between}{text[first.index :]}"


def _appended(text: str, name: str) -> str:
    ended = text if not text or text.endswith("\n") else f"{text}\n"
    return f"{ended}models:\n  chat: {name}\n"


def _put(text: str, node: yaml.Node, written: str) -> str:
    return text[: node.start_mark.index] + written + text[node.end_mark.index :]


def _value(node: yaml.MappingNode, key: str) -> yaml.Node | None:
    return next((value for name, value in node.value if name.value == key), None)


def _means(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return bool(yaml.safe_load(text) == wanted)
    except (yaml.YAMLError, ValueError, LookupError, AttributeError):
        return False
