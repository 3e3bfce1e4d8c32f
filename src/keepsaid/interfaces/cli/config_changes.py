"""`keepsaid config set`, `unset` and `edit`: changes of the config file, written only if the whole file is valid."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from keepsaid.config.document import EDIT, Key, parse_document
from keepsaid.config.edits import replace_config, replace_file, with_setting, without_setting
from keepsaid.config.fields import is_secret, is_text, variable_setting
from keepsaid.errors import ConfigError, HomeError
from keepsaid.interfaces.cli import program, remote
from keepsaid.interfaces.cli.console import from_stdin, json_text, say, session, show
from keepsaid.interfaces.cli.settings import checked, setting_of

_MASK = "**********"
_EDITORS = ("nano", "vi")


def set_(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A setting, such as buffer.window_ms.")],
    value: Annotated[
        str | None, typer.Argument(metavar="VALUE", help="Its new value; a list as '[a, b]'. Write -- before -1.")
    ] = None,
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Ask for the value and do not show it; without a terminal, read stdin.")
    ] = False,
) -> None:
    """Set one setting in the config file.

    The file is written only if all of it is valid then. Comments and other keys stay, and the former file is kept
    beside it as config.yaml.bak.
    """
    path, kind = setting_of(key)
    if (value is None) != prompt:
        raise program.Misused("give either VALUE or --prompt", hint="keepsaid config set --help")
    given = _read(path, kind, _prompt_value(key) if value is None else value)
    if is_secret(kind) and not given:
        raise program.Misused(f"no value was given for {key}", hint=f"keepsaid config unset {key}")
    if value is not None and is_secret(kind) and is_text(kind):
        say("warning: the history of your shell may keep this secret; --prompt avoids that")
    file = session().home.config_file
    write_config(path, with_setting(config_text(file), path, given))
    shown = _MASK if is_secret(kind) else given
    show({"key": key, "value": shown, "file": str(file)}, f"set    {key} = {json_text(shown)}", f"wrote  {file}")
    _advise(path)


def unset(key: Annotated[str, typer.Argument(metavar="KEY", help="A setting or a section of the file.")]) -> None:
    """Remove one setting from the config file, so that its default is used."""
    file, path = session().home.config_file, tuple(key.split("."))
    text = config_text(file)
    if (changed := without_setting(text, path)) == text:
        setting_of(key)
        show({"key": key, "removed": False, "file": str(file)}, f"{file} does not set {key}")
        return
    write_config(path, changed)
    show({"key": key, "removed": True, "file": str(file)}, f"unset  {key}", f"wrote  {file}")
    _advise(path)


def edit() -> None:
    """Open the config file in $VISUAL or $EDITOR, and keep the changes if they are valid.

    The editor has a copy. If something in it is wrong, the command says what, and you can edit it again.
    The former file is kept as config.yaml.bak.
    """
    home = session().home
    home.make()
    file, draft = home.config_file, home.config / "config.edit.yaml"
    before = file.read_bytes().decode("utf-8", "replace") if file.exists() else ""
    if draft.exists() and (not file.exists() or draft.stat().st_mtime >= file.stat().st_mtime):
        say(f"continuing with {draft}")
    else:
        replace_file(draft, before)
    while True:
        _open_editor(draft, before)
        text = draft.read_bytes().decode("utf-8", "replace")
        try:
            warnings = checked(parse_document(text, draft)) if text != before else []
        except ConfigError as error:
            if _wants_retry(error):
                continue
            error.safe = f"{file} was not changed; your text is in {draft}."
            error.hint = "keepsaid config set KEY VALUE"
            raise
        break
    draft.unlink()
    for warning in warnings:
        say(f"warning: {warning.replace(str(draft), str(file))}")
    if text == before:
        show({"changed": False, "file": str(file)}, "nothing changed")
        return
    replace_config(file, text)
    show({"changed": True, "file": str(file)}, f"wrote  {file}")
    _advise(())


def _wants_retry(error: ConfigError) -> bool:
    if not sys.stdin.isatty():
        return False
    say(f"error: {error.what}")
    return typer.confirm("Edit again?", default=True, err=True)


def _open_editor(draft: Path, before: str) -> None:
    """Wait for the editor. Raises HomeError if there is none or it fails; a draft without changes is deleted then."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    command = shlex.split(named) if named else [one for one in map(shutil.which, _EDITORS) if one][:1]
    try:
        code = subprocess.run([*command, str(draft)], check=False).returncode if command else None  # noqa: S603 - theirs
        trouble = "no editor was found" if code is None else f"{command[0]} ended with exit code {code}" if code else ""
    except OSError as error:
        trouble = f"{command[0]} cannot be started ({error.strerror})"
    if trouble:
        if draft.read_bytes() == before.encode():
            draft.unlink()
        hint = "export EDITOR=COMMAND, or: keepsaid config set KEY VALUE"
        raise HomeError(trouble, safe="The file was not changed.", hint=hint)


def _prompt_value(key: str) -> str:
    if sys.stdin.isatty():
        return str(typer.prompt(key, hide_input=True, err=True))
    return from_stdin()


def _read(path: Key, kind: Any, value: str) -> Any:
    """Return the value that was typed: text where the setting takes text, else what YAML reads."""
    if is_text(kind):
        return value
    try:
        return yaml.safe_load(value)
    except (yaml.YAMLError, ValueError, LookupError, AttributeError):
        what = f"the value of {'.'.join(path)} is neither a number, a word nor a list: quote it"
        raise typer.BadParameter(what, param_hint="VALUE") from None


def config_text(file: Path) -> str:
    """Return the text of the config file, empty if there is none. Raises ConfigError if it cannot be edited."""
    if not file.exists():
        return ""
    try:
        text = file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read ({error})", hint="keepsaid config path") from error
    parse_document(text, file)
    return text


def write_config(path: Key, text: str) -> None:
    """Write the config file if all of it is valid. Raises ConfigError with the file as it was."""
    home = session().home
    file = home.config_file
    document = parse_document(text, file)
    try:
        warnings = checked(document)
    except ConfigError as error:
        error.safe = f"{file} was not changed."
        if error.what.startswith(f"{'.'.join(path)}:") and "\n" not in error.what:
            error.what = error.what.replace(f"  ({document.place(path)})", "")
            error.hint = f"keepsaid config get {'.'.join(path)}" if error.hint == EDIT else error.hint
        raise
    home.make()
    replace_config(file, text)
    for warning in warnings:
        say(f"warning: {warning}")


def _advise(path: Key) -> None:
    if path and (variable := variable_setting(path)):
        say(f"warning: the environment variable {variable} is set and wins over the file")
    if remote.running(session().home) is not None:
        say("try: keepsaid config reload; it says what needs a restart")
