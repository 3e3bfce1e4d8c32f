"""Items of a key-value store as the texts of memories: how they are named, written, read back and filtered."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

_COMPARES: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def name_of(namespace: Sequence[str], key: str) -> str:
    """The key that an item is saved under."""
    return json.dumps([*namespace, key], ensure_ascii=False)


def text_of(namespace: Sequence[str], key: str, value: Mapping[str, Any] | None) -> str:
    """The text of an item: its namespace, its key and its value, as a line of JSON."""
    return json.dumps([".".join(namespace), key, value], ensure_ascii=False)


def item_in(memory: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fields of the item that a memory is; None for any other memory, such as talk that is written like one."""
    if memory["kind"] != "fact":
        return None
    try:
        namespace, key, value = json.loads(memory["text"])
    except (ValueError, TypeError):
        return None
    if not (isinstance(namespace, str) and isinstance(key, str) and isinstance(value, dict)):
        return None
    return {"namespace": tuple(namespace.split(".")), "key": key, "value": value, **_times(memory)}


def talk_item(memory: Mapping[str, Any], namespace: tuple[str, ...]) -> dict[str, Any]:
    """A memory that is not an item, as one of a namespace: its key is the id of the memory."""
    value = {"text": memory["text"], "kind": memory["kind"]}
    return {"namespace": namespace, "key": memory["id"], "value": value, **_times(memory)}


def _times(memory: Mapping[str, Any]) -> dict[str, datetime]:
    at = datetime.fromisoformat(memory["recorded_at"]).astimezone(UTC)
    return {"created_at": at, "updated_at": at}


def fits(item: Mapping[str, Any], prefix: tuple[str, ...], wanted: Mapping[str, Any]) -> bool:
    """Whether an item is under a prefix of namespaces, and its value has what is wanted of its fields."""
    fields = item["value"]
    return item["namespace"][: len(prefix)] == prefix and all(
        _matches(fields.get(name), want) for name, want in wanted.items()
    )


def _matches(has: Any, want: Any) -> bool:
    if not isinstance(want, Mapping) or not all(name in _COMPARES for name in want):
        return bool(has == want)
    try:
        return all(_COMPARES[name](has, other) for name, other in want.items())
    except TypeError:
        return False
