"""`keepsaid config`: the settings, where each comes from, whether they are valid, and changes of the file."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from keepsaid.config.edits import replace_file, with_model, with_setting
from keepsaid.errors import NotRunning
from keepsaid.interfaces.cli import config_changes, program, remote
from keepsaid.interfaces.cli.console import Table, json_text, session, show
from keepsaid.interfaces.cli.settings import ShownSetting, checked, setting_of, settings
from keepsaid.text.normal import counted

__all__ = ["app", "checked", "replace_file", "with_model", "with_setting"]

app = typer.Typer(help="Show, check and change the settings.", rich_markup_mode=None)


@app.command("show")
def show_all(section: Annotated[str, typer.Argument(help="Only this part: models, channels.github, ...")] = "") -> None:
    """Show every setting and where it comes from; secrets are masked."""
    found = settings()
    above = tuple(section.split(".")) if section else ()
    wanted = [one for one in found if one.key[: len(above)] == above]
    if not wanted:
        sections = sorted({one.key[0] for one in found})
        raise typer.BadParameter(f"there is no section {section!r}; use {', '.join(sections)}", param_hint="SECTION")
    _show(wanted)


@app.command("diff")
def diff() -> None:
    """Show the settings that the file or the environment sets."""
    _show([one for one in settings() if one.origin != "default"])


def _show(wanted: list[ShownSetting]) -> None:
    table = Table(("KEY", "VALUE", "FROM", "WHERE"), tuple(one.row for one in wanted))
    show({"settings": [one.shape for one in wanted]}, table)


@app.command("get")
def get(key: Annotated[str, typer.Argument(metavar="KEY", help="A setting, such as buffer.window_ms.")]) -> None:
    """Print the value of one setting; a secret is masked."""
    path, _ = setting_of(key)
    found = settings()
    if (one := next((one for one in found if one.key == path), None)) is not None:
        show(one.shape, json_text(one.value))
        return
    if any(one.key[: len(path)] == path for one in found):
        raise typer.BadParameter(f"{key} has several settings; see keepsaid config show {key}", param_hint="KEY")
    raise typer.BadParameter(f"{key} is not set", param_hint="KEY")


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
    warnings = checked()
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


@app.command("schema")
def schema() -> None:
    """Print the JSON Schema of the config file, with which editors complete and check it."""
    from keepsaid.config import fields  # noqa: PLC0415 - the other commands need less of it

    made = fields.schema()
    show({"schema": made}, json.dumps(made, indent=2, ensure_ascii=False))


app.command("set", context_settings={"ignore_unknown_options": True})(config_changes.set_)
app.command("unset")(config_changes.unset)
app.command("edit")(config_changes.edit)
