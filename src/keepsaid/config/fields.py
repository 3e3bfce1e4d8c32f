"""The fields of the settings by key: their types, which of them are secret, and the JSON Schema for editors."""

from __future__ import annotations

import ast
import inspect
import os
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from enum import Enum
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr

from keepsaid.config.document import Key
from keepsaid.config.section import FORMER
from keepsaid.config.settings import ENV_PREFIX, Config


def locate(parts: Iterable[str | int]) -> tuple[Key, Any]:
    """Return the key of a place in the settings and its type, or None as the type if there is no such setting.

    `parts` may be the location of a pydantic error, which also names members of unions; the key omits these.
    """
    key = list[str]()
    kind: Any = Config
    for part in parts:
        found = list(_below(kind, part))
        if not found:
            if not _is_label(kind, part):
                return (*key, str(part)), None
            continue
        key.append(str(part))
        kind = found[0]
    return tuple(key), kind


def _below(kind: Any, part: str | int) -> Iterator[Any]:
    """Yield the types that a part of a key may have below a type."""
    for one in members(kind):
        origin, inner = get_origin(one), get_args(one)
        if one is Any:
            yield Any
        elif isinstance(one, type) and issubclass(one, BaseModel):
            if (field := one.model_fields.get(str(part))) is not None:
                yield field.annotation
        elif origin is dict and part != "[key]":
            yield inner[1]
        elif origin in (tuple, list) and str(part).isdigit():
            yield inner[0]


def _is_label(kind: Any, part: str | int) -> bool:
    """Whether pydantic uses the part for a member of a union or for the key of a mapping."""
    return part == "[key]" or (len(members(kind)) > 1 and not isinstance(part, int))


def members(kind: Any) -> tuple[Any, ...]:
    """Return the types that a value may have, without None."""
    if get_origin(kind) is Annotated:
        return members(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return tuple(one for part in get_args(kind) if part is not NoneType for one in members(part))
    return (kind,)


def is_secret(kind: Any) -> bool:
    """Whether a value of the type is a secret, or can hold one."""
    for one in members(kind):
        if one is SecretStr:
            return True
        if isinstance(one, type) and issubclass(one, BaseModel):
            if any(is_secret(field.annotation) for field in one.model_fields.values()):
                return True
        elif get_origin(one) is not Literal and any(map(is_secret, get_args(one))):
            return True
    return False


def is_text(kind: Any) -> bool:
    """Whether a setting takes text alone, so that `5` and `yes` given for it are text."""
    return all(
        one in (str, SecretStr)
        or get_origin(one) is Literal
        or (isinstance(one, type) and issubclass(one, Enum) and issubclass(one, str))
        for one in members(kind)
    )


def variable_name(key: Key) -> str:
    """Return the name of the environment variable for a key."""
    return f"{ENV_PREFIX}{'__'.join(key)}".upper()


def variable_setting(key: Key) -> str:
    """Return the environment variable that sets a key now, under today's name or a former one; empty if none does."""
    former = (name for name, now in FORMER.get("".join(key[:1]), {}).items() if key[-1] == now)
    keys = (key, *((*key[:-1], name) for name in former))
    given = {name.upper(): name for name in os.environ}
    names = (variable_name(one[:length]) for one in keys for length in range(len(one), 0, -1))
    return next((given[name] for name in names if name in given), "")


def nearest(key: Key) -> Key | None:
    """Return the known key that is most like an unknown one, None if there is none like it."""
    for length in range(len(key), 0, -1):
        above, last = key[: length - 1], key[length - 1]
        _, kind = locate(above)
        names = [name for one in members(kind) for name in getattr(one, "model_fields", ())]
        if names:
            now = FORMER.get(key[0], {}).get(last, "")
            near = [now] if now in names else get_close_matches(last, names, 1)
            return (*above, near[0], *key[length:]) if near else None
    return None


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the config file, with the meaning of every key; unknown keys do not match it."""
    made: dict[str, Any] = Config.model_json_schema()
    meanings = {kind.__name__: _meanings(kind) for kind in _sections(Config, set())}
    for name, part in {"Config": made, **made.get("$defs", {})}.items():
        if "properties" not in part:
            continue
        part["additionalProperties"] = False
        for key, meaning in meanings.get(name, {}).items():
            part["properties"][key]["description"] = meaning
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def _sections(kind: Any, seen: set[Any]) -> Iterator[type[BaseModel]]:
    for one in members(kind):
        if isinstance(one, type) and issubclass(one, BaseModel):
            if one not in seen:
                seen.add(one)
                yield one
                for field in one.model_fields.values():
                    yield from _sections(field.annotation, seen)
        elif get_origin(one) is not Literal:
            for inner in get_args(one):
                yield from _sections(inner, seen)


def _meanings(section: type[BaseModel]) -> Mapping[str, str]:
    """Return the text below each field in the source of a section."""
    [body] = ast.parse(textwrap.dedent(inspect.getsource(section))).body
    fields = body.body if isinstance(body, ast.ClassDef) else []
    return {
        field.target.id: " ".join(below.value.value.split())
        for field, below in pairwise(fields)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }
