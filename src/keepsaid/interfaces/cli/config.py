"""`keepsaid config`: the settings as they stand, where each comes from, and whether they are right."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from keepsaid.errors import ConfigError, NotRunning
from keepsaid.interfaces.cli.failure import WARNINGS
from keepsaid.interfaces.cli.output import Table, counted, show
from keepsaid.interfaces.cli.session import session
from keepsaid.text.normal import masked_addresses

app = typer.Typer(help="The settings.", rich_markup_mode=None)
Key = tuple[str, ...]


@app.command("show")
def show_all(
    section: Annotated[str, typer.Argument(help="Only this part: models, channels.github, ...")] = "",
) -> None:
    """Show every setting as it stands and where it comes from; secrets and passwords in addresses are masked."""
    config = session().config()
    values = dict(_leaves(masked_addresses(config.model_dump(mode="json"))))
    wanted = {key: value for key, value in values.items() if _inside(key, section)}
    if not wanted:
        sections = sorted({key[0] for key in values})
        raise typer.BadParameter(f"{section!r} is no section; there are: {', '.join(sections)}", param_hint="SECTION")
    lines = _lines(session().home.config_file)
    rows = [(".".join(key), value, *_origin(key, lines)) for key, value in wanted.items()]
    shape = {"settings": [dict(zip(("key", "value", "from", "where"), row, strict=True)) for row in rows]}
    table = tuple((key, _told(value), origin, where) for key, value, origin, where in rows)
    show(shape, Table(("KEY", "VALUE", "FROM", "WHERE"), table))


@app.command("path")
def path() -> None:
    """Show where config, data, log and the running instance's address are."""
    home = session().home
    places = {
        "config": home.config_file,
        "agents": home.config / "agents",
        "data": home.data,
        "state": home.state,
        "cache": home.cache,
        "run": home.run,
        "log": home.log_file,
    }
    show({name: str(place) for name, place in places.items()}, *(f"{name:8}{place}" for name, place in places.items()))


@app.command("validate")
def validate() -> None:
    """Check the settings: exit code 4 when one is wrong, 5 when there are warnings."""
    file = session().home.config_file
    try:
        warnings = checked()
    except ConfigError as error:
        if error.hint == ConfigError.hint:
            error.hint = f"change it in {file}, or in the environment, then: keepsaid config validate"
        raise
    there = str(file) if file.exists() else f"{file} (not there: defaults)"
    sentence = f"valid, with {counted(len(warnings), 'warning')}: {there}" if warnings else f"valid: {there}"
    show({"file": str(file), "valid": True, "warnings": warnings}, sentence, *(f"warning: {one}" for one in warnings))
    if warnings:
        raise typer.Exit(WARNINGS)


@app.command("reload")
def reload() -> None:
    """Let the running instance read the settings again: all that can change at once does, or nothing.

    Exit code 4 when a setting is wrong, 5 when one needs a restart or there are warnings.
    """
    from keepsaid.interfaces.cli.remote import running  # noqa: PLC0415

    remote = running(session().home)
    if remote is None:
        raise NotRunning("nothing runs on this home: the next start reads the settings anyway")
    told = remote.post("/v1/config/reload")
    lines = [f"changed        {key}" for key in told["changed"]]
    lines += [f"needs a restart: {key}" for key in told["restart"]]
    lines += [f"warning: {one}" for one in told["warnings"]]
    show(told, *(lines or ["nothing changed"]))
    if told["restart"] or told["warnings"]:
        raise typer.Exit(WARNINGS)


def checked() -> list[str]:
    """What there is to warn about; raises ConfigError when a setting cannot be used."""
    from keepsaid.app.models import model_named  # noqa: PLC0415
    from keepsaid.config import load  # noqa: PLC0415
    from keepsaid.interfaces.http.gate import client_token  # noqa: PLC0415

    config, warnings = load(session().home.config_file)
    model_named(config)
    client_token(config.server)
    return warnings


def _leaves(value: Any, at: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Every setting with its path; a list is one setting."""
    if isinstance(value, Mapping) and (value or not at):
        for name, inner in value.items():
            yield from _leaves(inner, (*at, str(name)))
    else:
        yield at, value


def _inside(key: Key, section: str) -> bool:
    wanted = tuple(section.split(".")) if section else ()
    return key[: len(wanted)] == wanted


def _origin(key: Key, lines: Mapping[Key, int]) -> tuple[str, str]:
    """Where a setting comes from, and the variable or the line of the file."""
    from keepsaid.config.settings import ENV_PREFIX  # noqa: PLC0415

    given = {name.upper(): name for name in os.environ}
    for length in range(len(key), 0, -1):
        variable = f"{ENV_PREFIX}{'__'.join(key[:length])}".upper()
        if variable in given:
            return "env", given[variable]
    for length in range(len(key), 0, -1):
        if key[:length] in lines and (length == len(key) or _is_leaf(key[:length], lines)):
            return "file", f"{session().home.config_file}:{lines[key[:length]]}"
    return "default", ""


def _is_leaf(key: Key, lines: Mapping[Key, int]) -> bool:
    return not any(other[: len(key)] == key and len(other) > len(key) for other in lines)


def _lines(file: Path) -> dict[Key, int]:
    """The line of every key in the file."""
    if not file.exists():
        return {}
    with file.open(encoding="utf-8") as text:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    return dict(_places(root))


def _places(node: yaml.Node | None, at: Key = ()) -> Iterator[tuple[Key, int]]:
    if isinstance(node, yaml.MappingNode):
        for name, inner in node.value:
            key = (*at, str(name.value))
            yield key, name.start_mark.line + 1
            yield from _places(inner, key)


def _told(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
