"""`keepsaid config`: the settings, where each comes from, whether they are valid; and edits of single lines."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from keepsaid.config import load
from keepsaid.config.home import write_file
from keepsaid.config.settings import ENV_PREFIX
from keepsaid.errors import ConfigError, HomeError, NotRunning
from keepsaid.interfaces.cli import program, remote
from keepsaid.interfaces.cli.console import Table, json_text, session, show
from keepsaid.text.normal import counted, masked_addresses

Key = tuple[str, ...]


def with_setting(text: str, path: Key, value: Any, written: str) -> str:
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


def _merged(keys: dict[str, Any], path: Key, value: Any) -> dict[str, Any]:
    first, *rest = path
    if not rest:
        return {**keys, first: value}
    inner = keys.get(first) or {}
    if not isinstance(inner, dict):
        raise ConfigError(f"{first} must hold keys and values")
    return {**keys, first: _merged(inner, tuple(rest), value)}


def _edited(text: str, path: Key, written: str) -> str:
    """The text with one place changed, which may have been the wrong one."""
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


def _block(path: Key, written: str, indent: int) -> str:
    *above, last = path
    lines = [f"\n{' ' * (indent + 2 * depth)}{key}:" for depth, key in enumerate(above)]
    return "".join([*lines, f"\n{' ' * (indent + 2 * len(above))}{last}: {written}"])


def _flow(path: Key, written: str) -> str:
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


_PLAIN = re.compile(r"[A-Za-z][\w./@-]*(?::[\w./@-]+)*")
"""Names that YAML reads as text without quotes."""


def with_model(text: str, name: str) -> str:
    """The text with `models.chat` set to `name`; comments, order and every other key stay.

    Raises ConfigError when `models` holds no keys.
    """
    return with_setting(text, ("models", "chat"), name, name if _PLAIN.fullmatch(name) else json.dumps(name))


app = typer.Typer(help="Show, check and reload the settings.", rich_markup_mode=None)


@app.command("show")
def show_all(section: Annotated[str, typer.Argument(help="Only this part: models, channels.github, ...")] = "") -> None:
    """Show every setting and where it comes from; secrets are masked."""
    config = session().config()
    values = dict(_leaves(masked_addresses(config.model_dump(mode="json"))))
    above = tuple(section.split(".")) if section else ()
    wanted = {key: value for key, value in values.items() if key[: len(above)] == above}
    if not wanted:
        sections = sorted({key[0] for key in values})
        raise typer.BadParameter(f"{section!r} is no section; there are: {', '.join(sections)}", param_hint="SECTION")
    file = session().home.config_file
    lines = dict(_places(_composed(file.read_text("utf-8")))) if file.exists() else {}
    rows = [(".".join(key), value, *_origin(key, lines)) for key, value in wanted.items()]
    shape = {"settings": [dict(zip(("key", "value", "from", "where"), row, strict=True)) for row in rows]}
    table = tuple((key, json_text(value), origin, where) for key, value, origin, where in rows)
    show(shape, Table(("KEY", "VALUE", "FROM", "WHERE"), table))


@app.command("path")
def path() -> None:
    """Show where config, data, log and the running instance's address are."""
    home = session().home
    places = {"config": str(home.config_file), "agents": str(home.config / "agents")}
    places |= {name: str(getattr(home, name)) for name in ("data", "state", "cache", "run")}
    places["log"] = str(home.log_file)
    show(places, *(f"{name:8}{place}" for name, place in places.items()))


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
        raise typer.Exit(program.WARNINGS)


@app.command("reload")
def reload() -> None:
    """Make the running instance reload its settings: all changes apply, or none.

    Exit code 4 when a setting is wrong, 5 when one needs a restart or there are warnings.
    """
    if (runtime := remote.running(session().home)) is None:
        raise NotRunning("nothing runs on this home: the next start reads the settings anyway")
    told = runtime.post("/v1/config/reload")
    lines = [f"changed        {key}" for key in told["changed"]]
    lines += [f"needs a restart: {key}" for key in told["restart"]]
    lines += [f"warning: {one}" for one in told["warnings"]]
    show(told, *(lines or ["nothing changed"]))
    if told["restart"] or told["warnings"]:
        raise typer.Exit(program.WARNINGS)


def checked() -> list[str]:
    """What there is to warn about; raises ConfigError when a setting cannot be used."""
    from keepsaid.app.models import model_named  # noqa: PLC0415
    from keepsaid.interfaces.http.bodies import client_token  # noqa: PLC0415

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


def _origin(key: Key, lines: Mapping[Key, int]) -> tuple[str, str]:
    """Where a setting comes from, and the variable or the line of the file."""
    given = {name.upper(): name for name in os.environ}
    for length in range(len(key), 0, -1):
        variable = f"{ENV_PREFIX}{'__'.join(key[:length])}".upper()
        if variable in given:
            return "env", given[variable]
    for length in range(len(key), 0, -1):
        at = key[:length]
        is_leaf = not any(other[:length] == at and len(other) > length for other in lines)
        if at in lines and (at == key or is_leaf):
            return "file", f"{session().home.config_file}:{lines[at]}"
    return "default", ""


def _composed(text: str) -> yaml.Node | None:
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _places(node: yaml.Node | None, at: Key = ()) -> Iterator[tuple[Key, int]]:
    """The line of every key in the file."""
    if isinstance(node, yaml.MappingNode):
        for name, inner in node.value:
            key = (*at, str(name.value))
            yield key, name.start_mark.line + 1
            yield from _places(inner, key)
