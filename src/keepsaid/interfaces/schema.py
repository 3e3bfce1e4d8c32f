"""JSON Schema (2020-12) in few words: the fields of requests and of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
TIME: Schema = {"type": "string", "format": "date-time"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
COUNTS: Schema = {"type": "object", "additionalProperties": {"type": "integer"}}
ANY: Schema = {}


def takes(*needed: str, **fields: Schema) -> Schema:
    """An object with these fields, of which only `needed` must be there."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(fields)}
    return {**schema, "required": list(needed)} if needed else schema


def gives(**fields: Schema) -> Schema:
    """An object that always has all of these fields."""
    return takes(*fields, **fields)


def named(kind: Schema, *names: str) -> dict[str, Schema]:
    """Fields of one kind, by their names."""
    return dict.fromkeys(names, kind)


def many(kind: Schema, most: int = 0) -> Schema:
    """A list of one kind of value, of at most `most` values; 0 sets no limit."""
    return {"type": "array", "items": kind, **({"maxItems": most} if most else {})}


def perhaps(kind: Schema) -> Schema:
    """A value that may be null."""
    return {"anyOf": [kind, {"type": "null"}]}


def chosen(names: Sequence[str]) -> Schema:
    """A text that is one of these."""
    return {"type": "string", "enum": list(names)}


def between(least: int, most: int, usual: int | None = None) -> Schema:
    """A whole number within bounds; `usual` is taken where the field is absent."""
    bounds: dict[str, Any] = {"type": "integer", "minimum": least, "maximum": most}
    return bounds if usual is None else {**bounds, "default": usual}


def ref(name: str) -> Schema:
    """A component of the description, by its name."""
    return {"$ref": f"#/components/schemas/{name}"}
