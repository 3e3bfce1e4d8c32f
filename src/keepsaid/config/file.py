"""The config file: read, variables filled in, unknown keys named."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from keepsaid.config.tree import CHANNELS, ENV_PREFIX, Config
from keepsaid.errors import ConfigError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def load(path: Path, settings: Mapping[str, Any] | None = None) -> tuple[Config, list[str]]:
    """Read the config file, if there is one; returns the tree and warnings about unknown keys.

    `settings` replaces whole top-level sections. Raises ConfigError naming file and key when a value is
    wrong or a variable is not set.
    """
    data = {**read(path), **(settings or {})}
    try:
        config = Config(**data)
    except ValidationError as error:
        raise ConfigError(f"{path}: {_first(error)}") from error
    return config, [*_unknown(data, Config, path), *_unknown_variables()]


def read(path: Path) -> dict[str, Any]:
    """The keys of the file with `${VARIABLES}` filled in; empty when there is no file."""
    if not path.exists():
        return {}
    try:
        parsed = yaml.safe_load(path.read_text("utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError, OSError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    if not isinstance(parsed, dict):
        raise ConfigError(f"{path} must hold keys and values, not a {type(parsed).__name__}")
    return {str(key): _expanded(value, f"{key}", path) for key, value in parsed.items()}


def _expanded(value: Any, key: str, path: Path) -> Any:
    if isinstance(value, dict):
        return {name: _expanded(inner, f"{key}.{name}", path) for name, inner in value.items()}
    if isinstance(value, list):
        return [_expanded(inner, f"{key}.{n}", path) for n, inner in enumerate(value)]
    if not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in os.environ:
            raise ConfigError(
                f"{path}: {key} needs the environment variable {name}, which is not set",
                hint=f"export {name}=..., or take the line out of {path}",
            )
        return os.environ[name]

    return _VARIABLE.sub(fill, value)


def _first(error: ValidationError) -> str:
    one = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in one["loc"])
    more = error.error_count() - 1
    return f"{where}: {one['msg']}" + (f" (and {more} more)" if more else "")


def _unknown(data: Mapping[str, Any], model: type[BaseModel], path: Path, prefix: str = "") -> Iterator[str]:
    """A warning for every key nobody reads, with the nearest that somebody does."""
    for key, value in data.items():
        field = model.model_fields.get(key)
        if field is None:
            near = get_close_matches(key, model.model_fields, 1)
            meant = f"; did you mean {prefix}{near[0]}?" if near else ""
            yield f"{path}: unknown key {prefix}{key} is ignored{meant}"
        elif isinstance(value, dict):
            yield from _unknown_inside(value, field.annotation, path, f"{prefix}{key}.")


def _unknown_inside(value: Mapping[str, Any], annotation: Any, path: Path, prefix: str) -> Iterator[str]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from _unknown(value, annotation, path, prefix)
        return
    section = next((arg for arg in get_args(annotation) if isinstance(arg, type) and issubclass(arg, BaseModel)), None)
    if section is None:
        return
    for name, inner in value.items():
        if prefix == "channels." and name not in CHANNELS:
            near = get_close_matches(name, CHANNELS, 1)
            if near:
                yield f"{path}: channels.{name} is a channel of your own; did you mean channels.{near[0]}?"
        if isinstance(inner, dict):
            yield from _unknown(inner, section, path, f"{prefix}{name}.")


def _unknown_variables() -> Iterator[str]:
    known = [f"{ENV_PREFIX}{name}".upper() for name in Config.model_fields] + [f"{ENV_PREFIX}HOME"]
    for name in sorted(os.environ):
        if name.startswith(ENV_PREFIX) and name.split("__")[0].upper() not in known and "BENCH" not in name:
            near = get_close_matches(name, known, 1)
            meant = f"; did you mean {near[0]}?" if near else ""
            yield f"environment: {name} is ignored{meant}"
