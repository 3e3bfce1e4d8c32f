"""Settings as commands show them: each with its value, where it comes from, and its key as people type it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import typer

from keepsaid.config import load
from keepsaid.config.document import EDIT, ConfigDocument, Key, read_document
from keepsaid.config.fields import locate, members, nearest, variable_setting
from keepsaid.config.file import load_document
from keepsaid.errors import ConfigError
from keepsaid.interfaces.cli.console import json_text, session
from keepsaid.text.normal import masked_addresses
from keepsaid.values import frozen


@frozen
class ShownSetting:
    """One setting as it stands, with secrets masked, and where it comes from: `default`, `file` or `env`."""

    key: Key
    value: Any
    origin: str
    where: str

    @property
    def row(self) -> tuple[str, ...]:
        return ".".join(self.key), json_text(self.value), self.origin, self.where

    @property
    def shape(self) -> dict[str, Any]:
        return {"key": ".".join(self.key), "value": self.value, "from": self.origin, "where": self.where}


def checked(document: ConfigDocument | None = None) -> list[str]:
    """Check the settings of the file, or of a document that may become it; returns warnings. Raises ConfigError."""
    from keepsaid.app.models import model_named  # noqa: PLC0415
    from keepsaid.interfaces.http.gate import client_token, operator_token  # noqa: PLC0415

    config, warnings = load_document(document) if document else load(session().home.config_file)
    checks = (lambda: model_named(config), lambda: client_token(config.server), lambda: operator_token(config.server))
    wrong = [error for check in checks if (error := _error_of(check)) is not None]
    if len(wrong) > 1:
        lines = [f"{len(wrong)} settings cannot be used", *(one.what for one in wrong)]
        raise ConfigError("\n  ".join(lines), hint=EDIT)
    if wrong:
        raise wrong[0]
    return warnings


def _error_of(check: Callable[[], object]) -> ConfigError | None:
    try:
        check()
    except ConfigError as error:
        return error
    return None


def setting_of(key: str) -> tuple[Key, Any]:
    """Return the path and the type of a setting that was typed. Raises BadParameter for one that there is not."""
    path = tuple(key.split("."))
    found, kind = locate(path)
    if kind is None or found != path:
        near = nearest(path)
        meant = f"; did you mean {'.'.join(near)}?" if near else "; keepsaid config show lists them"
        raise typer.BadParameter(f"there is no setting {key!r}{meant}", param_hint="KEY")
    for depth in range(1, len(path)):
        if any(getattr(one, "__origin__", None) in (tuple, list) for one in members(locate(path[:depth])[1])):
            whole = ".".join(path[:depth])
            raise typer.BadParameter(f"{whole} is a list and is set as a whole", param_hint="KEY")
    return path, kind


def settings() -> list[ShownSetting]:
    """Return every setting as it stands, with secrets masked. Raises ConfigError."""
    values = _leaves(masked_addresses(session().config().model_dump(mode="json")))
    document = read_document(session().home.config_file)
    return [ShownSetting(key, value, *_origin(key, document)) for key, value in values]


def _leaves(value: Any, at: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Yield every setting with its path; a list is one setting."""
    if isinstance(value, Mapping) and (value or not at):
        for name, inner in value.items():
            yield from _leaves(inner, (*at, str(name)))
    else:
        yield at, value


def _origin(key: Key, document: ConfigDocument) -> tuple[str, str]:
    """Return where a setting comes from, and the variable or the line of the file."""
    if variable := variable_setting(key):
        return "env", variable
    lines = document.lines
    for length in range(len(key), 0, -1):
        at = key[:length]
        is_leaf = not any(other[:length] == at and len(other) > length for other in lines)
        if at in lines and (at == key or is_leaf):
            return "file", f"{document.path}:{lines[at]}"
    return "default", ""
