"""How `keepsaid init` saves a model: the written file is tested, and the former one put back if it gives no reply."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from keepsaid.app import setup
from keepsaid.domain.turn import NO_MODEL
from keepsaid.errors import ConfigError, ModelError
from keepsaid.interfaces.cli import choosing
from keepsaid.interfaces.cli.config import replace_file, with_model, with_setting


def save(file: Path, found: setup.ModelSetup, choice: setup.ModelChoice | None) -> list[Path]:
    """Write the choice to the config file and test the written file; return the files that were written.

    Without a choice, only a config file that is missing is written. Raises ModelError or ConfigError, with every
    file as it was before, if the written settings give no reply.
    """
    if choice is None:
        if file.exists():
            return []
        replace_file(file, with_model("", setup.AUTO))
        return [file]
    if not (changes := found.changes(choice)):
        return []
    former = {one: one.read_bytes() if one.exists() else None for one in (file, _backup(file), _key_file(file))}
    is_saved = False
    try:
        wrote = _write(file, choice, changes)
        if choice.chat != NO_MODEL:
            _test_written(found, choice)
        is_saved = True
    finally:
        if not is_saved:
            _put_back(former)
    return wrote


def _write(file: Path, choice: setup.ModelChoice, changes: Mapping[str, str | None]) -> list[Path]:
    """Write the key if it is kept, then the config; what the config was is kept beside it."""
    wrote = [file]
    if choice.key and choice.key.is_kept:
        replace_file(_key_file(file), f"{choice.key.secret}\n")
        wrote.append(_key_file(file))
    text = ""
    if file.exists():
        text = file.read_bytes().decode("utf-8")
        replace_file(_backup(file), text)
    replace_file(file, _with(text, changes))
    return wrote


def _backup(file: Path) -> Path:
    return file.with_name(f"{file.name}.bak")


def _key_file(file: Path) -> Path:
    return file.with_name(setup.KEY_FILE)


def _with(text: str, changes: Mapping[str, str | None]) -> str:
    """Return the text of the config with changed keys of its section `models`."""
    for name, value in [*changes.items()][::-1]:  # a new key is written above those that are there
        if name == "chat" and value is not None:
            text = with_model(text, value)
        else:
            text = with_setting(text, ("models", name), value, json.dumps(value))
    return text


def _test_written(found: setup.ModelSetup, choice: setup.ModelChoice) -> None:
    try:
        choosing.tested_as_written(found, choice)
    except (ModelError, ConfigError) as error:
        error.what = f"the written config failed its test: {error.what}"
        choosing.in_words_of_init(error, choice).safe = "Nothing was saved; the former config was put back."
        raise


def _put_back(former: Mapping[Path, bytes | None]) -> None:
    for file, content in former.items():
        if content is None:
            file.unlink(missing_ok=True)
        else:
            replace_file(file, content.decode("utf-8"))
